"""Every op of the table in onnxruntime beside what Paddle answered: one-op programs of the recorded
samples (tests/ops/README.md).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.exporting import ExportError
from fluidjax.exporting.rules import table
from fluidjax.ops.registry import lookup
from tests.ops.leads import leads
from tests.ops.one_op import Named
from tests.ops.recorded import recorded
from tests.ops.sample import Sample
from tests.ops.samples import all_samples

from .beside import run

pytest.importorskip("onnx", reason="pip install 'fluidjax[export]'")
pytest.importorskip("onnxruntime", reason="pip install onnxruntime")

# inputs that a saved model has as parameters
PARAMETERS = frozenset("W Weight Bias Filter Transition Scale Mean Variance Alpha".split())
# ONNX lets onnxruntime leave out these types of elements; what it says then
NO_KERNEL = (
    "NOT_IMPLEMENTED",
    "Could not find an implementation",
    "is invalid",
    "Unsupported type",
)


def trains(sample: Sample) -> bool:
    """Whether it computes what an exported program does not: dropout that drops, statistics of a
    batch.
    """
    return "is_test" in lookup(sample.op).attrs and not sample.attrs.get("is_test", False) and sample.op in (
        "batch_norm", "dropout", "sync_batch_norm", "fake_quantize_moving_average_abs_max",
        "fake_quantize_dequantize_moving_average_abs_max",
    )  # fmt: skip


# samples of what ONNX or onnxruntime does otherwise, and why
DIFFERS = {
    "chosen-unique-7": "nan is equal to nan in onnxruntime's Unique",
    "complex-concat-33": "onnxruntime has no complex numbers",
    "loss-cross_entropy-8": "the loss of a probability of 0 is as large as float32's 1e-20 lets it, not 1e20",
    "pool-max_pool2d_with_index-99": "nan: Fluid's maximum passes it over, ONNX's does not say",
    "nms-multiclass_nms-7": "scores of nan, and boxes turned inside out, which ONNX turns back",
    "nms-multiclass_nms-9": "where there is no box, no row: Fluid has one of -1",
    "boxes-prior_box-4": "float64",
    "boxes-anchor_generator-8": "float64",
}
CASES = {
    str(Named(family, i, s)): Named(family, i, s)
    for family, i, s in all_samples()
    if s.op in table() and s.paddle and not trains(s)
}
LEADS = leads({name: named.sample for name, named in CASES.items()}, lambda sample: sample.op)


class Net:
    """A program of one op."""

    def __init__(self, named: Named) -> None:
        sample, definition = named.sample, lookup(named.sample.op)
        self.main, self.scope, self.feed = fluid.Program(), fluid.Scope(), dict[str, Any]()
        block = self.main.global_block()
        ins, outs = {}, {}
        for slot in sample.inputs:
            ins[slot] = []
            for i, (name, array) in enumerate(sample.variables(slot)):
                array, lod = np.asarray(array), sample.lod_of(slot, i)
                held = slot in sample.inplace.values() or (slot in PARAMETERS and not lod)
                if held:
                    self.scope.var(name).set(array)
                else:
                    self.feed[name] = (
                        fluid.create_lod_tensor(array, lod, fluid.CPUPlace()) if lod else array
                    )
                ins[slot].append(block.create_var(
                    name=name, shape=(-1, *array.shape[1:]) if lod else array.shape, dtype=str(array.dtype),
                    is_data=not held, persistable=held, lod_level=len(lod or ()),
                ))  # fmt: skip
        for slot in definition.outputs:
            if slot.name in sample.inplace:
                outs[slot.name] = [ins[sample.inplace[slot.name]][0]]
            elif slot.name in sample.outputs or not slot.optional:
                count = sample.outputs.get(slot.name) or 1
                outs[slot.name] = [
                    block.create_var(name=f"out.{slot.name}.{i}") for i in range(count)
                ]
        block.append_op(type=sample.op, inputs=ins, outputs=outs, attrs=dict(sample.attrs))
        hidden = {s.name for s in definition.outputs if s.intermediate}
        chosen = [s for s in sample.outputs if s not in hidden and s not in sample.inplace]
        self.fetched = {v.name: (s, i) for s in chosen for i, v in enumerate(outs[s])}


@pytest.mark.once
@pytest.mark.parametrize("name", CASES)
def test_equals_paddle(name: str, tmp_path: Path) -> None:
    if name in DIFFERS:
        pytest.skip(DIFFERS[name])
    named = CASES[name]
    net = Net(named)
    if not net.fetched:
        pytest.skip("nothing but what is between an op and its gradient")
    lacks = [compared(named, net, tmp_path / f"{opset}.onnx", opset) for opset in (17, 21)]
    if all(lacks):
        pytest.skip(str(lacks[0]))


def compared(named: Named, net: Net, path: Path, opset: int) -> str | None:
    """Why there is nothing to compare, if so."""
    try:
        fluid.export(
            net.main, path, feeds=list(net.feed), fetches=list(net.fetched), scope=net.scope, opset=opset,
        )  # fmt: skip
    except ExportError as error:
        (lack,) = error.report.lacks
        assert "has no rule" not in lack.why, str(error)
        return f"ONNX: {lack}"
    try:
        found = run(path, net.feed)
    except Exception as error:  # onnxruntime has classes of its own
        if any(said in str(error) for said in NO_KERNEL):
            return f"onnxruntime: {str(error)[:200]}"
        raise
    answer = recorded(named.family, named.index, named.sample)
    for out, (slot, i) in net.fetched.items():
        if slot not in answer:
            continue
        want = answer[slot][i] if isinstance(answer[slot], list) else answer[slot]
        got = found[out]
        assert got.shape == want.shape, (out, got.shape, want.shape)
        if want.dtype.kind != "f":
            np.testing.assert_array_equal(got, want, err_msg=out)
            continue
        scale = max(1.0, float(np.abs(want[np.isfinite(want)]).max(initial=0)))
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * scale, err_msg=out)
    return None
