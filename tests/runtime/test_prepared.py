"""Runs that need no further decisions: nothing tells them from other runs but that they are
shorter.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import FluidError
from fluidjax.runtime.calling import again
from fluidjax.runtime.prepared import Prepared

from ..nets import fresh


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The feeds of prepared runs."""
    found: list[Any] = []

    def call(compiled: Any, made: Any, buffers: Any, inputs: Any) -> Any:
        found.append(inputs[0])
        return again(compiled, made, buffers, inputs)

    monkeypatch.setattr("fluidjax.executor.again", call)
    return found


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bool], None]]:
    """Has every run go the long way, or not."""
    usual = Prepared.can_be
    yield lambda on: monkeypatch.setattr(
        Prepared, "can_be", (lambda compiled, scope: False) if on else usual
    )


def words() -> tuple[fluid.Program, fluid.Program, Any, Any]:
    """Ids, a dropout and momentum: fed integers have a range, every step draws, and state goes on."""
    with fresh(5) as (main, startup):
        ids, x = fluid.data("ids", [None, 1], "int64"), fluid.data("x", [None, 3])
        h = layers.dropout(
            layers.fc(layers.embedding(ids, [7, 4]), 3, param_attr=fluid.ParamAttr(name="w")), 0.3
        )
        loss = layers.mean(layers.square(h - x))
        fluid.optimizer.Momentum(0.01, 0.5).minimize(loss)
    return main, startup, loss, h


class Side:
    """A training that does as it is told."""

    def __init__(self) -> None:
        self.main, self.startup, self.loss, self.h = words()
        self.exe, self.scope, self.told = fluid.Executor(), fluid.Scope(), 0
        self.exe.run(self.startup, scope=self.scope)
        self.buffer = np.zeros((2, 3), np.float32)  # filled anew for every run, as loops do

    def feed(self, rows: int = 2, **other: Any) -> dict[str, Any]:
        rng = np.random.default_rng(self.told)
        self.told += 1
        x = self.buffer if rows == 2 else np.empty((rows, 3), np.float32)
        x[...] = rng.standard_normal((rows, 3))
        return {"ids": rng.integers(0, 7, (rows, 1)), "x": x, **other}

    def run(self, feed: Any, fetch: Any = None, numpy: bool = True) -> Any:
        found = self.exe.run(
            self.main,
            feed=feed,
            fetch_list=fetch or [self.loss],
            scope=self.scope,
            return_numpy=numpy,
        )
        return found if numpy else [v.array() for v in found]

    def set_weight(self) -> None:
        self.scope.var("w").set(np.full((4, 3), 0.1 * self.told, np.float32))

    def edit(self) -> None:
        w = self.main.global_block().var("w")
        self.main.global_block().append_op(
            type="scale", inputs={"X": w}, outputs={"Out": w}, attrs={"scale": 0.5}
        )

    def elsewhere(self) -> Any:
        other = fluid.Scope()
        self.exe.run(self.startup, scope=other)
        return self.exe.run(self.main, feed=self.feed(), fetch_list=[self.loss], scope=other)

    def checked(self) -> Any:
        fluid.set_flags({"FLAGS_check_nan_inf": True})
        try:
            return self.run(self.feed())
        finally:
            fluid.set_flags({"FLAGS_check_nan_inf": False})


ACTIONS: dict[str, Callable[[Side], Any]] = {
    "again": lambda s: s.run(s.feed()),
    "jax arrays come back": lambda s: [np.array(v) for v in s.run(s.feed(), numpy=False)],
    "a jax array is fed": lambda s: s.run({**s.feed(), "x": jax.numpy.ones((2, 3), np.float32)}),
    "other size": lambda s: s.run(s.feed(3)),
    "other fetches": lambda s: s.run(s.feed(), [s.h, s.loss.name]),
    "a parameter is fetched": lambda s: s.run(s.feed(), ["w"], numpy=False)[0].shape,
    "lists are fed": lambda s: s.run({n: v.tolist() for n, v in s.feed().items()}),
    "an id out of range": lambda s: s.run(s.feed(ids=np.array([[7], [0]]))),
    "other dtype": lambda s: s.run(s.feed(x=np.zeros((2, 3)))),
    "other rank": lambda s: s.run(s.feed(x=np.zeros((2,), np.float32))),
    "rows that do not agree": lambda s: s.run(s.feed(x=np.zeros((3, 3), np.float32))),
    "nothing is fed": lambda s: s.run({}),
    "something is missing": lambda s: s.run({"x": s.feed()["x"]}),
    "too much is fed": lambda s: s.run(s.feed(y=np.zeros(3))),
    "a parameter is set": Side.set_weight,
    "another scope": Side.elsewhere,
    "checked": Side.checked,
    "the program is edited": Side.edit,
    "the random state is set": lambda s: s.exe.set_random_state(s.main, 3, 40),
    "another executor": lambda s: (
        fluid.Executor().run(s.main, feed=s.feed(), fetch_list=[s.loss], scope=s.scope)[0].shape
    ),
}

