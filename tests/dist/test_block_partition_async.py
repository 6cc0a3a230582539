"""Asynchronous pservers on a mesh, against NumPy: one gradient after another, in one of the
possible orders.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.devices.placement import Mesh
from fluidjax.dist.spmd.parallel import Parallel
from fluidjax.dist.spmd.pserver import on_mesh
from fluidjax.errors import UnsupportedError
from fluidjax.runtime.runnable import Runnable
from tests.dist.jobs import transpiled
from tests.dist.test_local_digits import digits, network, share
from tests.nets import fresh

MODES: dict[str, dict[str, Any]] = {
    "async": {},
    "half async": {"half_async": True, "runtime_split_send_recv": True},
    "delay compensated": {"enable_dc_asgd": True},
}


def on_ranks(main: fluid.Program, startup: fluid.Program, ranks: int, **config: Any) -> Runnable:
    plan = transpiled(main, startup, ranks, 2, False, config={"sync_mode": False, **config}).plan
    parallel = Parallel(Mesh(tuple(jax.devices()[:ranks])), on_mesh(plan, ranks))
    return Runnable(fluid.Program.from_desc(plan.main), parallel)


class Sgd:
    """param -= rate * (grad + decay * param)."""

    ours = staticmethod(
        lambda: fluid.optimizer.SGD(0.1, regularization=fluid.regularizer.L2Decay(0.2))
    )

    def __call__(self, name: str, param: np.ndarray, grad: np.ndarray) -> np.ndarray:
        return param - 0.1 * (grad + 0.2 * param)


class Adam:
    """Kingma and Ba (2015), as Fluid writes it: with the bias correction in the rate."""

    ours = staticmethod(lambda: fluid.optimizer.Adam(0.1, 0.8, 0.9))

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}

    def __call__(self, name: str, param: np.ndarray, grad: np.ndarray) -> np.ndarray:
        m, v, t = self.state.get(name, (0.0, 0.0, 0))
        m, v, t = 0.8 * m + 0.2 * grad, 0.9 * v + 0.1 * grad * grad, t + 1
        self.state[name] = m, v, t
        return param - 0.1 * np.sqrt(1 - 0.9**t) / (1 - 0.8**t) * m / (np.sqrt(v) + 1e-8)


class Simulation:
    """A line fitted by pservers in NumPy: y = x w + b, half the squared error."""

    def __init__(self, ranks: int, step: Any, first: dict[str, np.ndarray], mode: str) -> None:
        self.step, self.mode = step, mode
        self.server = {n: v.astype(np.float64) for n, v in first.items()}
        self.seen = [dict(self.server) for _ in range(ranks)]

    def gradients(self, rank: int, feed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        x, y = feed["x"].astype(np.float64), feed["y"]
        error = (x @ self.seen[rank]["w"] + self.seen[rank]["b"] - y) * 2 / len(x)
        return {"w": x.T @ error, "b": error.sum(0)}

    def round(self, order: tuple[int, ...], feeds: list[dict[str, np.ndarray]]) -> None:
        sent = [self.gradients(r, f) for r, f in enumerate(feeds)]
        before = [dict(s) for s in self.seen]
        for rank in order:
            for name, grad in sent[rank].items():
                if self.mode == "delay compensated":
                    grad = grad + (self.server[name] - before[rank][name]) * grad * grad
                self.server[name] = self.step(name, self.server[name], grad)
            self.seen[rank] = dict(self.server)
        if self.mode == "half async":
            self.seen = [dict(self.server) for _ in self.seen]


def copies(scope: fluid.Scope, ranks: int, name: str) -> np.ndarray:
    """Every rank's parameter."""
    own = scope.find_var(name).storage.per_rank()  # type: ignore[union-attr]
    return (
        np.broadcast_to(scope.get(name), (ranks, *scope.get(name).shape))
        if own is None
        else np.asarray(own)
    )


@pytest.mark.first(3)
@pytest.mark.parametrize("step", [Sgd, Adam])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ranks", [2, 3])
def test_one_gradient_after_another(ranks: int, mode: str, step: Any) -> None:
    """What the pservers and every rank hold after each step is what some order of arrival gives;
    the order changes.
    """
    with fresh(3) as (main, startup):
        x, y = fluid.data("x", [None, 5]), fluid.data("y", [None, 1])
        loss = layers.mean(
            layers.square_error_cost(layers.fc(x, 1, param_attr="w", bias_attr="b"), y)
        )
        step.ours().minimize(loss)
    first = startup.clone()
    program = on_ranks(main, startup, ranks, **MODES[mode])
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(first, scope=scope)
    values = {n: scope.get(n) for n in "wb"}
    rng, orders = np.random.default_rng(1), set()
    history: list[tuple[tuple[int, ...], list[dict[str, np.ndarray]]]] = []
    for _ in range(6):
        feeds = [
            {
                "x": (x := rng.standard_normal((4, 5), dtype=np.float32)),
                "y": x.sum(1, keepdims=True),
            }
            for _ in range(ranks)
        ]
        exe.run(program, feeds, [loss], scope=scope)
        found = []
        for order in permutations(range(ranks)):
            simulation = Simulation(ranks, step(), values, mode)
            for past in [*history, (order, feeds)]:
                simulation.round(*past)
            same = all(np.allclose(scope.get(n), simulation.server[n], atol=2e-6) for n in "wb")
            seen = {n: np.array([s[n] for s in simulation.seen]) for n in "wb"}
            if same and all(np.allclose(copies(scope, ranks, n), seen[n], atol=2e-6) for n in "wb"):
                found.append(order)
        assert found, "no order of arrival gives what the pservers and ranks hold"
        history.append((found[0], feeds))
        orders.add(found[0])
    assert len(orders) > 1


