"""Budgets of programs with sequences and with blocks: kept for every bucket that is compiled, and
the values are as before.
"""

from __future__ import annotations

import re

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.base.strategy import BuildStrategy
from fluidjax.errors import FluidValueError, UnsupportedError
from tests.nets import fresh

WIDTH = 16


def trained(net, program, feeds):
    _, startup, loss = net
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    return [exe.run(program, feed, [loss.name], scope=scope)[0] for feed in feeds]


def within(main, budget):
    strategy = BuildStrategy()
    strategy.memory_budget = budget
    return fluid.CompiledProgram(main, strategy)


def least(main, loss, **sizes):
    """What a refusal tells as the least."""
    with pytest.raises(FluidValueError, match=r"the least that was found is") as refused:
        fluid.memory_optimize(main.clone(), budget=100, fetch_list=[loss.name], **sizes)
    return int(re.search(r"found is ([\d,]+) ", str(refused.value))[1].replace(",", ""))


@pytest.fixture(scope="module")
def words():
    """Sequences of words: main, startup, loss."""
    with fresh(3) as (main, startup):
        h = layers.embedding(fluid.data("words", [None, 1], "int64", lod_level=1), [20, WIDTH])
        for _ in range(2):
            h = layers.dropout(layers.fc(h, WIDTH, act="tanh"), 0.2)
        logits = layers.fc(layers.sequence_pool(h, "sum"), 3)
        loss = layers.mean(
            layers.softmax_with_cross_entropy(logits, fluid.data("y", [None, 1], "int64"))
        )
        fluid.optimizer.Momentum(0.001, 0.9).minimize(loss)
    return main, startup, loss


def batch(count, longest):
    draw = np.random.RandomState(longest)
    lengths = [longest] * count
    rows = draw.randint(0, 20, (sum(lengths), 1)).astype("int64")
    return {
        "words": fluid.create_lod_tensor(rows, [lengths]),
        "y": draw.randint(0, 3, (count, 1)).astype("int64"),
    }


@pytest.mark.slow
def test_every_bucket_is_within_the_budget(words):
    """A search for the first batch, none for a smaller one, another for a larger one, and a refusal
    leaves all as it was.
    """
    main, startup, loss = words
    program = within(main, least(main, loss, batch_size=8, lengths=96))
    feeds = [batch(8, 24), batch(8, 16), batch(8, 96), batch(8, 24)]
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    found = [exe.run(program, feed, [loss.name], scope=scope)[0] for feed in feeds[:3]]
    with pytest.raises(FluidValueError, match="the least that was found is"):
        exe.run(program, batch(8, 256), [loss.name], scope=scope)
    found.append(exe.run(program, feeds[3], [loss.name], scope=scope)[0])
    np.testing.assert_allclose(found, trained(words, main, feeds), rtol=1e-6)
    reports = program.budget_reports
    assert len(reports) == 2 and reports[-1].chosen.way.again
    assert all(r.chosen.figures.total <= r.budget for r in reports)


@pytest.mark.slow
def test_sequences_in_place_and_as_a_pure_step(words):
    """memory_report shows the bytes; a pure step takes what bucketed makes."""
    main, startup, loss = words
    sizes = {"batch_size": 8, "lengths": 64}
    budget = least(main, loss, **sizes)
    small = main.clone()
    report = fluid.memory_optimize(small, budget=budget, fetch_list=[loss.name], **sizes)
    assert (
        small.memory_report(fetch_list=[loss.name], **sizes).fused
        == report.chosen.figures.total
        <= budget
    )
    np.testing.assert_allclose(
        *(trained(words, program, [batch(8, 64)] * 2) for program in (small, main)), rtol=1e-6
    )
    step = fluid.step_fn(main, [loss], budget=10**8, **sizes)
    state, feed = fluid.init_fn(startup)(jax.random.key(0)), fluid.bucketed(batch(8, 64))
    made = step.jit().lower(state, feed, jax.random.key(1)).compile().memory_analysis()
    assert made.temp_size_in_bytes == step.budget_report.chosen.figures.temporaries
    with pytest.raises(UnsupportedError, match="is ragged"):
        main.memory_report(8, [loss])


def recurrent(h):
    rnn, steps = layers.StaticRNN(), layers.transpose(h, [1, 0, 2])
    with rnn.step():
        x = rnn.step_input(steps)
        before = rnn.memory(shape=[-1, WIDTH], batch_ref=x)
        after = layers.fc([x, before], WIDTH, act="tanh")
        rnn.update_memory(before, after)
        rnn.step_output(after)
    return layers.transpose(rnn(), [1, 0, 2])


def looped(h):
    counter, times = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    return layers.while_loop(
        lambda a, i: layers.less_than(i, times),
        lambda a, i: [layers.tanh(a * 0.9), i + 1],
        [h, counter],
    )[0]


def branched(h):
    return layers.cond(
        layers.reduce_mean(h) > 0.0, lambda: layers.tanh(h * 2.0), lambda: layers.sigmoid(h)
    )


@pytest.mark.slow
@pytest.mark.parametrize("block", [recurrent, looped, branched])
def test_programs_with_blocks(block):
    """What is beside the block is computed again, what the block gives is kept."""
    with fresh(3) as (main, startup):
        h = fluid.data("x", [None, 4, WIDTH])
        for _ in range(2):
            h = layers.dropout(layers.fc(h, WIDTH, num_flatten_dims=2, act="tanh"), 0.2)
        h = layers.fc(block(h), WIDTH, num_flatten_dims=2, act="tanh")
        loss = layers.mean(layers.square(h))
        fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    net, feed = (
        (main, startup, loss),
        {"x": np.random.RandomState(0).randn(256, 4, WIDTH).astype("float32")},
    )
    budget = least(main, loss, batch_size=256)
    program = within(main, budget)
    np.testing.assert_allclose(
        trained(net, program, [feed] * 2), trained(net, main, [feed] * 2), rtol=1e-6
    )
    (report,) = program.budget_reports
    assert report.chosen.figures.total <= budget and report.chosen.way.again
    made = report.chosen.way.desc.blocks[0].ops
    assert sum(bool(op.blocks) for op in made) == sum(
        bool(op.blocks) for op in main.desc.blocks[0].ops
    )
