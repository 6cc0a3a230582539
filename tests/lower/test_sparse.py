"""Sparse gradients: what ops make of them, and training with them, are those of Paddle 1.8.5.
docs/sparse.md.
"""

from __future__ import annotations

import gzip
import json
import pathlib

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.feeds.fetching import to_tensor
from fluidjax.lower.step import Step
from fluidjax.ops.selected import SelectedRows
from tests.lower import sparse_cases as cases

RECORD = json.loads(
    gzip.decompress(
        (pathlib.Path(__file__).parents[1] / "data" / "sparse_1.8.5.json.gz").read_bytes()
    )
)
CLOSE = {"rtol": 1e-6, "atol": 1e-6}


def value_of(given):
    if isinstance(given, cases.Rows):
        return SelectedRows(np.array(given.rows), given.values, cases.HEIGHT)
    return [value_of(v) for v in given] if isinstance(given, list) else given


def run_op(kind, inputs, attrs, outputs):
    """The op in a program of its own: {slot: value}."""
    main = fluid.Program()
    block, feed, ins, outs = main.global_block(), {}, {}, {}
    for slot, given in inputs.items():
        ins[slot] = []
        for i, v in enumerate(given if isinstance(given, list) else [given]):
            var = block.create_var(
                name=f"{slot}_{i}",
                shape=value_of(v).shape,
                dtype=str(value_of(v).dtype),
                is_data=True,
            )
            if isinstance(v, cases.Rows):
                var.change(kind="SELECTED_ROWS")
            ins[slot].append(var)
            feed[var.name] = value_of(v)
    for slot, what in outputs.items():
        outs[slot] = (
            ins[what][0] if what in ins else block.create_var(name="out_" + slot, dtype="float32")
        )
    block.append_op(kind, ins, outs, attrs)
    fetched = Step(main.desc, tuple(v.name for v in outs.values()))({}, feed)[1]
    for slot, what in outputs.items():
        if what in ("sparse", "dense"):
            assert outs[slot].desc.kind == {"sparse": "SELECTED_ROWS", "dense": "LOD_TENSOR"}[what]
    return dict(zip(outs, fetched, strict=True))


@pytest.mark.first(8)
@pytest.mark.parametrize("name", cases.OPS)
def test_ops_equal_those_of_paddle(name):
    got = run_op(*cases.OPS[name])
    for slot, want in RECORD["ops"][name].items():
        have = to_tensor(got[slot])
        if not isinstance(want, dict):
            np.testing.assert_allclose(have, np.array(want), **CLOSE)
            continue
        assert isinstance(have, SelectedRows)
        assert have.rows.tolist() == want["rows"]
        assert have.height == want["height"]
        np.testing.assert_allclose(have.values, np.array(want["values"]), **CLOSE)


@pytest.mark.parametrize("name", cases.REFUSED)
def test_ops_that_paddle_refuses_are_refused(name):
    assert RECORD["refused"][name] == "EnforceNotMet"
    with pytest.raises(
        (fluid.errors.UnsupportedError, fluid.errors.EnforceNotMet), match="spars"
    ) as caught:
        run_op(*cases.REFUSED[name])
    assert cases.REFUSED[name][0] in str(caught.value)


