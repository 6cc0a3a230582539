"""Sparse gradients in all ways of running a program: literal steps, op by op, NaN checks, passes,
LoD, reports, memory.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidjax as fluid
from fluidjax.ir import proto, text
from fluidjax.ir.verify import verify
from fluidjax.lower.step import Step
from fluidjax.ops.registry import attr_type, lookup
from fluidjax.ops.selected import SelectedRows, total
from tests.examples import examples
from tests.lower import sparse_cases as cases

from ..op_by_op import OpByOp

FEED = {"ids": np.array([[2, 9, 2], [1, 1, 0]])}
CLOSE = {"rtol": 1e-6, "atol": 1e-7}


def started(net="one", optimizer="SGD", extra=None):
    main, startup = cases.build(fluid, net, optimizer, extra)
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    return exe, main, scope


def after(exe, main, scope, steps=3):
    for feed in cases.feeds(steps):
        exe.run(main, feed, scope=scope)
    return scope.get("w")


@st.composite
def sparse_rows(draw):
    height, n = draw(st.sampled_from((1, 6))), draw(st.sampled_from((0, 1, 7)))
    rows = draw(st.lists(st.integers(0, height - 1), min_size=n, max_size=n))
    values = draw(st.lists(st.integers(-8, 8), min_size=2 * n, max_size=2 * n))
    return SelectedRows(np.array(rows, "int64"), np.array(values, "float32").reshape(n, 2), height)


def table_of(rows):
    want = np.zeros((rows.height, 2), "float32")
    for r, v in zip(rows.rows, rows.values, strict=True):
        want[r] += v
    return want


@pytest.mark.slow
@examples(8)
@given(sparse_rows())
def test_merging_keeps_the_table(rows):
    want = table_of(rows)
    merged = rows.merged()
    np.testing.assert_array_equal(rows.dense(), want)
    np.testing.assert_array_equal(merged.dense(), want)
    np.testing.assert_array_equal(merged.merged().dense(), want)
    np.testing.assert_array_equal(merged.table(), want)
    assert merged.on_host().rows.tolist() == sorted(set(rows.rows.tolist()))
    assert int(merged.count) == len(set(rows.rows.tolist()))
    assert (np.diff(merged.rows) > 0).all()
    np.testing.assert_array_equal(total([merged, rows, merged]).dense(), 3 * want)
    np.testing.assert_array_equal(total([rows, want, merged]), 3 * want)
    np.testing.assert_array_equal(
        merged.with_values(merged.values + 1).on_host().values, merged.on_host().values + 1
    )


@pytest.mark.slow
@pytest.mark.parametrize("net", ["one", "shared", "tied"])
@pytest.mark.parametrize("optimizer", ["Adagrad", "Adam lazy"])
def test_literal_and_op_by_op_equal_the_compiled_step(net, optimizer):
    exe, main, scope = started(net, optimizer, "by global norm")
    state = {v.name: scope.get(v.name) for v in main.list_vars() if v.persistable}
    exe.run(main, FEED, scope=scope)
    for step in (Step(main.desc, (), literal=True), OpByOp(main.desc)):
        new, _ = step(dict(state), FEED)
        # Adam divides small numbers
        np.testing.assert_allclose(new["w"], scope.get("w"), rtol=1e-6, atol=1e-6)


def test_the_measured_bytes_of_a_gradient_are_those_of_its_rows():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        ids = fluid.data("ids", [None, 1], "int64")
        loss = fluid.layers.mean(fluid.embedding(ids, [50_000, 4], is_sparse=True, param_attr="w"))
        fluid.optimizer.SGD(0.1).minimize(loss)
        report = fluid.default_main_program().memory_report(batch_size=8)
    table = 50_000 * 4 * 4
    assert table <= report.peak.bytes < table + 2000
    assert "w@GRAD" not in {a.name for a in report.peak.alive if a.bytes > 1000}


def test_nan_in_a_sparse_gradient_is_found():
    exe, main, scope = started("shared")
    w = scope.get("w")
    w[1] = np.inf
    scope.find_var("w").set(w)
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    try:
        with pytest.raises(fluid.errors.NanInfError, match="lookup_table"):
            exe.run(main, FEED, scope=scope)
        w[1] = 1.0
        scope.find_var("w").set(w)
        assert np.isfinite(after(exe, main, scope)).all()
    finally:
        fluid.set_flags({"FLAGS_check_nan_inf": False})


@pytest.mark.first(1)
@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_memory_passes_leave_training_as_it_is(optimizer):
    want = after(*started("shared", optimizer, "by norm"))
    exe, main, scope = started("shared", optimizer, "by norm")
    fluid.memory_optimize(main)
    fluid.release_memory(main)
    np.testing.assert_allclose(after(exe, main, scope), want, **CLOSE)


def test_sequences_of_ids():
    def built(sparse):
        with cases.fresh(fluid) as (main, startup):
            ids = fluid.data("ids", [None, 1], "int64", lod_level=1)
            rows = fluid.layers.embedding(
                ids, [20, 4], is_sparse=sparse, param_attr=cases._start(fluid, "w", 20, 4)
            )
            loss = fluid.layers.mean(fluid.layers.square(fluid.layers.sequence_pool(rows, "sum")))
            fluid.optimizer.Adagrad(0.1).minimize(loss)
        exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
        exe.run(startup, scope=scope)
        for lengths in ([2, 3, 1], [4, 1]):
            data = np.arange(sum(lengths)).reshape(-1, 1) % 4
            exe.run(
                main,
                {"ids": fluid.create_lod_tensor(data, [lengths], fluid.CPUPlace())},
                scope=scope,
            )
        return scope.get("w")

    np.testing.assert_allclose(built(True), built(False), **CLOSE)


def test_a_persistable_sparse_variable_lives_in_the_scope():
    with cases.fresh(fluid) as (main, startup):
        fluid.optimizer.SGD(0.0).minimize(cases.one(fluid))
        block = main.global_block()
        kept = block.create_var(name="kept", shape=[10, 4], dtype="float32", persistable=True)
        kept.change(kind="SELECTED_ROWS")
        block.append_op("assign", {"X": block.var("w@GRAD")}, {"Out": kept})
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    (want,) = exe.run(main, FEED, ["w@GRAD"], scope=scope)
    var = scope.find_var("kept")
    assert var.get_selected_rows().rows.tolist() == [2, 9, 2, 1, 1, 0]
    np.testing.assert_allclose(scope.get("kept"), want)
    with pytest.raises(fluid.errors.FluidTypeError, match="get_selected_rows"):
        var.get_tensor()
    with pytest.raises(fluid.errors.FluidTypeError, match="get_tensor"):
        scope.find_var("w").get_selected_rows()


def test_printing_sparse_rows_is_refused():
    exe, main, scope = started()
    block = main.global_block()
    block.append_op(
        "print",
        {"In": block.var("w@GRAD")},
        {"Out": block.create_var(name="p", dtype="float32")},
        {"first_n": -1},
    )
    with pytest.raises(fluid.errors.UnsupportedError, match=r"'print'.*'w@GRAD' is sparse"):
        exe.run(main, FEED, scope=scope)


def test_a_batch_without_ids_changes_nothing_but_what_decays():
    exe, main, scope = started("one", "Adam")
    before = {
        v.name: scope.get(v.name)
        for v in main.list_vars()
        if v.persistable and v.name.startswith("w")
    }
    exe.run(main, {"ids": np.zeros((0, 3), "int64")}, scope=scope)
    for name, value in before.items():
        np.testing.assert_array_equal(scope.get(name), value)


def lowered(optimizer, height):
    """The compiled training step of a table [height, 8]."""
    with cases.fresh(fluid) as (main, startup):
        ids = fluid.data("ids", [None, 1], "int64")
        rows = fluid.embedding(ids, [height, 8], is_sparse=True, param_attr="w")
        cases.OPTIMIZERS[optimizer](fluid).minimize(fluid.layers.mean(fluid.layers.square(rows)))
    step = Step(main.desc)
    with jax.enable_x64(True):
        state = jax.eval_shape(lambda key: fluid.init_fn(startup)(key), jax.random.key(0))
        feed = {"ids": jax.ShapeDtypeStruct((16, 1), np.int64)}
        return jax.jit(lambda s, f: step(s, f)[0], donate_argnums=0).lower(state, feed).compile()


@pytest.mark.first(2)
@pytest.mark.optimized
@pytest.mark.parametrize("optimizer", ["SGD", "Adagrad", "Adam lazy"])
def test_only_the_rows_of_the_batch_are_touched(optimizer):
    """The step's own memory does not grow with the table, which is written where it lies; so
    nothing copies it.
    """
    small, large = (lowered(optimizer, h).memory_analysis() for h in (1_000, 64_000))
    assert large.temp_size_in_bytes == small.temp_size_in_bytes
    tables = large.argument_size_in_bytes // (64_000 * 8 * 4)
    assert tables == {"SGD": 1, "Adagrad": 2, "Adam lazy": 3}[optimizer]
    assert large.alias_size_in_bytes >= tables * 64_000 * 8 * 4


@pytest.mark.parametrize("rows", [4, 3])
def test_the_gradients_of_two_devices_are_fetched_as_tables(rows):
    ids = np.array([[2, 9, 2], [1, 1, 0], [3, 3, 3], [0, 1, 2]])[:rows]
    exe, main, scope = started()
    (loss,) = (op.output("Out")[0] for op in main.global_block().ops if op.type == "mean")
    both = fluid.CompiledProgram(main).with_data_parallel(
        loss_name=loss, places=fluid.cpu_places(2)
    )
    (got,) = exe.run(both, {"ids": ids}, ["w@GRAD"], scope=scope)
    assert got.shape == (20, 4)
    parts = []
    for part in (ids[:2], ids[2:]):
        alone, program, own = started()
        parts.append(alone.run(program, {"ids": part}, ["w@GRAD"], scope=own)[0])
    want = (parts[0] + parts[1]) / 2
    np.testing.assert_allclose(got, np.concatenate([want, want]), **CLOSE)


def test_a_sparse_program_prints_parses_and_travels():
    for net in ("one", "shared", "tied"):
        _, main, _ = started(net, "Adam lazy", "by value")
        assert text.parse(str(main)) == main.desc
        data = proto.to_bytes(main.desc, attr_type)
        assert proto.to_bytes(proto.from_bytes(data), attr_type) == data
        verify(main.desc, lookup)


LOOKUPS = st.lists(
    st.tuples(st.integers(0, 1), st.booleans(), st.sampled_from(["add", "mul", "max"])),
    min_size=1,
    max_size=4,
)


def trained_on(lookups, optimizer, sparse):
    """Parameters after three steps of a net that looks up two tables in some order, reversed or
    not.
    """
    with cases.fresh(fluid) as (main, startup):
        ids = fluid.data("ids", [None, 3], "int64")
        total_ = None
        for k, (table, reverse, how) in enumerate(lookups):
            attr = cases._start(fluid, f"t{table}", 10, 4)
            given_ids = fluid.layers.flip(ids, [1]) if reverse else ids
            rows = fluid.layers.scale(
                fluid.embedding(given_ids, (10, 4), is_sparse=sparse, param_attr=attr), 1.0 + k
            )
            total_ = (
                rows
                if total_ is None
                else getattr(fluid.layers, "elementwise_" + how)(total_, rows)
            )
        cases.OPTIMIZERS[optimizer](fluid).minimize(
            fluid.layers.mean(fluid.layers.square(fluid.layers.tanh(total_)))
        )
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    for feed in cases.feeds(3):
        exe.run(main, feed, scope=scope)
    return {v.name: scope.get(v.name) for v in main.list_vars() if v.persistable}


@examples(8)
@given(LOOKUPS, st.sampled_from(["SGD", "Momentum", "Adagrad", "RMSProp", "Lamb"]))
def test_random_nets_train_alike_with_sparse_and_dense_gradients(lookups, optimizer):
    """Adam is not among them: docs/sparse.md says why."""
    want = trained_on(lookups, optimizer, False)
    for name, value in trained_on(lookups, optimizer, True).items():
        np.testing.assert_allclose(value, want[name], rtol=2e-6, atol=2e-6, err_msg=name)
