"""detection_map: the mean average precision of detections, of a batch or of all batches so far.

The records of one batch are part of a step. Those accumulated over batches grow, so the program is
cut there and Python appends the batch's records to the state's.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import numpy as np

from ...errors import EnforceNotMet, FluidValueError, NotOneStep, ShapeError
from ..infer import Spec
from ..ragged import Ragged, made_key, sequences_of, trimmed, without_fillers
from ..registry import Array, op
from ..traits import FREE, Attrs, knows_rows, rows_by
from .mean_precision import KINDS, of_batch

STATE = ("PosCount", "TruePos", "FalsePos")
_LEAST = 1e-6  # by how much recall must rise to count


def _spec(
    DetectRes: Spec, Label: Spec, HasState: Spec | None, PosCount: Spec | None, TruePos: Spec | None, FalsePos: Spec | None, **attrs: Any
) -> tuple[Spec | None, ...]:  # fmt: skip
    if (
        DetectRes.ndim != 2
        or DetectRes.shape[1] not in (6, -1)
        or Label.ndim != 2
        or Label.shape[1] not in (5, 6, -1)
    ):
        shapes = f"{list(DetectRes.shape)} and {list(Label.shape)}"
        raise ShapeError(
            f"op 'detection_map' takes DetectRes [rows, 6] and Label [rows, 5 or 6], not {shapes}"
        )
    if attrs["ap_type"] not in KINDS:
        raise FluidValueError(
            f"op 'detection_map' has the ap_type {' or '.join(KINDS)}, not {attrs['ap_type']!r}"
        )
    if attrs["class_num"] <= 0:
        raise FluidValueError(
            f"op 'detection_map' takes a class_num above 0, not {attrs['class_num']}"
        )
    kind = DetectRes.dtype
    if HasState is not None:  # the state carries its own shape
        return None, None, None, Spec((1,), kind)
    return (
        Spec((attrs["class_num"], 1), "int32"),
        Spec((-1, 2), kind),
        Spec((-1, 2), kind),
        Spec((1,), kind),
    )


def _by_class(levels: Any, attrs: Attrs) -> dict[str, int]:
    return {"AccumPosCount": 0, "AccumTruePos": 0, "AccumFalsePos": 0, "MAP": 0}


@cache
def _compiled() -> Any:
    return jax.jit(
        of_batch,
        static_argnames=(
            "class_num",
            "background_label",
            "overlap_threshold",
            "evaluate_difficult",
            "ap_type",
        ),
    )


def with_state(inputs: Attrs, attrs: Attrs) -> dict[str, Any]:
    """The outputs by slot: the op as it runs between segments."""
    images = (sequences_of("detection_map", s, inputs.get(s), 1) for s in ("DetectRes", "Label"))
    outs = _compiled()(*map(without_fillers, images), **attrs)
    counts, mean = np.asarray(outs[0]), outs[3]
    records = [trimmed(v) for v in outs[1:3]]
    has_state, before = inputs.get("HasState"), inputs.get("PosCount")
    if has_state is not None and before is not None and int(np.asarray(has_state).reshape(-1)[0]):
        counts, records = _behind(inputs, counts, records)
        mean = np.array([_mean(counts, records, attrs)], outs[3].dtype)
    return {
        "AccumPosCount": counts,
        "AccumTruePos": records[0],
        "AccumFalsePos": records[1],
        "MAP": mean,
    }


def _behind(
    inputs: Attrs, counts: np.ndarray, records: list[Ragged]
) -> tuple[np.ndarray, list[Ragged]]:
    """The state with the batch's counts and records, class by class."""
    before, classes = np.asarray(inputs["PosCount"]), len(counts)
    if before.size != classes:
        raise EnforceNotMet(
            f"op 'detection_map' takes a PosCount for each of its {classes} classes, not"
            f" {list(before.shape)}"
        )
    older = [sequences_of("detection_map", slot, inputs.get(slot), 1) for slot in STATE[1:]]
    if any(
        v.sequences != classes or not np.array_equal(v.offsets[0], older[0].offsets[0])
        for v in older
    ):
        raise EnforceNotMet(
            "op 'detection_map' takes TruePos and FalsePos with one LoD, a sequence for each of"
            f" its {classes} classes"
        )
    joined = []
    for old, new in zip(older, records, strict=True):
        parts = [np.split(np.asarray(v.rows), np.asarray(v.offsets[0])[1:-1]) for v in (old, new)]
        offsets = np.asarray(old.offsets[0]) + np.asarray(new.offsets[0])
        rows = np.concatenate([one for both in zip(*parts, strict=True) for one in both])
        joined.append(
            Ragged(
                rows,
                (offsets.astype(np.int32),),
                (int(np.diff(offsets).max(initial=0)),),
                made_key(),
            )
        )
    return (before.reshape(-1, 1) + counts).astype(np.int32), joined