@pytest.mark.first(10)
@pytest.mark.parametrize("case", cases.TRAINING, ids=lambda case: "-".join(map(str, case)))
def test_training_equals_paddle(case):
    want = RECORD["training"]["/".join(map(str, case))]
    main, startup = cases.build(fluid, *case)
    assert [op.type for op in main.global_block().ops] == want["ops"]
    assert (
        sorted(n for n, v in main.global_block().vars.items() if v.desc.kind == "SELECTED_ROWS")
        == want["sparse"]
    )
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    for step, feed in enumerate(cases.feeds()):
        exe.run(main, feed=feed, scope=scope)
        for name, values in want["after"][step // 2].items() if step % 2 else ():
            got = np.array(scope.find_var(name).get_tensor()).ravel()
            np.testing.assert_allclose(got, values, **CLOSE, err_msg=f"{name} after step {step}")


def test_the_recording_is_of_these_cases():
    assert set(RECORD["ops"]) == set(cases.OPS)
    assert set(RECORD["training"]) == {"/".join(map(str, case)) for case in cases.TRAINING}


# -- what a user sees ------------------------------------------------------------------------------

FEED = {"ids": np.array([[2, 9, 2], [1, 1, 0]])}


def trained(net="one", optimizer="SGD", extra=None):
    main, startup = cases.build(fluid, net, optimizer, extra)
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    return exe, main, scope


def test_a_fetched_gradient_is_the_table_or_its_rows():
    exe, main, scope = trained()
    (table,) = exe.run(main, FEED, ["w@GRAD"], scope=scope)
    exe, main, scope = trained()
    (rows,) = exe.run(main, FEED, ["w@GRAD"], scope=scope, return_numpy=False)
    assert table.shape == rows.shape == (10, 4)
    assert rows.rows.tolist() == [2, 9, 2, 1, 1, 0]
    assert rows.rows.dtype == np.int64
    # looked up as padding, 2 is zero, and the loss flat there
    assert set(np.nonzero(table.any(axis=1))[0]) == {0, 1, 9}
    np.testing.assert_allclose(table[1], rows.values[3] + rows.values[4], rtol=1e-6)


def test_merged_rows_are_fetched_without_spare_entries():
    exe, main, scope = trained("shared")
    (rows,) = exe.run(main, FEED, ["w@GRAD"], scope=scope, return_numpy=False)
    assert rows.rows.tolist() == [0, 1, 2, 9]
    assert rows.values.shape == (4, 4)
    exe, main, scope = trained("shared")
    np.testing.assert_allclose(
        exe.run(main, FEED, ["w@GRAD"], scope=scope)[0], rows.dense(), rtol=1e-6
    )


def test_several_steps_at_once():
    feeds = list(cases.feeds(3))
    exe, main, scope = trained()
    each = [exe.run(main, f, ["w@GRAD"], scope=scope)[0] for f in feeds]
    w = scope.get("w")
    exe, main, scope = trained()
    (stacked,) = exe.run_steps(main, feeds, ["w@GRAD"], scope=scope)
    np.testing.assert_allclose(stacked, each, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(scope.get("w"), w, rtol=1e-6)


def test_only_the_rows_that_are_there_count():
    with cases.fresh(fluid) as (main, startup):
        fluid.optimizer.SGD(0.0).minimize(cases.one(fluid))
        rows = fluid.layers.merge_selected_rows(main.global_block().var("w@GRAD"))
        values = fluid.layers.get_tensor_from_selected_rows(rows)
        outs = [values, fluid.layers.mean(values), fluid.layers.reduce_max(values)]
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    got, mean, top = exe.run(main, FEED, outs, scope=scope)
    assert got.shape == (4, 4)
    np.testing.assert_allclose(mean, [got.mean()], rtol=1e-6)
    np.testing.assert_allclose(top, [got.max()], rtol=1e-6)


def test_the_layers_take_sparse_rows_alone():
    with cases.fresh(fluid) as (main, _):
        cases.one(fluid)
        for layer in (fluid.layers.merge_selected_rows, fluid.layers.get_tensor_from_selected_rows):
            with pytest.raises(fluid.errors.FluidTypeError, match="must be SELECTED_ROWS, but 'w'"):
                layer(main.global_block().var("w"))


@pytest.mark.parametrize(
    "optimizer", ["Ftrl", "Adamax", "Adadelta", "DecayedAdagrad", "LarsMomentum", "Dpsgd"]
)
def test_an_optimizer_without_a_sparse_rule_says_so_before_anything_runs(optimizer):
    more = {
        "LarsMomentum": {"momentum": 0.9},
        "Dpsgd": {"clip": 1.0, "batch_size": 1.0, "sigma": 0.0},
    }.get(optimizer, {})
    with cases.fresh(fluid) as (main, startup):
        getattr(fluid.optimizer, optimizer)(0.1, **more).minimize(cases.one(fluid))
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    before = scope.get("w")
    with pytest.raises(
        fluid.errors.UnsupportedError,
        match=r"takes a plain array as Grad, but 'w@GRAD' is sparse.*is_sparse",
    ):
        exe.run(main, FEED, scope=scope)
    np.testing.assert_array_equal(scope.get("w"), before)
