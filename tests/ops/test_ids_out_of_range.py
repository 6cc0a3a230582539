"""Every op of the registry that takes labels, ids, nodes, tags or indices objects to those that lie
outside.

What a running step makes of an objection: tests/lower/test_checks.py. What is fed wrongly to ops with the
trait `bounds`: tests/feeds/test_feed_shapes.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidjax.ops  # noqa: F401
from fluidjax.errors import EnforceNotMet
from fluidjax.ir.desc import FrozenMap, OpDesc
from fluidjax.lower.checks import out_of_bounds
from fluidjax.ops.ragged import Ragged

from .running import Run, tree
from .sample import Sample
from .samples import all_samples

pytestmark = pytest.mark.once

# op -> slots, beside those that the trait `bounds` names, with a number below which no integer of
# theirs is looked at
SLOTS = {
    "mean_iou": "Predictions Labels", "nll_loss": "Label", "yolov3_loss": "GTLabel", "generate_proposal_labels": "GtClasses",
    "generate_mask_labels": "LabelsInt32", "target_assign": "MatchIndices NegIndices", "chunk_eval": "Inference Label",
    "precision_recall": "Indices Labels", "sigmoid_focal_loss": "Label", "sample_logits": "CustomizedSamples", "warpctc": "Label",
    "hierarchical_sigmoid": "PathTable", "unpool": "Indices", "tree_conv": "EdgeSet", "linear_chain_crf": "Length",
    "crf_decoding": "Length", "index_add": "Index", "index_put": "indices", "take_along_axis": "Index", "put_along_axis": "Index",
    "segment_pool": "SegmentIds", "graph_send_recv": "Dst_index", "graph_send_ue_recv": "Dst_index",
    "graph_send_uv": "src_index dst_index",
}  # fmt: skip
CASES = [(op, slot) for op, slots in SLOTS.items() for slot in slots.split()]
ENDS_A_PATH = {"hierarchical_sigmoid"}  # a negative number does
SAMPLES: dict[str, list[Sample]] = {}
for _, _, _sample in all_samples():
    SAMPLES.setdefault(_sample.op, []).append(_sample)


def objections(run: Run, inputs: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """The sentences of those that hold, and the number that each is about."""
    definition, attrs = run.definition, run.attrs
    names = {
        s: tuple(f"{s}{i}" for i in range(len(v))) if isinstance(v, list) else (s,)
        for s, v in inputs.items()
    }
    op = OpDesc(1, definition.type, FrozenMap(names), FrozenMap({}), FrozenMap(attrs))
    found = list(out_of_bounds(op, definition, inputs))
    if definition.traits.refuses is not None:
        found += definition.traits.refuses(inputs, attrs)
    yield from ((sentence, int(value)) for holds, sentence, value in found if holds)


def spoilt(value: Any, number: int) -> Any:
    """The slot's value with another number in its first place."""
    if isinstance(value, list):
        return [spoilt(value[0], number), *value[1:]]

    def first(array: Any) -> np.ndarray:
        array = np.array(array)
        array.reshape(-1)[0] = number
        return array

    return tree(first, {"": value})[""] if isinstance(value, Ragged) else first(value)


@pytest.mark.parametrize(("op", "slot"), CASES)
def test_numbers_out_of_range_are_objected_to(op: str, slot: str) -> None:
    run = Run(next(s for s in SAMPLES[op] if slot in s.inputs))
    assert list(objections(run, run.inputs)) == []
    for number in (1000, -1000):
        inputs = {**run.inputs, slot: spoilt(run.inputs[slot], number)}
        if op == "segment_pool":  # its ids decide a size, so they are known when it is traced
            with pytest.raises(EnforceNotMet, match="takes SegmentIds that ascend from 0 or more"):
                run.definition(inputs, run.attrs)
        elif op not in ENDS_A_PATH or number > 0:
            assert [value for _, value in objections(run, inputs)] == [number]


def test_what_does_not_count_may_be_anything() -> None:
    """Labels behind the end of a sequence, of boxes that are none, and those that a loss ignores."""
    label = np.array([[1, 2, -1], [3, -7, 99]], np.int64)
    lengths = np.array([2, 1], np.int64)
    inputs = {
        "Logits": np.zeros((4, 2, 5), np.float32),
        "Label": label,
        "LogitsLength": np.array([4, 4]),
        "LabelLength": lengths,
    }
    assert list(objections(Run(Sample("warpctc", inputs, {}, ["Loss"])), inputs)) == []
    tags = {"Inference": label[..., None], "Label": label[..., None], "SeqLength": lengths}
    assert (
        list(objections(Run(Sample("chunk_eval", tags, {"num_chunk_types": 2}, ["Recall"])), tags))
        == []
    )
    boxes = np.array([[[0.5, 0.5, 0.2, 0.2], [0.0, 0.0, 0.0, 0.0]]], np.float32)
    yolo = {
        "X": np.zeros((1, 21, 2, 2), np.float32),
        "GTBox": boxes,
        "GTLabel": np.array([[1, -1]], np.int32),
    }
    assert (
        list(objections(Run(Sample("yolov3_loss", yolo, {"class_num": 2}, ["Loss"])), yolo)) == []
    )
    ignored = {"X": np.zeros((2, 3), np.float32), "Label": np.array([2, -100])}
    assert list(objections(Run(Sample("nll_loss", ignored, {}, ["Out"])), ignored)) == []
