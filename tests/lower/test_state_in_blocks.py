"""State that blocks change and that is not a parameter, statistics and rates: as Paddle 1.8.5 changes
it, in every way of running.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import NotOneStep
from fluidjax.ops.control.while_loop import Loop

from ..nets import fresh
from ..op_by_op import OpByOp
from ..test_golden_programs import compare
from ..tools import control_nets, state_nets

RECORDS = json.loads(
    gzip.decompress((Path(__file__).parents[1] / "data" / "state_1.8.5.json.gz").read_bytes())
)
NETS = {net.__name__: net for net in state_nets.NETS}
Step = Callable[[Any], Any]


class Built:
    """A net with SGD, and a scope that begins as the recordings do."""

    def __init__(self, name: str) -> None:
        with fresh() as (self.main, startup):
            self.loss = NETS[name](fluid)
            compare(self.main, RECORDS[name]["forward"], "forward")
            fluid.optimizer.SGD(0.1).minimize(self.loss)
        self.scope, self.exe = fluid.Scope(), fluid.Executor(fluid.CPUPlace())
        self.exe.run(startup, scope=self.scope)
        for p in self.main.all_parameters():
            if p.trainable:
                self.scope.var(p.name).set(control_nets.initial(p.name, p.shape))

    def run(self, feed: Any, program: Any = None) -> Any:
        return self.exe.run(
            program or self.main, feed=feed, fetch_list=[self.loss], scope=self.scope
        )[0]


def alone(built: Built) -> Step:
    return built.run


def on_two_devices(built: Built) -> Step:
    """Both are fed the same, so each has the statistics of one."""
    program = fluid.CompiledProgram(built.main).with_data_parallel(
        built.loss.name, places=[fluid.CPUPlace()] * 2
    )
    return lambda feed: built.run([feed, feed], program)[:1]


def literal(built: Built) -> Step:
    """Gradient ops by what they mean by themselves."""
    step = OpByOp(built.main.desc, (built.loss.name,), literal=True)

    def one(feed: Any) -> Any:
        with jax.enable_x64(True):
            state, fetched = jax.jit(step)({n: built.scope.get(n) for n in step.reads}, feed)
        for name, value in state.items():
            built.scope.var(name).set(np.asarray(value))
        return fetched[0]

    return one


@pytest.mark.first(2)
@pytest.mark.parametrize(
    ("name", "way"),
    [(n, alone) for n in NETS] + [("norm_in_steps", w) for w in (on_two_devices, literal)],
)
def test_three_steps_equal_paddles(name: str, way: Callable[[Built], Step]) -> None:
    if way is on_two_devices and jax.device_count() < 2:
        pytest.skip("one device")
    built = Built(name)
    agree(built, name, way(built))


def agree(built: Built, name: str, run: Step) -> None:
    for step, (feed, want) in enumerate(
        zip(state_nets.FEEDS[name], RECORDS[name]["steps"], strict=True)
    ):
        np.testing.assert_allclose(
            run(feed), want["loss"], rtol=2e-5, atol=1e-6, err_msg=f"loss of step {step}"
        )
        for n, value in want["after"].items():
            np.testing.assert_allclose(
                built.scope.get(n), value, rtol=2e-5, atol=1e-6, err_msg=f"{n} after step {step}"
            )


def test_driven_by_python(monkeypatch: pytest.MonkeyPatch) -> None:
    def untraceable(loop: Loop) -> None:
        raise NotOneStep("as a test wants it")

    monkeypatch.setattr(Loop, "run", untraceable)
    number = lambda v, dtype="int64": layers.fill_constant([1], dtype, v)  # noqa: E731
    with fresh() as (main, startup):
        rate, w = (
            layers.create_global_var([1], 1.0, "float32", persistable=True),
            layers.create_parameter([1], "float32"),
        )
        i, n = number(0), number(3)
        states, going = layers.array_write(w, i), layers.less_than(i, n)
        with layers.While(going).block():
            after = layers.array_read(states, i) * w
            with layers.Switch() as chosen, chosen.case(layers.less_than(i, number(2))):
                layers.assign(rate * 3.0, rate)
            layers.increment(i)
            layers.array_write(after, i, states)
            layers.less_than(i, n, cond=going)
        (slope,) = fluid.gradients(layers.array_read(states, n), [w])
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    scope.var(w.name).set(np.array([2], "float32"))
    found, after_ = exe.run(main, fetch_list=[slope, rate], scope=scope)
    assert (found.item(), after_.item(), scope.get(rate.name).item()) == (32, 9, 9)


@pytest.mark.parametrize("reverse", [False, True])
def test_what_steps_write_outside_is_the_last_ones(reverse: bool) -> None:
    """A counter that each step reads, and a row that none does."""
    with fresh() as (main, _):
        given = fluid.data("x", [4, 2])
        total, seen = (layers.fill_constant([n], "float32", 0.0) for n in (1, 2))
        rnn = layers.StaticRNN()
        with rnn.step():
            row = rnn.step_input(given)
            layers.assign(total + 2.0, total)
            layers.assign(row, seen)
            rnn.step_output(row * total)
        main.global_block().ops[-1]._set_attr("reverse", reverse)
        value = np.arange(8, dtype="float32").reshape(4, 2)
        out, last, end = fluid.Executor(fluid.CPUPlace()).run(
            main, feed={"x": value}, fetch_list=[rnn(), total, seen]
        )
    np.testing.assert_array_equal(
        out, value * np.array([[2], [4], [6], [8]])[:: -1 if reverse else 1]
    )
    assert last == 8
    np.testing.assert_array_equal(end, value[0 if reverse else -1])
