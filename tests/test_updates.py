"""Updates of small parameters that are alike run at once: the same values, and moments that travel as stacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from jax.extend.core import jaxprs_in_params

import fluidjax as fluid
from fluidjax import layers
from fluidjax.lower import updates
from fluidjax.lower.step import Step
from fluidjax.runtime import tiers

from .examples import examples
from .nets import fresh
from .random_programs import build, recipes

DEPTH, WIDTH = 5, 6
NEVER = 10**6
optimizer = fluid.optimizer
OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: optimizer.SGD(0.1),
    "momentum": lambda: optimizer.Momentum(0.1, 0.9, use_nesterov=True),
    "adam": lambda: optimizer.Adam(0.1),
    "decayed adam": lambda: optimizer.Adam(0.1, regularization=fluid.regularizer.L2Decay(0.1)),
    "falling rate": lambda: optimizer.Adam(layers.exponential_decay(0.1, 2, 0.5)),
    "adagrad": lambda: optimizer.Adagrad(0.1),
    "decayed adagrad": lambda: optimizer.DecayedAdagrad(0.1),
    "adadelta": lambda: optimizer.Adadelta(0.1),
    "adamax": lambda: optimizer.Adamax(0.1),
    "rmsprop": lambda: optimizer.RMSProp(0.1, centered=True, momentum=0.9),
    "ftrl": lambda: optimizer.Ftrl(0.1),
    "lamb": lambda: optimizer.Lamb(0.1),  # which needs whole arrays, so it runs one by one
    "lars": lambda: optimizer.LarsMomentum(0.1, 0.9),
    "dpsgd": lambda: optimizer.Dpsgd(0.1, clip=1.0, batch_size=4.0, sigma=0.0),
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every step is quick, and no other executable is begun."""
    before = fluid.get_flags("FLAGS_quick_steps")
    fluid.set_flags({"FLAGS_quick_steps": 100})
    monkeypatch.setattr(tiers, "BEGIN", 1000)
    yield
    fluid.set_flags(before)


@pytest.fixture
def net(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Net]:
    def made(kind: str, together: bool = True, **more: Any) -> Net:
        monkeypatch.setattr(updates, "LEAST", 4 if together else NEVER)
        return Net(OPTIMIZERS[kind], **more)

    return made


class Net:
    """Training of some layers, the third of which learns three times as fast, and one that is larger."""

    def __init__(self, make: Callable[[], Any], sparse: bool = False) -> None:
        with fresh(3) as (self.main, startup):
            x = fluid.data("x", [None, WIDTH])
            word = fluid.data("word", [None, 1], "int64")
            for i in range(DEPTH):
                rate = fluid.ParamAttr(learning_rate=3.0 if i == 2 else 1.0)
                x = layers.layer_norm(layers.fc(x, WIDTH, act="tanh", param_attr=rate))
            table = layers.embedding(word, [9, WIDTH], is_sparse=sparse)
            x = layers.fc(x + layers.reshape(table, [-1, WIDTH]), 2 * WIDTH)
            self.loss = layers.mean(layers.square(x))
            make().minimize(self.loss)
        self.exe, self.scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
        self.exe.run(startup, scope=self.scope)
        self.taken = 0

    def feed(self) -> dict[str, Any]:
        self.taken += 1
        draw = np.random.RandomState(self.taken)
        return {"x": draw.rand(4, WIDTH).astype("float32"), "word": draw.randint(0, 9, (4, 1))}

    def run(self, count: int, *more: Any) -> Net:
        for _ in range(count):
            self.exe.run(self.main, self.feed(), [self.loss, *more], scope=self.scope)
        return self

    @property
    def state(self) -> dict[str, Any]:
        names = [v.name for v in self.main.list_vars() if v.persistable]
        return {n: np.array(self.scope.find_var(n).get_tensor()) for n in names}

    def near(self, other: Net) -> bool:
        theirs = other.state
        for name, value in self.state.items():
            np.testing.assert_allclose(value, theirs[name], rtol=1e-5, atol=1e-6, err_msg=name)
        return True

    @property
    def joints(self) -> list[tuple[str, ...]]:
        """The state that travels stacked."""
        (compiled,) = self.exe.compiled_steps(self.main)
        return [p.names for layout in compiled.layouts for p in layout.packs if p.joint is not None]


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_values_are_those_of_one_by_one(net: Callable[..., Net], kind: str) -> None:
    together = net(kind).run(3)
    assert together.near(net(kind, together=False).run(3))


def test_what_runs_at_once_and_what_travels_stacked(net: Callable[..., Net]) -> None:
    """Weights, and vectors; of the layer with a rate of its own too. All of their moments and powers."""
    this = net("adam").run(1)
    step = Step(this.main.desc, (this.loss.name,))
    sizes = [len(unit) for units in step.updates.values() for unit in units]
    assert sorted(sizes) == [1, 1, 1, DEPTH, 3 * DEPTH]  # by itself: the table, and the last layer's weight and bias
    assert sorted(map(len, this.joints)) == [DEPTH] * 4 + [3 * DEPTH] * 4
    assert not net("lamb").run(1).joints and not net("adam", together=False).run(1).joints
    fluid.set_flags({"FLAGS_quick_steps": 0})
    assert not net("adam").run(1).joints  # XLA tries hard there