def _mean(counts: np.ndarray, records: list[Ragged], attrs: Attrs) -> float:
    """The mean over the classes. A class without any box or detection counts as 0 unless
    background_label is 0, as in 1.8.5.
    """
    total = there = 0.0
    for kind, count in enumerate(counts.reshape(-1).tolist()):
        if count == attrs["background_label"]:
            continue
        begin, end = np.asarray(records[0].offsets[0])[kind : kind + 2]
        right, wrong = (np.asarray(v.rows)[begin:end] for v in records)
        there += 1
        if len(right) and count:
            total += _of_class(right, wrong, count, attrs["ap_type"])
    return total / max(there, 1)


def _of_class(right: np.ndarray, wrong: np.ndarray, count: int, ap_type: str) -> float:
    """right, wrong [records, 2]: scores, and 1 where the detection is so."""
    hits, misses = (
        np.cumsum(v[np.argsort(-v[:, 0], kind="stable"), 1], dtype=right.dtype)
        for v in (right, wrong)
    )
    precision, recall = hits / (hits + misses), hits / right.dtype.type(count)
    if ap_type == KINDS[0]:
        step = np.abs(np.diff(recall, prepend=np.zeros(1, recall.dtype)))
        return float((precision * step)[step > _LEAST].sum())
    best, stop = np.zeros(11), len(recall) - 1
    for j in range(10, -1, -1):
        for i in range(stop, -1, -1):
            if recall[i] < j / 10.0:
                stop, best[j - 1] = i, best[j]
                break
            best[j] = max(best[j], precision[i])
    return float(best.sum() / 11)


@op(
    outs="AccumPosCount AccumTruePos AccumFalsePos MAP",
    infer=_spec,
    rows=knows_rows(_by_class),
    bounds=FREE,
    hosted=with_state,
    chosen=rows_by("DetectRes", "as many rows as DetectRes", exact=False),
    counters=STATE,
    passes_over=STATE,
)
def detection_map(
    DetectRes: Ragged, Label: Ragged, HasState: Array | None, PosCount: Array | None, TruePos: Ragged | None, FalsePos: Ragged | None, *,
    class_num: int, background_label: int = 0, overlap_threshold: float = 0.5, evaluate_difficult: bool = True, ap_type: str = "integral",
):  # fmt: skip
    """MAP [1] = the mean, over the classes that are there, of the area under precision over recall.

    DetectRes [rows, 6] (label, score, x1, y1, x2, y2) and Label [rows, 6] (label, whether
    difficult, x1, y1, x2, y2) or [rows, 5], a sequence an image, labels from 0 to class_num - 1
    (others do not count). A detection is right if it is the first, by falling scores, whose largest
    overlap is with that box of its class, and by more than overlap_threshold. Difficult boxes and
    detections that overlap them do not count, unless evaluate_difficult. 11point: the mean of the
    largest precisions at recall >= 0, 0.1, ..., 1. AccumPosCount [class_num, 1]: boxes of each
    class; AccumTruePos, AccumFalsePos [rows, 2]: scores and 1 or 0, one sequence per class. As in 1.8.5
    a class with background_label boxes does not count. If HasState [1] is not 0, PosCount, TruePos
    and FalsePos are the Accum outputs of earlier batches; this batch's counts and records are
    added, and MAP covers all. Raises EnforceNotMet if they are not such outputs.
    """
    if HasState is not None:
        raise NotOneStep(
            "op 'detection_map' adds to a state that grows with every batch, so Python keeps it"
            " between compiled segments"
        )
    return of_batch(
        DetectRes, Label, class_num=class_num, background_label=background_label, overlap_threshold=overlap_threshold,
        evaluate_difficult=evaluate_difficult, ap_type=ap_type,
    )  # fmt: skip
