"""Values that the backward pass computes again: the same numbers as before, in fewer bytes."""

from __future__ import annotations

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import passes
from fluidjax.base.units import bytes_of
from fluidjax.errors import FluidTypeError, FluidValueError
from fluidjax.passes.recompute import Recompute
from fluidjax.transpiler.apply import apply_passes
from tests.nets import fresh

CUTS = ("dropout_0.tmp_0", "relu_0.tmp_0")


def net():
    """Convolution, batch_norm, dropout, products: (loss, main, startup, feed)."""
    with fresh(3) as (main, startup):
        x, y = fluid.data("x", [None, 2, 6, 6]), fluid.data("y", [None, 1], dtype="int64")
        h = fluid.layers.conv2d(x, 4, 3, padding=1)
        h = fluid.layers.batch_norm(h, act="tanh")
        h = fluid.layers.dropout(h, 0.4, dropout_implementation="upscale_in_train")
        h = fluid.layers.relu(fluid.layers.conv2d(h, 4, 3) + 0.1)
        for _ in range(2):
            h = fluid.layers.dropout(fluid.layers.fc(h, 16, act="sigmoid"), 0.2)
        loss = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(fluid.layers.fc(h, 3), y))
        fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    draw = np.random.RandomState(0)
    return (
        loss,
        main,
        startup,
        {"x": draw.randn(5, 2, 6, 6).astype("float32"), "y": draw.randint(0, 3, (5, 1))},
    )


def trained(main, startup, feed, loss):
    """Three losses, and what is left in the scope."""
    scope, exe = fluid.Scope(), fluid.Executor()
    exe.run(startup, scope=scope)
    losses = [exe.run(main, feed, [loss.name], scope=scope)[0] for _ in range(3)]
    left = {
        v.name: np.array(scope.find_var(v.name).get_tensor())
        for v in main.list_vars()
        if v.persistable and scope.find_var(v.name)
    }
    return losses, left


@pytest.fixture(scope="module")
def plain():
    loss, main, startup, feed = net()
    return loss, main, startup, feed, trained(main, startup, feed, loss)


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "pas", [Recompute(), Recompute(CUTS), Recompute(CUTS, heavy=False)], ids=str
)
def test_a_run_gives_what_it_gave(plain, pas):
    """Losses, parameters, velocities and moving averages; dropouts drop the same, and averages move
    once.
    """
    loss, main, startup, feed, (losses, left) = plain
    new, result = apply_passes(main, pas, [loss])
    assert (
        result.changed
        and sum(".subprog_" in n for op in new.desc.blocks[0].ops for n in op.writes) > 5
    )
    found = trained(new, startup, feed, loss)
    np.testing.assert_allclose(found[0], losses, rtol=1e-6)
    assert found[1].keys() == left.keys()
    for name, value in left.items():
        np.testing.assert_allclose(found[1][name], value, rtol=1e-5, atol=1e-7, err_msg=name)


def test_what_is_heavy_is_computed_once(plain):
    """And what a checkpoint, a fetch or a later segment needs is kept."""
    loss, main, *_ = plain
    new, _ = apply_passes(main, Recompute(CUTS, heavy=False), [loss])
    again = [op for op in new.desc.blocks[0].ops if any(".subprog_" in n for n in op.writes)]
    assert {op.type for op in again}.isdisjoint({"conv2d", "mul"}) and {
        "batch_norm",
        "dropout",
    } <= {op.type for op in again}
    read = {n for op in new.desc.blocks[0].ops for n in op.reads}
    assert any(".subprog_" in n for n in read) and read.isdisjoint(
        f"{n}.subprog_{k}" for n in (*CUTS, loss.name) for k in range(3)
    )


