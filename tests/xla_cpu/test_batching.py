"""Small ops that are alike run at once: the values are those of the ops one by one, and so few are
left to compile.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.lower.step import Step
from fluidjax.xla_cpu import batching, stacks
from tests.nets import fresh

FIELDS = 4


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few ops are enough."""
    monkeypatch.setattr(batching, "SAVED", 4)
    monkeypatch.setattr(batching, "LEAST", 3)
    monkeypatch.setattr(stacks, "LEAST", 3)


def pairs(x: Any) -> list[Any]:
    """The products of all pairs of fields, as a Python loop writes them."""
    return [x[:, i] * x[:, j] for i in range(FIELDS) for j in range(i)]


def summed(x: Any) -> Any:
    return layers.sum([layers.reduce_sum(p, dim=1, keep_dim=True) for p in pairs(x)])


def stacked(x: Any) -> Any:
    return layers.stack(pairs(x), axis=1)


def joined(x: Any) -> Any:
    """Rows that an op reads which knows no stacks, and one that is fetched."""
    return layers.concat([layers.tanh(p) for p in pairs(x)], axis=1)


def chosen(x: Any) -> Any:
    """Rows of two stacks, in another order than theirs, with one that is not a row between them."""
    parts = pairs(x)
    others = [layers.relu(p) for p in parts]
    mixed = [
        layers.elementwise_sub(a, b) for a, b in zip(parts, [*others[3:], *parts[:3]], strict=True)
    ]
    return layers.sum([*mixed, layers.scale(mixed[0], 3.0)])


def overlapping(x: Any) -> Any:
    """Boxes of two fields that lie over one another, in a part of what is cut."""
    cuts = [layers.slice(x, [1], [i], [i + 2]) for i in range(FIELDS - 1)]
    return layers.sum([layers.square(c) for c in cuts])


def written_again(x: Any) -> Any:
    """A name that is written after the ops that read it, which must not see the new value."""
    base = layers.scale(x, 2.0)
    before = [layers.scale(base[:, i], 1.0 + i) for i in range(FIELDS)]
    layers.assign(layers.tanh(x), base)
    after = [layers.scale(base[:, i], 1.0 + i) for i in range(FIELDS)]
    return layers.sum([layers.elementwise_mul(a, b) for a, b in zip(before, after, strict=True)])


NETS = (summed, stacked, joined, chosen, overlapping, written_again)


def built(net: Any) -> tuple[Step, Step, dict[str, Any], dict[str, Any]]:
    """The training step of a net, the same with ops one by one, a state and a feed of whole
    numbers, whose sums are exact.
    """
    with fresh(1) as (main, _):
        x = fluid.data("x", [None, FIELDS, 2])
        weight = layers.create_parameter([FIELDS, 2], "float32", name="w")
        out = net(layers.elementwise_mul(x, weight, axis=1))
        loss = layers.reduce_sum(layers.elementwise_mul(out, out))
        fluid.optimizer.SGD(0.5).minimize(loss)
    fetches = (loss.name, "w@GRAD", out.name)
    rng = np.random.default_rng(3)
    state = {
        n: rng.integers(1, 4, v.shape).astype("float32")
        for n, v in main.desc.blocks[0].vars.items()
        if v.persistable
    }
    feed = {"x": jax.numpy.asarray(rng.integers(-3, 4, (2, FIELDS, 2)).astype("float32"))}
    step = Step(main.desc, fetches)
    return (
        step,
        Step(main.desc, fetches, literal=True),
        {n: jax.numpy.asarray(state[n]) for n in step.reads},
        feed,
    )


@pytest.mark.first(2)
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("net", NETS, ids=lambda net: net.__name__)
def test_values_are_those_of_the_ops_one_by_one(net: Any) -> None:
    step, one_by_one, state, feed = built(net)
    assert isinstance(step.schedule, stacks.Batches)
    assert max(map(len, step.schedule.units)) >= 3
    assert Counter(op.uid for unit in step.schedule.units for op in unit) == Counter(
        op.uid for op in step.ops
    )
    rounded = net in (joined, written_again)  # tanh, whose sums are not exact
    for got, want in zip(
        *(jax.tree.leaves(jax.jit(each)(state, feed)) for each in (step, one_by_one)), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-5 if rounded else 0)


def test_a_loop_is_a_few_operations() -> None:
    """What XLA is given is far less than the ops of the program."""
    with fresh(1) as (main, _):
        x = fluid.data("x", [None, 14, 2])
        x.stop_gradient = False
        loss = layers.mean(layers.sum([x[:, i] * x[:, j] for i in range(14) for j in range(i)]))
        (given,) = fluid.gradients([loss], [x])
        assert given is not None
    step = Step(main.desc, (loss.name, given.name))
    feed = {"x": jax.ShapeDtypeStruct((2, 14, 2), "float32")}
    text = jax.jit(lambda feed: step({}, feed)[1]).lower(feed).as_text()
    assert len(step.ops) > 6 * 91 and text.count("stablehlo.") < len(step.ops) / 4


def test_programs_of_other_ops_keep_their_order() -> None:
    with fresh(1) as (main, _):
        x = fluid.data("x", [None, 14, 2])
        outs = [layers.scale(x, float(i)) for i in range(120)]
        layers.Print(outs[0])
    assert Step(main.desc, (outs[-1].name,)).schedule is None


def test_levels_keep_writes_behind_reads() -> None:
    with fresh(1) as (main, _):
        x = fluid.data("x", [2])
        y = layers.scale(x, 2.0)
        layers.tanh(y)
        layers.assign(x, y)
        layers.relu(y)
    assert batching.levels(main.desc.blocks[0].ops) == [1, 2, 3, 4]
