"""Live bytes op by op: tiny programs worked out by hand, and LeNet against the bytes of a run that
keeps arrays by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from benchmarks import fluid_models
from fluidjax import layers
from fluidjax.errors import FetchError, FluidTypeError, FluidValueError, UnsupportedError
from fluidjax.ir import walk
from fluidjax.ir.desc import OpDesc
from fluidjax.lower.env import Context
from fluidjax.lower.order import by_use
from fluidjax.lower.step import Step, run_op
from fluidjax.memory.live import KINDS
from fluidjax.passes.lifetimes import live_bytes


@pytest.fixture
def main():
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()), fluid.unique_name.guard():
        yield program


def report(program: fluid.Program, **kwargs: Any) -> Any:
    return program.memory_report(compiled=False, **kwargs)


def alive(r: Any) -> dict[str, tuple[int, str]]:
    return {a.name: (a.bytes, a.kind) for a in r.peak.alive}


def test_a_chain_by_hand(main):
    x = fluid.data("x", [None, 4])
    a = layers.scale(x, 2.0)  # 2 * 4 * 4 bytes each
    b = layers.concat([a, a], axis=1)
    c = layers.reduce_sum(b)
    r = report(main, batch_size=2, fetch_list=[c])
    assert [p.op for p in r.timeline] == ["scale", "concat", "reduce_sum"]
    assert [p.bytes for p in r.timeline] == [32 + 32, 32 + 32 + 64, 32 + 64 + 4]
    assert r.plain == r.peak.bytes == 128 and r.peak.index == 1
    assert alive(r) == {
        "x": (32, "feeds"),
        a.name: (32, "activations"),
        b.name: (64, "activations"),
    }
    assert r.feeds == {"x": (2, 4)}


def test_a_value_in_vain_takes_memory_while_its_op_runs(main):
    x = fluid.data("x", [3, 8])
    value, index = layers.topk(x, k=2)
    r = report(main, fetch_list=[value])
    assert [p.bytes for p in r.timeline] == [96 + 3 * 2 * 4 + 3 * 2 * 8]
    assert alive(r)[index.name] == (48, "activations")


def test_dtypes_and_kinds_of_a_training_step(main):
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
    loss = layers.mean(layers.square_error_cost(layers.fc(x, 1), y))
    fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    r = report(main, batch_size=5, fetch_list=[loss])
    assert all(p.by_kind["parameters"] == 4 * (3 + 1) for p in r.timeline)
    # two velocities and the rate
    assert all(p.by_kind["optimizer state"] == 4 * (3 + 1 + 1) for p in r.timeline)
    assert all(p.by_kind["feeds"] == 4 * (15 + 5) for p in r.timeline)
    assert r.timeline[0].by_kind["gradients"] == 0
    last = r.timeline[-1]  # the second momentum op: its gradient, and the loss that is fetched
    assert (
        last.op == "momentum"
        and last.by_kind["gradients"] in (4, 12)
        and last.by_kind["activations"] == 4
    )


def test_every_variable_names_its_line(main):
    x = fluid.data("x", [8, 2])
    hidden = layers.relu(x)
    out = layers.fc(hidden, 1)
    r = report(main, fetch_list=[out])
    lines = {a.name: a.line for a in r.peak.alive}
    relu = next(op.loc for op in main.desc.blocks[0].ops if op.type == "relu")
    assert "test_live.py:" in relu and r.peak.op == "mul"
    assert lines[hidden.name] == relu
    fc = next(op.loc for op in main.desc.blocks[0].ops if op.type == "mul")
    assert fc != relu and lines["fc_0.w_0"] == fc == r.peak.line


def test_a_name_that_is_written_anew_keeps_its_place(main):
    x = fluid.data("x", [4])
    a = layers.scale(x, 2.0)
    main.global_block().append_op(
        type="scale", inputs={"X": a}, outputs={"Out": a}, attrs={"scale": 3.0}
    )
    out = layers.reduce_sum(a)
    r = report(main, fetch_list=[out])
    assert [p.bytes for p in r.timeline] == [32, 32, 36]


def test_ops_that_nothing_needs_do_not_count(main):
    x = fluid.data("x", [4])
    layers.concat([x] * 100)
    r = report(main, fetch_list=[layers.relu(x)])
    assert [p.op for p in r.timeline] == ["relu"] and r.plain == 32


def test_the_worst_of_a_sub_block_counts(main):
    x = fluid.data("x", [4])
    flag = layers.less_than(layers.reduce_sum(x), layers.fill_constant([1], "float32", 0.0))
    out = layers.scale(x, 1.0)
    block = main._create_block()
    big = layers.concat([x] * 10)  # 160 bytes that only the block sees
    small = layers.slice(big, axes=[0], starts=[0], ends=[4])
    block.append_op(type="assign", inputs={"X": small}, outputs={"Out": out})
    main._rollback()
    main.global_block().append_op(
        type="conditional_block",
        inputs={"Cond": flag, "Input": [x]},
        outputs={"Out": [out], "Scope": []},
        attrs={"sub_block": block, "is_scalar_condition": True},
    )
    r = report(main, fetch_list=[out])
    last = r.timeline[-1]
    assert last.op == "conditional_block" and last.inside == 160 + 16
    assert last.bytes == 16 + 16 + 1 + 160 + 16  # x, out, the condition, and the block's two
    assert r.peak.index == last.index


def lenet() -> tuple[fluid.Program, Any]:
    main, _, loss = fluid_models.build(fluid_models.lenet, fluid.optimizer.Adam(1e-3))
    return main, loss


def by_name(step: Step, state: Mapping[str, Any], feed: Mapping[str, Any]) -> list[int]:
    """Bytes while each op runs: NumPy arrays by name, dropped after the last op that reads them."""
    held = {*state, *feed, *step.fetches, *step.writes}
    last = {name: at for at, op in enumerate(step.ops) for name in (*op.reads, *op.writes)}
    env: dict[str, Any] = {**state, **feed}
    ctx = Context(step.desc, jax.random.key(0), literal=True)
    found = []

    def results(op: OpDesc, values: dict[str, Any]) -> dict[str, Any]:
        run_op(op, values, ctx, ())
        return {name: values[name] for name in op.writes}

    for at, op in enumerate(step.ops):
        with jax.enable_x64(True):
            new = jax.jit(partial(results, op))({name: env[name] for name in op.reads})
        env.update({name: np.asarray(value) for name, value in new.items()})
        found.append(sum(v.nbytes for v in env.values()))
        env = {name: v for name, v in env.items() if name in held or last[name] > at}
    return found


@pytest.mark.slow
def test_lenet_holds_what_a_run_by_name_holds():
    main, loss = lenet()
    r = report(main, batch_size=8, fetch_list=[loss])
    step = Step(main.desc, (loss.name,))
    vars = main.desc.blocks[0].vars
    state = {n: np.full(vars[n].shape, 0.5, vars[n].dtype) for n in step.reads}
    feed = {
        n: np.ones([8 if d < 0 else d for d in v.shape], v.dtype) for n, v in step.feeds.items()
    }
    assert [p.bytes for p in r.timeline] == by_name(step, state, feed)
    assert r.peak.bytes == max(p.bytes for p in r.timeline)


def test_lenet_adds_up():
    main, loss = lenet()
    r = report(main, batch_size=8, fetch_list=[loss])
    assert sum(a.bytes for a in r.peak.alive) == r.plain == sum(r.peak.by_kind.values())
    for kind in KINDS:
        assert sum(a.bytes for a in r.peak.alive if a.kind == kind) == r.peak.by_kind[kind]
    assert [a.bytes for a in r.peak.alive] == sorted((a.bytes for a in r.peak.alive), reverse=True)


def test_lenet_agrees_with_the_lifetimes_that_memory_optimize_plans_with():
    """Activations and gradients against another count; that one takes all ops of the block, as does
    ours here.
    """
    main, loss = lenet()
    r = report(main, batch_size=8, fetch_list=[loss])
    # as the step has them
    block = replace(main.desc.blocks[0], ops=by_use(main.desc.blocks[0].ops))
    assert len(block.ops) == len(r.timeline)
    own = {n for n, v in block.vars.items() if not v.persistable and not v.is_data} - {loss.name}
    written = set(walk.writers(block))
    expected = live_bytes(
        replace(main.desc, blocks=(block, *main.desc.blocks[1:])), own & written, batch_size=8
    )
    loss_from = walk.writers(block)[loss.name][0]
    ours = [
        p.by_kind["activations"] + p.by_kind["gradients"] - 4 * (p.index >= loss_from)
        for p in r.timeline
    ]
    assert ours == expected


def test_an_unknown_dimension_is_named(main):
    x = fluid.data("x", [None, None, 3])
    out = layers.relu(x)
    with pytest.raises(
        FluidValueError,
        match=r"dimension 0 of feed 'x' \[-1, -1, 3\] is not known: pass batch_size",
    ):
        report(main, fetch_list=[out])
    with pytest.raises(
        FluidValueError, match=r"dimension 1 of feed 'x' .*feed_shapes=\{'x': \(\.\.\.\)\}"
    ):
        report(main, batch_size=2, fetch_list=[out])
    assert report(main, feed_shapes={"x": (2, 5, 3)}, fetch_list=[out]).plain == 2 * 2 * 5 * 3 * 4


@pytest.mark.parametrize(
    "kwargs, error, text",
    [
        ({"batch_size": 0}, FluidValueError, "batch_size is a positive integer, not 0"),
        ({"batch_size": True}, FluidValueError, "batch_size is a positive integer, not True"),
        (
            {"batch_size": 2, "feed_shapes": {"y": (2, 4)}},
            FluidValueError,
            "'y', which is not in the program",
        ),
        (
            {"feed_shapes": {"x": (2, 5)}},
            FluidValueError,
            r"is \[2, 5\], but the program declares \[-1, 4\]",
        ),
        ({"feed_shapes": {"x": "big"}}, FluidTypeError, "is a list of integers"),
        ({"batch_size": 2, "fetch_list": ["relu_9"]}, FetchError, "'relu_9' is not in the program"),
        (
            {"batch_size": 2, "fetch_list": [3]},
            FluidTypeError,
            "takes variables or their names, not int",
        ),
        ({"batch_size": 2, "fetch_list": []}, FluidValueError, "no op of the program would run"),
    ],
)
def test_arguments_that_do_not_fit(main, kwargs, error, text):
    out = layers.relu(fluid.data("x", [None, 4]))
    with pytest.raises(error, match=text):
        report(main, **{"fetch_list": [out], **kwargs})


def test_a_ragged_feed_is_refused(main):
    out = layers.relu(fluid.data("words", [None, 4], lod_level=1))
    with pytest.raises(UnsupportedError, match="'words' is ragged"):
        report(main, batch_size=2, fetch_list=[out])


def test_shapes_that_an_op_refuses_name_the_op(main):
    out = layers.elementwise_add(fluid.data("x", [None, 4]), fluid.data("y", [None, 4]))
    with pytest.raises(Exception) as caught:
        report(main, feed_shapes={"x": (2, 4), "y": (3, 4)}, fetch_list=[out])
    assert any(
        "elementwise_add" in note and "test_live.py" in note for note in caught.value.__notes__
    )
