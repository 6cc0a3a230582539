"""Values that wait on the host: decided by the memories that a device lists, and the values of a
step stay.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import FluidTypeError, FluidValueError
from fluidjax.ir.verify import verify
from fluidjax.lower.step import Step
from fluidjax.memory import compiler
from fluidjax.memory.budget import no_host
from fluidjax.memory.ways import Ways
from fluidjax.ops.registry import lookup
from fluidjax.passes.offload import Offload, waiting
from tests.nets import fresh


@pytest.fixture(scope="module")
def net():
    """Layers with dropouts, one value of which two layers read: main, startup, loss, feed."""
    with fresh(3) as (main, startup):
        h = layers.fc(fluid.data("x", [None, 16]), 16, act="tanh")
        for _ in range(2):
            h = h + layers.dropout(layers.fc(h, 16, act="tanh"), 0.3)
        loss = layers.mean(layers.square(h))
        fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    return main, startup, loss, {"x": np.random.RandomState(0).randn(64, 16).astype("float32")}


def listed(platform, *kinds, default="device"):
    memories = [SimpleNamespace(kind=kind) for kind in kinds]
    return SimpleNamespace(
        platform=platform,
        addressable_memories=lambda: memories,
        default_memory=lambda: SimpleNamespace(kind=default),
    )


def test_where_a_host_is_used():
    assert no_host(listed("gpu", "device", "pinned_host")) is None
    assert no_host(listed("tpu", "device", "pinned_host", "unpinned_host")) is None
    assert "lists none (its own memory alone)" in no_host(listed("gpu", "device"))
    assert "lists none (unpinned_host)" in no_host(listed("gpu", "device", "unpinned_host"))
    assert "lists none" in no_host(listed("gpu", "pinned_host", default="pinned_host"))
    assert "the device's own" in no_host(jax.local_devices()[0])


def test_the_program(net):
    """x goes behind its last forward reader, and comes back before its first backward one, which
    reads what came.
    """
    main, _, loss, _ = net
    (name, (last, first)), *_ = waiting(main.desc, frozenset({loss.name})).items()
    made = fluid.passes.run(Offload((name,)), main.desc, keep=[loss.name])
    verify(made.desc, lookup)
    ops, before = made.desc.blocks[0].ops, main.desc.blocks[0].ops
    assert [op.type for op in ops] == [
        *(op.type for op in before[: last + 1]), "assign", *(op.type for op in before[last + 1 : first]), "assign",
        *(op.type for op in before[first:]),
    ]  # fmt: skip
    went, came = ops[last + 1], ops[first + 1]
    assert went.output("Out") == (f"{name}@HOST",) == came.input("X") and came.output("Out") == (
        f"{name}.subprog_0",
    )
    assert all(
        name not in list(op.reads) for op in ops[first + 1 :]
    ) and f"{name}.subprog_0" in list(ops[first + 2].reads)
    assert f"{name} waits on the host" in str(made.notes[0])


def test_results_that_gradients_take_may_wait():
    """A gradient op that takes its op's result, such as tanh's, differentiates that op when the
    result comes back from the host too.
    """
    with fresh(1) as (main, startup):
        h = layers.fc(fluid.data("x", [None, 8]), 8, act="tanh")
        for act in ("sigmoid", "relu", "softmax"):
            h = h + layers.dropout(layers.exp(layers.fc(h, 8, act=act)), 0.3)
        loss = layers.mean(h)
        fluid.optimizer.SGD(0.1).minimize(loss)
    names = tuple(waiting(main.desc, frozenset({loss.name})))
    taken = {
        n
        for op in main.desc.blocks[0].ops
        if op.type.endswith("_grad")
        for n in op.input("Out") or ()
    }
    assert len(taken & {*names}) >= 5
    made = fluid.passes.run(Offload(names), main.desc, keep=[loss.name])
    state, feed = fluid.init_fn(startup)(jax.random.key(0)), {"x": np.ones((4, 8), "float32")}
    want, _ = Step(main.desc, (loss.name,))(state, feed, jax.random.key(9))
    found, _ = Step(made.desc, (loss.name,))(state, feed, jax.random.key(9))
    for name, value in want.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.slow
def test_values_stay(net):
    """Op by op bit for bit, and compiled with the moves (the CPU's compiler passes over them), for
    every way that there is.
    """
    main, startup, loss, feed = net
    state, key = fluid.init_fn(startup)(jax.random.key(0)), jax.random.key(9)
    want, (cost,) = Step(main.desc, (loss.name,))(state, feed, key)
    ways = Ways(main.desc, frozenset({loss.name}), 64).offloading()
    assert ways and ways[-1].offload is not None and "values on the host" in str(ways[-1])
    assert (
        ways[-1].estimate
        <= ways[0].estimate
        <= Ways(main.desc, frozenset({loss.name}), 64).found[-1].estimate
    )
    for way in ways:
        found, (again,) = Step(way.desc, (loss.name,))(state, feed, key)
        np.testing.assert_array_equal(again, cost)
        for name, value in want.items():
            np.testing.assert_array_equal(found[name], value, err_msg=name)
    moving = jax.jit(Step(ways[-1].desc, (loss.name,), offloads=True))
    text = moving.trace(state, feed, key).lower(lowering_platforms=("cuda",)).as_text()
    names = len(ways[-1].offload.names)
    assert text.count("pinned_host") == text.count("annotate_device_placement") / 2 == names
    found, (again,) = moving(state, feed, key)
    np.testing.assert_allclose(again, cost, rtol=1e-6)
    for name, value in want.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-7, err_msg=name)


@pytest.mark.slow
def test_the_last_step_of_a_search(net, monkeypatch):
    """Where there is a host it is tried when nothing else keeps the budget, and the compiler's
    figure decides; the CPU's counts no host.
    """
    main, startup, loss, feed = net
    asked = {"batch_size": 64, "fetch_list": [loss.name]}
    with pytest.raises(
        FluidValueError, match="memory of the host is not used: on the CPU it is the device's own"
    ):
        fluid.memory_optimize(main.clone(), budget=100, **asked)
    monkeypatch.setattr("fluidjax.memory.budget.no_host", lambda device: None)
    with pytest.raises(FluidValueError, match="the least that was found is") as refused:
        fluid.memory_optimize(main.clone(), budget=100, **asked)
    assert "memory of the host" not in str(refused.value)
    tried, lower, real = [], compiler.lower, compiler.figures

    def noticed(desc, *rest):
        tried.append(any(n.endswith("@HOST") for n in desc.blocks[0].vars))
        return lower(desc, *rest)

    def counted(lowered, names, quick=False):
        """As a device with a host would count, where all that is alive for long waits there: the
        CPU's compiler passes over the moves.
        """
        found = real(lowered, names, quick)
        return {n: replace(f, temporaries=0) for n, f in found.items()} if tried[-1] else found

    monkeypatch.setattr(compiler, "lower", noticed)
    monkeypatch.setattr(compiler, "figures", counted)
    optimized = main.clone()
    report = fluid.memory_optimize(optimized, budget=main_bytes(main, asked), **asked)
    assert (
        tried[-1]
        and not any(tried[:-1])
        and report.chosen.way.offload is not None
        and "waits on the host" in str(report)
    )
    scopes = [fluid.Scope(), fluid.Scope()]
    losses = []
    for program, scope in zip((main, optimized), scopes, strict=True):
        exe = fluid.Executor()
        exe.run(startup, scope=scope)
        losses.append([exe.run(program, feed, [loss.name], scope=scope)[0] for _ in range(2)])
    np.testing.assert_allclose(*losses, rtol=1e-6)


def main_bytes(main, asked):
    figures = main.memory_report(**asked).compiled["default"]
    return figures.total - figures.temporaries


def test_refused(net):
    main, _, loss, _ = net
    with pytest.raises(FluidTypeError, match="names is a tuple"):
        Offload(["x"])
    for name in ("x", "nothing", loss.name):
        with pytest.raises(
            FluidValueError,
            match=(
                f"'{name}' is not a value of the forward pass that only the backward pass reads later"
            ),
        ):
            fluid.passes.run(Offload((name,)), main.desc, keep=[loss.name])
