"""Ties, kinks, zeros and no elements at all: the recorded extremes of 1.8.5 whose numbers are
finite, in onnxruntime.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.exporting import ExportError
from fluidjax.exporting.rules import table
from tests.ops.extremes import FAMILIES, cases_of
from tests.ops.extremes.recorded import recorded
from tests.ops.leads import leads
from tests.ops.one_op import Named

from .beside import run
from .test_op_samples import NO_KERNEL, Net, trains

pytest.importorskip("onnx", reason="pip install 'fluidjax[export]'")
pytest.importorskip("onnxruntime", reason="pip install onnxruntime")

LARGE = 1e4  # beyond it sums and products leave float32, each in its own way


def ordinary(array: Any) -> bool:
    array = np.asarray(array)
    return array.dtype.kind not in "fi" or bool((np.abs(array.astype("float64")) <= LARGE).all())


def chosen(family: str, case: Any) -> bool:
    if case.op not in table() or trains(case):
        return False
    answer = recorded(family, case)
    given = [a for slot in case.inputs for _, a in case.variables(slot)]
    return not answer.refused and all(map(ordinary, [*given, *answer.values.values()]))


CASES = {
    f"{family}-{case.name}": Named(family, 0, case)
    for family in FAMILIES
    if not family.startswith("later")
    for case in cases_of(family)
    if chosen(family, case)
}
LEADS = leads({name: named.sample for name, named in CASES.items()}, lambda case: case.op)
# what ONNX or onnxruntime does otherwise
DIFFERS = {
    "ctc_align": "where all is blank, 1.8.5 gives a row of -1",
    "where_index": "where there is nothing, 1.8.5 gives an array without columns",
    "fill_constant": "1.8.5 gives an array without columns for no rows",
    "top_k": "of equals 1.8.5 gives any first; here and in ONNX the first goes first",
}


@pytest.mark.once
@pytest.mark.parametrize("name", CASES)
def test_equals_paddle(name: str, tmp_path: Path) -> None:
    named = CASES[name]
    net = Net(named)
    if not net.fetched or named.sample.op in DIFFERS:
        pytest.skip(DIFFERS.get(named.sample.op, "nothing to compare"))
    path = tmp_path / "op.onnx"
    try:
        fluid.export(net.main, path, feeds=list(net.feed), fetches=list(net.fetched), scope=net.scope)  # fmt: skip
        found = run(path, net.feed)
    except ExportError as error:
        (lack,) = error.report.lacks
        assert "has no rule" not in lack.why, str(error)
        pytest.skip(f"ONNX: {lack}")
    except Exception as error:  # onnxruntime has classes of its own
        if any(said in str(error) for said in NO_KERNEL):
            pytest.skip(f"onnxruntime: {str(error)[:200]}")
        raise
    values = recorded(named.family, named.sample).values
    for out, (slot, i) in net.fetched.items():
        want = values.get(slot, values.get(f"{slot}#{i}"))
        if want is None:
            continue
        assert found[out].shape == want.shape
        scale = max(1.0, float(np.abs(want).max(initial=0))) if want.dtype.kind == "f" else 0
        np.testing.assert_allclose(found[out], want, rtol=1e-5, atol=1e-5 * scale, err_msg=out)


def test_no_samples(tmp_path: Path) -> None:
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 6])
        h = layers.fc(x, 4, act="tanh")
        outs = [layers.softmax(layers.concat([h, x], 1)), layers.reshape(h, [-1, 2, 2])]
    fluid.Executor().run(startup, scope=scope)
    path = tmp_path / "n.onnx"
    fluid.export(main, path, fetches=outs, scope=scope)
    got = run(path, {"x": np.zeros((0, 6), "float32")})
    assert [v.shape for v in got.values()] == [(0, 10), (0, 2, 2)]


def test_empty_sequences(tmp_path: Path) -> None:
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 6], lod_level=1)
        pools = [layers.sequence_pool(x, kind) for kind in ("sum", "average", "max", "last", "first", "sqrt")]  # fmt: skip
        outs = [*pools, layers.sequence_reverse(x), layers.dynamic_gru(x, 2)]
    fluid.Executor().run(startup, scope=scope)
    path = tmp_path / "n.onnx"
    fluid.export(main, path, fetches=outs, scope=scope)
    rows = np.random.RandomState(0).standard_normal((5, 6)).astype("float32")
    feed = {"x": fluid.create_lod_tensor(rows, [[0, 3, 0, 2, 0]], fluid.CPUPlace())}
    want = fluid.Executor().run(main, feed=feed, fetch_list=outs, scope=scope, return_numpy=False)
    got = run(path, feed)
    for out, value in zip(outs, want, strict=True):
        np.testing.assert_allclose(got[out.name], np.asarray(value), rtol=1e-5, atol=1e-6)