WARNED = ("too much is fed", "other rank")


def done(side: Side, action: str) -> Any:
    """What came of it: values, or the error in words; and what was warned of."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            found = ACTIONS[action](side)
        except FluidError as error:
            found = f"{type(error).__name__}: {error}"
    return found, [str(each.message) for each in warned]


@pytest.mark.slow
def test_whatever_happens_between_runs_they_are_as_without_preparation(
    calls: list[Any], never: Callable[[bool], None]
) -> None:
    """Both sides go through all that can happen, each followed by ordinary runs."""
    order = [*ACTIONS, *random.Random(1).sample(list(ACTIONS), len(ACTIONS))]
    order = [step for action in order for step in (action, "again", "jax arrays come back")]
    plain, side = Side(), Side()
    for action in order:
        never(True)
        before = len(calls)
        expected, told = done(plain, action)
        assert len(calls) == before
        never(False)
        found, said = done(side, action)
        assert said == told and bool(said) == (action in WARNED), action
        (
            jax.tree.map(np.testing.assert_array_equal, found, expected)
            if not isinstance(found, str)
            else None
        )
        assert not isinstance(found, str) or found.split(" (")[0] == expected.split(" (")[0], action
    assert np.isfinite(side.scope.get("w")).all()
    assert len(calls) > len(order) // 2
    for name in plain.scope.local_var_names():
        np.testing.assert_array_equal(plain.scope.get(name), side.scope.get(name))
    assert plain.exe.random_state(plain.main)[1] == side.exe.random_state(side.main)[1]


def test_what_is_fed_may_be_filled_anew_while_nobody_waits(calls: list[Any]) -> None:
    side = Side()
    for _ in range(3):
        side.run(side.feed())
    feed = side.feed()
    side.run(feed, numpy=False)
    assert calls[-1]["x"] is not feed["x"]


def test_a_closed_executor_does_not_go_on() -> None:
    side = Side()
    for _ in range(3):
        side.run(side.feed())
    side.exe.close()
    with pytest.raises(RuntimeError, match="closed"):
        side.run(side.feed())


@pytest.mark.parametrize("parallel", [False, True])
def test_feeds_on_other_devices_come_to_the_steps(parallel: bool, calls: list[Any]) -> None:
    """What its owner has laid on another device, or on several, counts as what lies on the host: in
    a first run and in later ones.
    """
    with fresh(1) as (main, startup):
        x = fluid.data("x", [None, 3])
        loss = layers.mean(layers.fc(x, 1))
        fluid.optimizer.SGD(0.1).minimize(loss)
    devices = jax.devices("cpu")
    spread = jax.sharding.NamedSharding(
        jax.sharding.Mesh(np.array(devices), ("all",)), jax.sharding.PartitionSpec("all")
    )
    host = np.arange(24, dtype=np.float32).reshape(8, 3) / 24
    places = [None, devices[1], devices[0], spread, devices[-1], None]
    losses = []
    for order in ([None] * 6, places, places[::-1]):
        exe, scope = fluid.Executor(), fluid.Scope()
        exe.run(startup, scope=scope)
        run = (
            fluid.CompiledProgram(main).with_data_parallel(loss.name, places=fluid.cpu_places(4))
            if parallel
            else main
        )
        feeds = [host if where is None else jax.device_put(host, where) for where in order]
        losses.append(
            [np.mean(exe.run(run, {"x": feed}, [loss], scope=scope)[0]).item() for feed in feeds]
        )
    np.testing.assert_allclose(losses[1:], [losses[0]] * 2, rtol=1e-6)
    assert bool(calls) != parallel