@pytest.mark.parametrize("mode", MODES)
def test_a_job_of_many_has_a_program_of_few(mode: str) -> None:
    """Hundreds of arrivals are a loop: as ops one after another they would compile for minutes."""
    sizes = set()
    for ranks in (2, 512):
        with fresh(3) as (main, startup):
            loss = layers.mean(layers.fc(fluid.data("x", [None, 5]), 1))
            fluid.optimizer.Adam(0.1).minimize(loss)
        plan = transpiled(main, startup, ranks, 2, False, {"sync_mode": False, **MODES[mode]}).plan
        found = plan.main
        for one in on_mesh(plan, ranks):
            found = one.rewrite(found, {}, frozenset()).desc
        sizes.add(tuple(len(block.ops) for block in found.blocks))
    assert len(sizes) == 1


def test_a_schedule_counts_the_batches_of_all() -> None:
    with fresh() as (main, startup):
        loss = layers.mean(layers.fc(fluid.data("x", [None, 5]), 1))
        rate = layers.exponential_decay(0.1, 1, 0.5)
        fluid.optimizer.SGD(rate).minimize(loss)
    first = startup.clone()
    program = on_ranks(main, startup, 2)
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(first, scope=scope)
    feeds = [{"x": np.ones((2, 5), "float32")}] * 2
    rates = [exe.run(program, feeds, [rate], scope=scope)[0][0] for _ in range(3)]
    np.testing.assert_allclose(rates, 0.1 * 0.5 ** np.array([1, 3, 5]), rtol=1e-6)


@pytest.mark.first(1)
@pytest.mark.parametrize("how", [{"is_sparse": True}, {"is_sparse": True, "is_distributed": True}])
@pytest.mark.parametrize("mode", ["async", "half async"])
def test_rows_of_tables_take_every_gradient(how: dict[str, bool], mode: str) -> None:
    """sgd with each rank's gradient by itself: the sum of all, in whatever order; dense parameters
    beside it.
    """
    with fresh(3) as (main, startup):
        ids, y = fluid.data("ids", [None, 1], "int64"), fluid.data("y", [None, 4])
        rows = fluid.embedding(ids, [30, 4], param_attr="table", **how)
        rows = layers.reshape(rows, [-1, 4])
        bias = layers.create_parameter([4], "float32", name="bias")
        # gradients do not depend on values
        loss = layers.mean(layers.elementwise_mul(layers.elementwise_add(rows, bias), y))
        fluid.optimizer.SGD(0.5).minimize(loss)
    first = startup.clone()
    program = on_ranks(main, startup, 2, **MODES[mode])
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(first, scope=scope)
    expected, bias = scope.get("table"), scope.get("bias")
    rng = np.random.default_rng(2)
    for _ in range(3):
        feeds = [
            {"ids": rng.integers(0, 30, (6, 1)), "y": rng.standard_normal((6, 4), dtype=np.float32)}
            for _ in range(2)
        ]
        exe.run(program, feeds, [loss], scope=scope)
        for feed in feeds:
            np.subtract.at(expected, feed["ids"][:, 0], 0.5 * feed["y"] / 24)
            bias = bias - 0.5 * feed["y"].sum(0) / 24
    np.testing.assert_allclose(scope.get("table"), expected, atol=1e-6)
    np.testing.assert_allclose(scope.get("bias"), bias, atol=1e-6)


def test_what_cannot_be_updated_block_by_block_is_refused() -> None:
    with fresh() as (main, startup):
        loss = layers.mean(layers.fc(fluid.data("x", [None, 5]), 1))
        fluid.optimizer.Lamb(0.1).minimize(loss)
    program = on_ranks(main, startup, 2)
    with pytest.raises(
        UnsupportedError,
        match=r"asynchronously in a job of processes, since op 'lamb' needs whole arrays",
    ):
        program.ranks.desc(program.program)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_digits(mode: str) -> None:
    """Four ranks learn to read digits, each on its own part; an async run with the same seed ends
    with the same bits.
    """
    finals = []
    for _ in range(2 if mode == "async" else 1):
        main, startup, test, guess = network()
        first = startup.clone()
        program = on_ranks(main, startup, 4, **MODES[mode])
        exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
        exe.run(first, scope=scope)
        image, label = digits()
        known = 1400
        for step in zip(
            *(share(image[:known], label[:known], r, 4, 16) for r in range(4)), strict=True
        ):
            exe.run(program, list(step), scope=scope)
        finals.append({p.name: scope.get(p.name) for p in test.all_parameters()})
    alone = fluid.Scope()
    for name, value in finals[0].items():
        np.testing.assert_array_equal(value, finals[-1][name])
        alone.var(name).set(value)
    (read,) = exe.run(test, {"image": image[known:], "label": label[known:]}, [guess], scope=alone)
    assert np.mean(read.argmax(1) == label[known:, 0]) > 0.93