def test_fewer_instructions_are_left(net: Callable[..., Net]) -> None:
    def equations(this: Net) -> int:
        step = Step(this.main.desc, (this.loss.name,))
        state = {n: this.state[n] for n in step.reads}
        state.update((joint, np.stack([state.pop(n) for n in names])) for joint, names in step.joints.items())
        with updates.joined():
            return counted(jax.make_jaxpr(lambda s, f: step(s, f))(state, this.feed()).jaxpr)

    def counted(jaxpr: Any) -> int:
        return sum(1 + sum(map(counted, jaxprs_in_params(e.params))) for e in jaxpr.eqns)

    def of_updates(together: bool) -> int:
        return equations(net("adam", together)) - equations(net("sgd", False))

    assert of_updates(True) < of_updates(False) / 2


def test_many_steps_in_one_call(net: Callable[..., Net]) -> None:
    one, other = net("adam"), net("adam", together=False)
    one.exe.run_steps(one.main, [one.feed() for _ in range(4)], [one.loss], scope=one.scope)
    assert one.near(other.run(4))


def test_moments_are_read_and_written_between_steps(net: Callable[..., Net]) -> None:
    def run(together: bool) -> Net:
        this = net("adam", together).run(2)
        name = next(n for n in this.state if "moment1" in n)
        tensor = this.scope.find_var(name).get_tensor()
        tensor.set(np.array(tensor) * 2 + 1, fluid.CPUPlace())
        return this.run(2)

    assert run(True).near(run(False))


def test_a_moment_that_is_fetched_or_read_travels_by_itself(net: Callable[..., Net]) -> None:
    this = net("adam").run(1)
    (moment,) = [v for v in this.main.list_vars() if v.name.startswith("fc_1.w_0") and "moment1" in v.name]
    before = [names for names in this.joints if moment.name in names]
    assert len(before) == 1
    step = Step(this.main.desc, (this.loss.name, moment.name))
    assert len(step.joints) == len(this.joints) - 1 and all(moment.name not in names for names in step.joints.values())
    this.run(2, moment).run(1)  # and back
    assert this.near(net("adam", together=False).run(4))
    with fluid.program_guard(this.main):
        total = this.main.global_block().create_var(name="sum", shape=[1], dtype="float32", persistable=True)
        layers.assign(layers.reduce_sum(moment), total)
    assert all(moment.name not in names for names in Step(this.main.desc, ()).joints.values())


def test_sparse_gradients_and_a_look_at_each_op(net: Callable[..., Net]) -> None:
    assert net("adam", sparse=True).run(3).near(net("adam", together=False, sparse=True).run(3))
    before = fluid.get_flags("FLAGS_check_nan_inf")
    plain = net("adam", together=False).run(4)
    this = net("adam").run(1)
    try:
        fluid.set_flags({"FLAGS_check_nan_inf": True})
        this.run(2)
    finally:
        fluid.set_flags(before)
    assert this.run(1).near(plain)


def test_a_failed_step_leaves_the_moments(net: Callable[..., Net]) -> None:
    this = net("adam").run(2)
    before = this.state
    with pytest.raises(fluid.errors.FluidError, match="word"):
        this.exe.run(this.main, {**this.feed(), "word": np.full((4, 1), 9)}, [this.loss], scope=this.scope)
    after = this.state
    assert all(np.array_equal(before[n], after[n]) for n in before)


def test_a_checkpoint_goes_on_with_one_by_one(net: Callable[..., Net], tmp_path: Any) -> None:
    this = net("adam").run(2)
    with fluid.scope_guard(this.scope):
        fluid.io.save_persistables(this.exe, str(tmp_path), this.main)
    other = net("adam", together=False)
    other.taken = 2
    with fluid.scope_guard(other.scope):
        fluid.io.load_persistables(other.exe, str(tmp_path), other.main)
    assert other.run(2).near(this.run(2))


def test_large_parameters_and_other_attributes_stay_apart(monkeypatch: pytest.MonkeyPatch, net: Callable[..., Net]) -> None:
    monkeypatch.setattr(updates, "MOST", WIDTH)  # the weights are too large
    this = net("adam").run(1)
    assert sorted(map(len, this.joints)) == [3 * DEPTH] * 4
    ops = [op for op in this.main.global_block().ops if op.type == "adam"]
    for op in ops[::2]:
        op._set_attr("epsilon", 0.5)
    step = Step(this.main.desc, ())
    each = [{op.attrs.get("epsilon") for op in unit} for units in step.updates.values() for unit in units]
    assert all(len(values) == 1 for values in each)


@examples(6)
@given(recipes())
def test_random_programs(recipe: list[tuple[Any, ...]]) -> None:
    made = build(recipe, fluid.optimizer.Momentum(0.1, 0.9))

    def train(least: int) -> dict[str, Any]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(updates, "LEAST", least)
            exe, scope = fluid.Executor(), fluid.Scope()
            exe.run(made.startup, scope=scope)
            for _ in range(3):
                exe.run(made.main, feed=made.feed, fetch_list=[made.loss], scope=scope)
        return {v.name: np.array(scope.find_var(v.name).get_tensor()) for v in made.main.list_vars() if v.persistable}

    together, apart = train(2), train(NEVER)
    for name, value in apart.items():
        np.testing.assert_allclose(together[name], value, rtol=1e-5, atol=1e-6, err_msg=name)
