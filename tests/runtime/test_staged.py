"""A quick executable in stages: the same step, reproducible, whose state no interrupt splits."""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.runtime import staged, tiers
from fluidjax.runtime.compiled import Compiled
from fluidjax.runtime.effort import QUICK
from fluidjax.runtime.kind import Kind
from fluidjax.runtime.placement import OneDevice, Turns
from fluidjax.runtime.recompiles import Recompiles

from ..nets import fresh

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 6)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every step is quick, and a stage has few equations."""
    before = fluid.get_flags("FLAGS_quick_steps")
    fluid.set_flags({"FLAGS_quick_steps": 100})
    monkeypatch.setattr(tiers, "QUICK", replace(QUICK, stage=40))
    yield
    fluid.set_flags(before)


class Net:
    """A small net in training, with state that is read in one stage and written in another."""

    def __init__(self) -> None:
        with fresh(3) as (self.main, startup):
            h = layers.batch_norm(layers.fc(fluid.data("x", [None, 6]), 6, act="tanh"))
            self.loss = layers.mean(layers.square(layers.dropout(h, 0.2)))
            fluid.optimizer.Adam(0.01).minimize(self.loss)
        self.exe, self.scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
        self.exe.run(startup, scope=self.scope)

    def run(self) -> Any:
        return self.exe.run(self.main, {"x": X}, [self.loss], scope=self.scope)[0]

    @property
    def stages(self) -> list[int]:
        return [made.stages for made in self.exe.compilations(self.main)]

    def state(self) -> dict[str, Any]:
        names = sorted(v.name for v in self.main.list_vars() if v.persistable)
        return {n: np.array(self.scope.var(n).get_tensor()) for n in names}


def test_the_same_step(monkeypatch: pytest.MonkeyPatch) -> None:
    net, again = Net(), Net()
    losses, state = [net.run() for _ in range(3)], net.state()
    assert len(net.stages) == 1 and net.stages[0] > 1
    assert f"quick in {net.stages[0]} stages: " in str(net.exe.compilations(net.main)[0])
    assert [again.run() for _ in range(3)] == losses
    assert all((value == state[n]).all() for n, value in again.state().items())
    monkeypatch.setattr(tiers, "QUICK", QUICK)
    whole = Net()
    np.testing.assert_allclose(losses, [whole.run() for _ in range(3)], rtol=1e-6)
    assert whole.stages == [1]
    for name, value in whole.state().items():
        np.testing.assert_allclose(state[name], value, rtol=1e-5, atol=1e-6)


def test_ctrl_c_between_two_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """It arrives after the step: the scope shows what the step made."""
    ran: list[int] = []
    called = staged.Staged.__call__

    def interrupted(self: Any, *args: Any) -> Any:
        functions = self._functions

        def last(*given: Any) -> Any:
            ran.append(len(ran))
            if len(ran) == 2:
                os.kill(os.getpid(), signal.SIGINT)
            return functions[-1](*given)

        self._functions = [*functions[:-1], last]
        try:
            return called(self, *args)
        finally:
            self._functions = functions

    monkeypatch.setattr(staged.Staged, "__call__", interrupted)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background is started with SIGINT ignored
    net, undisturbed = Net(), Net()
    net.run()
    with pytest.raises(KeyboardInterrupt):
        net.run()
    state = net.state()
    net.run()
    assert len(ran) == 3 and net.stages[0] > 1
    for _ in range(2):
        undisturbed.run()
    assert all((value == state[n]).all() for n, value in undisturbed.state().items())


@pytest.mark.parametrize(
    ("kind", "where", "small"),
    [(Kind.MANY, OneDevice, False), (Kind.ONE, OneDevice, True), (Kind.ONE, functools.partial(Turns, count=2), False)],
)
def test_who_is_whole(kind: Kind, where: Any, small: bool) -> None:
    """Several steps in one call, a step that shall need little memory, ranks in turn."""
    net = Net()
    compiled = Compiled(net.main.desc, (net.loss.name,), where(jax.devices("cpu")[0]), Recompiles(), memory_optimized=small)
    assert staged.in_stages(compiled.again(tiers.QUICK), kind, None) is None
