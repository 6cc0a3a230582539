"""A step within so many bytes, wherever the budget is given: the compiler's own figure keeps it,
and the values are as before.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.base.strategy import BuildStrategy
from fluidjax.errors import FluidTypeError, FluidValueError, UnsupportedError
from fluidjax.ir.recomputed import segment
from tests.nets import fresh

ROWS = 512


@pytest.fixture(scope="module")
def net():
    """Products, dropout and batch_norm: main, startup, loss, a batch."""
    with fresh(3) as (main, startup):
        h, y = fluid.data("x", [None, 24]), fluid.data("y", [None, 1], dtype="int64")
        for _ in range(3):
            h = layers.dropout(layers.fc(h, 24, act="tanh"), 0.3)
        h = layers.batch_norm(h, act="sigmoid")
        loss = layers.mean(layers.softmax_with_cross_entropy(layers.fc(h, 3), y))
        fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    draw = np.random.RandomState(0)
    return (
        main,
        startup,
        loss,
        {"x": draw.randn(ROWS, 24).astype("float32"), "y": draw.randint(0, 3, (ROWS, 1))},
    )


@pytest.fixture(scope="module")
def plain(net):
    """Losses of two steps on one device, and what is left in the scope."""
    return trained(net, net[0])


def trained(net, program, rows=ROWS):
    main, startup, loss, feed = net
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    part = {n: v[:rows] for n, v in feed.items()}
    losses = [exe.run(program, part, [loss.name], scope=scope)[0] for _ in range(2)]
    return losses, {
        v.name: np.array(scope.find_var(v.name).get_tensor())
        for v in main.list_vars()
        if v.persistable
    }


def same(a, b):
    np.testing.assert_array_equal(a[0], b[0])
    for name, value in b[1].items():
        np.testing.assert_allclose(a[1][name], value, rtol=1e-6, atol=1e-8, err_msg=name)


def within(main, budget, places=None, loss=None):
    strategy = BuildStrategy()
    strategy.memory_budget = budget
    compiled = fluid.CompiledProgram(main, strategy)
    return compiled if places is None else compiled.with_data_parallel(loss.name, places=places)


@pytest.mark.slow
def test_a_pure_step(net):
    """The figure is that of jax.jit(step, donate_argnums=0); state and fetches are those of the
    step without a budget.
    """
    main, startup, loss, feed = net
    before = main.desc
    state, key = fluid.init_fn(startup)(jax.random.key(0)), jax.random.key(5)
    plain = jax.jit(fluid.step_fn(main, [loss]), donate_argnums=0).lower(state, feed, key).compile()
    figures = plain.memory_analysis()
    budget = total(figures) - figures.temp_size_in_bytes // 5
    step = fluid.step_fn(main, [loss], budget=budget, batch_size=ROWS)
    assert main.desc is before and not hasattr(fluid.step_fn(main, [loss]), "budget_report")
    chosen = step.budget_report.chosen
    made = jax.jit(step, donate_argnums=0).lower(state, feed, key).compile()
    assert (
        total(made.memory_analysis()) == chosen.figures.total <= budget
        and chosen.way.again
        and chosen.scheduler == "default"
    )
    assert (
        total(step.jit().lower(state, feed, key).compile().memory_analysis())
        == chosen.figures.total
    )
    state = {n: np.array(v) for n, v in state.items()}
    (a, (cost,)), (b, (again,)) = (
        fn({n: jax.numpy.array(v) for n, v in state.items()}, feed, key) for fn in (plain, made)
    )
    assert cost == again
    for name in a:
        np.testing.assert_allclose(a[name], b[name], rtol=1e-6, atol=1e-8, err_msg=name)


def total(figures):
    return (
        figures.argument_size_in_bytes
        + figures.output_size_in_bytes
        + figures.temp_size_in_bytes
        - figures.alias_size_in_bytes
    )


@pytest.mark.slow
def test_a_pure_step_under_the_scheduler_for_memory(net, monkeypatch):
    """Where the default scheduler keeps no budget, the step's own jit does, and no other; entries
    that the step does not read stay.
    """
    main, startup, loss, feed = net
    monkeypatch.setattr("fluidjax.memory.compiler.schedulers", lambda device: ("memory-optimised",))
    given, key = (
        {**fluid.init_fn(startup)(jax.random.key(0)), "other": np.ones(2)},
        jax.random.key(5),
    )
    want, (cost,) = jax.jit(fluid.step_fn(main, [loss]))(given, feed, key)
    step = fluid.step_fn(main, [loss], budget="2MB", batch_size=ROWS)
    chosen = step.budget_report.chosen
    assert chosen.scheduler == "memory-optimised"
    made = step.jit()
    state = {n: v for n, v in given.items() if n != "other"}
    assert total(made.lower(state, feed, key).compile().memory_analysis()) == chosen.figures.total
    with pytest.raises(UnsupportedError, match=r"call step.jit\(\) in place of jax.jit"):
        jax.jit(step)(given, feed, key)
    found, (again,) = made({n: jax.numpy.array(v) for n, v in given.items()}, feed, key)
    np.testing.assert_allclose(again, cost, rtol=1e-6)
    assert found.keys() == want.keys()
    for name in want:
        np.testing.assert_allclose(found[name], want[name], rtol=1e-5, atol=1e-7, err_msg=name)


@pytest.mark.slow
def test_a_compiled_program(net, plain):
    """The search is made at the first run, for what is fed then; a smaller batch needs none, and
    the program stays as it is.
    """
    main, _, _, feed = net
    desc, budget = main.desc, 520_000
    program = within(main, budget)
    assert program.budget_reports == ()
    same(trained(net, program), plain)
    trained(net, program, ROWS // 2)
    (report,) = program.budget_reports
    assert report.chosen.figures.total <= budget and report.chosen.way.again and main.desc is desc
    with pytest.raises(UnsupportedError, match="run_steps takes no BuildStrategy"):
        fluid.Executor().run_steps(program, [feed])


@pytest.mark.thorough
def test_on_two_devices(net):
    """The budget is each device's; what is computed again comes after the ops of the ranks, so all
    devices' statistics stay theirs.
    """
    main, _, loss, _ = net
    places = fluid.cpu_places(2)
    alone = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=places)
    program = within(main, "300KB", places, loss)
    same(trained(net, program), trained(net, alone))
    (report,) = program.budget_reports
    assert report.chosen.figures.total <= 300_000 and report.chosen.way.again
    assert any(segment(op) is not None for op in report.chosen.way.desc.blocks[0].ops)


def test_what_cannot_be(net):
    main, startup, loss, _ = net
    for budget, what in {
        "2 gigs": "units B, KB",
        -1: "positive",
        "0MB": "positive",
        float("inf"): "finite",
    }.items():
        with pytest.raises(FluidValueError, match=what):
            BuildStrategy().memory_budget = budget
        with pytest.raises(FluidValueError, match=what):
            fluid.step_fn(main, [loss], budget=budget, batch_size=4)
    with pytest.raises(FluidTypeError, match='text such as "2GB"'):
        BuildStrategy().memory_budget = True
    with pytest.raises(FluidTypeError, match="belong to a budget"):
        fluid.step_fn(main, [loss], batch_size=4)
    with pytest.raises(FluidValueError, match="pass batch_size="):
        fluid.step_fn(main, [loss], budget="1GB")
    with pytest.raises(FluidValueError, match="has no gradient ops"):
        fluid.Executor().run(within(startup, "1GB"), scope=fluid.Scope())


@pytest.mark.thorough
def test_with_state_in_pieces(net):
    """ReduceStrategy.Reduce: the figure counts a device's part of the state, and the parts are what
    they were.
    """
    main, _, loss, _ = net
    places, strategy = fluid.cpu_places(2), BuildStrategy()
    strategy.reduce_strategy = BuildStrategy.ReduceStrategy.Reduce
    alone = trained(
        net, fluid.CompiledProgram(main, strategy).with_data_parallel(loss.name, places=places)
    )
    strategy = BuildStrategy()
    strategy.reduce_strategy, strategy.memory_budget = BuildStrategy.ReduceStrategy.Reduce, 300_000
    program = fluid.CompiledProgram(main, strategy).with_data_parallel(loss.name, places=places)
    same(trained(net, program), alone)
    (report,) = program.budget_reports
    assert report.chosen.figures.total <= 300_000 and report.chosen.way.again


def test_places_that_take_turns(net):
    main, _, loss, feed = net
    with pytest.warns(), pytest.raises(UnsupportedError, match="take turns on one"):
        fluid.Executor().run(
            within(main, "1GB", [fluid.CPUPlace()] * 9, loss), feed, [loss], scope=fluid.Scope()
        )
