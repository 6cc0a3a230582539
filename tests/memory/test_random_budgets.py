"""Whatever is chosen to be computed again, of random programs with dropout: the values stay, bit
for bit where nothing is fused.
"""

from __future__ import annotations

import re
from itertools import chain, combinations

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidjax as fluid
from fluidjax.errors import FluidValueError
from fluidjax.ir.desc import FrozenMap, OpDesc
from fluidjax.ir.verify import verify
from fluidjax.lower.step import Step
from fluidjax.memory.budget import Sizing, fit
from fluidjax.memory.kept import Choice
from fluidjax.memory.ways import Ways
from fluidjax.ops.registry import lookup
from tests.examples import examples
from tests.nets import fresh
from tests.random_programs import build, recipes

DROPS = st.lists(st.tuples(st.just("dropout"), st.integers(0, 50)), min_size=1, max_size=2)


@examples(4)
@given(recipes(), DROPS)
def test_every_way_gives_what_the_program_gives(recipe, drops):
    """The loss and all state, op by op: dropouts drop the same, averages move once."""
    net = build([x for pair in zip(recipe, drops * len(recipe), strict=False) for x in pair])
    state, key = fluid.init_fn(net.startup)(jax.random.key(0)), jax.random.key(9)
    want, (loss,) = Step(net.main.desc, (net.loss.name,))(state, net.feed, key)
    for way in Ways(net.main.desc, frozenset({net.loss.name}), 3).found[1:]:
        verify(way.desc, lookup)
        found, (again,) = Step(way.desc, (net.loss.name,))(state, net.feed, key)
        np.testing.assert_array_equal(again, loss)
        for name, value in want.items():
            np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.thorough
@examples(6)
@given(recipes(), DROPS)
def test_the_least_that_is_told_is_kept(recipe, drops):
    """A refusal's figure is a budget that is met, and memory_report then shows the same bytes; the
    run gives what it gave.
    """
    net = build([*recipe, *drops])
    given = {"batch_size": 1000, "fetch_list": [net.loss]}
    with pytest.raises(FluidValueError, match=r"the least that was found is") as refused:
        fit(net.main, 100, Sizing(1000), [net.loss])
    least = int(re.search(r"found is ([\d,]+) ", str(refused.value))[1].replace(",", ""))
    feed = {"x": np.random.default_rng(1).standard_normal((1000, 4), dtype=np.float32)}
    before = trained(net, feed)
    report = fluid.memory_optimize(net.main, budget=least, **given)
    assert report.chosen.figures.total <= least
    assert net.main.memory_report(**given).fused == report.chosen.figures.total
    for a, b in zip(trained(net, feed), before, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def trained(net, feed):
    scope, exe = fluid.Scope(), fluid.Executor()
    exe.run(net.startup, scope=scope)
    return [exe.run(net.main, feed, [net.loss.name], scope=scope)[0] for _ in range(2)]


@st.composite
def nets(draw):
    """Up to five ops of one or two outputs that read what is before them, bytes, seconds, and what
    the backward pass reads.
    """
    ops, free = [], {}
    for i in range(draw(st.integers(1, 5))):
        reads = tuple(n for n in free if draw(st.booleans()))
        outs = tuple(f"v{i}_{k}" for k in range(draw(st.integers(1, 2))))
        ops.append(OpDesc(i, "op", FrozenMap({"X": (*reads, "fed")}), FrozenMap({"Out": outs})))
        free.update((n, ops[-1]) for n in outs)
    free = {n: op for n, op in free.items() if draw(st.integers(0, 5))}  # some are kept anyway
    needed = {n for n in free if draw(st.booleans())}
    return Choice(
        ops,
        free,
        needed,
        {n: draw(st.integers(0, 9)) for n in free},
        {op.uid: draw(st.integers(1, 9)) * 1.0 for op in ops},
    )


def cost(choice, kept, price):
    """Of keeping these, by following what is needed."""
    wanted, ran = [n for n in choice.needed if n not in kept], {}
    while wanted:
        op = choice.free[wanted.pop()]
        if op.uid not in ran:
            ran[op.uid] = choice.seconds[op.uid]
            wanted += [n for n in op.reads if n in choice.free and n not in kept]
    return price * sum(choice.size[n] for n in kept) + sum(ran.values())


@examples(60)
@given(nets(), st.sampled_from([0.25, 0.5, 1.0, 2.0]))
def test_no_choice_of_what_is_kept_is_cheaper(choice, price):
    """Against all subsets."""
    every = chain.from_iterable(combinations(choice.free, n) for n in range(len(choice.free) + 1))
    least = min(cost(choice, set(kept), price) for kept in every)
    assert cost(choice, set(choice.kept(price)), price) == pytest.approx(least, abs=1e-3)


def test_why_nothing_is_computed_again():
    """The refusal says which ops of the program are not run twice, and where they are."""
    with fresh() as (main, _):
        host = main.current_block().create_var(name="host", shape=[-1, 4], dtype="float32")
        h = fluid.layers.py_func(lambda v: v, fluid.data("x", [None, 4]), host)
        loss = fluid.layers.mean(fluid.layers.fc(h, 4, bias_attr=False))
        fluid.optimizer.SGD(0.1).minimize(loss)
    with pytest.raises(
        FluidValueError,
        match=(
            r"nothing is computed again, since .*op 'py_func' \(.*test_random_budgets.py:\d+\): it"
            r" does"
        ),
    ):
        fit(main, 100, Sizing(4), [loss])