def test_what_may_not_run_twice_is_kept():
    with fresh() as (main, _):
        x = fluid.data("x", [None, 4])
        counter = fluid.layers.create_global_var([1], 0.0, "float32", persistable=True)
        h = fluid.layers.tanh(fluid.layers.fc(x, 4))
        h = fluid.layers.Print(h)
        host = main.current_block().create_var(name="host", shape=[-1, 4], dtype="float32")
        h = fluid.layers.py_func(lambda v: v, h, host, backward_func=lambda x, out, slope: slope)
        h = fluid.layers.tanh(h)
        h = fluid.layers.elementwise_add(h, fluid.layers.increment(counter))
        fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.square(h)))
    again = [
        op.type
        for op in passes.run(Recompute(), main.desc).desc.blocks[0].ops
        if any(".subprog_" in n for n in op.writes)
    ]
    assert {"increment", "print", "py_func"}.isdisjoint(again) and again.count("tanh") == 2
    twice = passes.run(Recompute(), passes.run(Recompute(), main.desc).desc)
    assert not twice.changed and "already" in str(twice.refusals[0])


@pytest.mark.thorough
def test_a_budget(plain):
    """The compiler's own figure is within it; the run afterwards gives what it gave."""
    loss, _, startup, feed, (losses, _) = plain
    _, main, startup, _ = net()
    before = main.memory_report(batch_size=4000, fetch_list=[loss.name])
    least = min(f.total for f in before.compiled.values())
    report = fluid.memory_optimize(
        main, budget=least - 10_000, batch_size=4000, fetch_list=[loss.name]
    )
    assert report.chosen.figures.total <= least - 10_000 and report.chosen.way.again
    assert (
        main.memory_report(batch_size=4000, fetch_list=[loss.name]).fused
        == report.chosen.figures.total
    )
    assert "ops twice" in str(report) and "are computed again for" in str(report)
    np.testing.assert_allclose(trained(main, startup, feed, loss)[0], losses, rtol=1e-6)


def test_budgets_that_cannot_be():
    with fresh() as (main, _):
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 1))
        fluid.optimizer.SGD(0.1).minimize(loss)
    desc = main.desc
    with pytest.raises(
        FluidValueError,
        match=r"cannot be made to need 100 bytes: the least that was found is [\d,]+ \(.*for op"
        r" 'mean_grad' \(.*test_recompute.py:\d+\), or feed fewer samples at a time",
    ):
        fluid.memory_optimize(main, budget=100, batch_size=4, fetch_list=[loss])
    assert main.desc is desc
    wrong = {
        "2 gigs": "one of the units B, KB",
        "-1MB": "positive number",
        0: "positive",
        float("nan"): "finite",
        "": "units",
    }
    for budget, text in wrong.items():
        with pytest.raises(FluidValueError, match=text):
            fluid.memory_optimize(main, budget=budget, batch_size=4)
    with pytest.raises(FluidTypeError, match='text such as "2GB"'):
        fluid.memory_optimize(main, budget=[1])
    with pytest.raises(FluidTypeError, match="belong to a budget"):
        fluid.memory_optimize(main, batch_size=4)
    with pytest.raises(FluidValueError, match="pass batch_size="):
        fluid.memory_optimize(main, budget="1GB")
    with pytest.raises(FluidValueError, match="has no gradient ops"):
        fluid.memory_optimize(
            main.clone(for_test=True), budget="1GB", batch_size=4, fetch_list=[loss.name]
        )
    assert [bytes_of(b) for b in ("2GB", "1.5 gib", 7, "7", 7.0)] == [2 * 10**9, 3 * 2**29, 7, 7, 7]
    assert [bytes_of(b) for b in (np.int64(7), np.float32(7.9))] == [7, 7]
    for budget in ("0", "-0.5", 0.5, 10**400, "9" * 400, "1e6", float("-inf")):
        with pytest.raises(FluidValueError, match="budget"):
            bytes_of(budget)
    for other in (True, np.True_, 1j, b"1MB"):
        with pytest.raises(FluidTypeError, match="budget"):
            bytes_of(other)


def test_shared_names_are_left_alone(plain):
    _, main, *_ = plain
    result = passes.run(Recompute(), passes.run("memory_optimize", main.desc).desc)
    assert not result.changed and "its variables share names ('" in str(result.refusals[0])
