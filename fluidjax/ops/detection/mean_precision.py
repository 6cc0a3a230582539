"""The mean average precision of a batch of detections, as arrays, with 1.8.5's records; see
detection_map.py.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ...errors import EnforceNotMet
from ..greatest import first_greatest
from ..ragged import Ragged, bounded, mask, sequences_of, view
from .similarity import overlap

KINDS = ("integral", "11point")
EASY = 1e-6  # a box is difficult if its mark exceeds this


def of_batch(
    found: Any, label: Any, *, class_num: int, background_label: int, overlap_threshold: float, evaluate_difficult: bool, ap_type: str
) -> tuple[Any, Ragged, Ragged, Any]:  # fmt: skip
    """The outputs of detection_map for DetectRes and Label alone."""
    found, there = _images("DetectRes", found)
    boxes, real = _images("Label", label)
    if found.shape[0] != boxes.shape[0]:
        raise EnforceNotMet(
            f"op 'detection_map' takes as many images in DetectRes and Label, not {found.shape[0]}"
            f" and {boxes.shape[0]}"
        )
    kinds = boxes[..., 0].astype(jnp.int32)
    hard = jnp.abs(boxes[..., 1]) >= EASY if boxes.shape[2] == 6 else jnp.zeros(kinds.shape, bool)
    counts = real if evaluate_difficult else real & ~hard
    positives = ((kinds[..., None] == jnp.arange(class_num)) & counts[..., None]).sum(
        (0, 1), dtype=jnp.int32
    )
    kind = found[..., 0].astype(jnp.int32)
    there = there & (kind >= 0) & (kind < class_num)
    same_class = (kind[..., None] == kinds[:, None]) & real[:, None]
    right, counted = _judged(
        found,
        boxes[..., -4:],
        same_class,
        there,
        None if evaluate_difficult else hard,
        overlap_threshold,
    )
    kind, score, right, left = _ordered(
        kind, found[..., 1], right, there & counted, same_class.any(2)
    )
    record = jnp.arange(kind.shape[0], dtype=jnp.int32) < left
    order = lax.sort(
        [~record, -score, jnp.arange(kind.shape[0], dtype=jnp.int32)], num_keys=2, is_stable=True
    )[2]
    mine = jnp.where(record, kind, -1)[order] == jnp.arange(class_num, dtype=jnp.int32)[:, None]
    precision = _eleven if ap_type == KINDS[1] else _area
    each = precision(mine, right[order], positives, found.dtype)
    classes = (positives > 0) & (positives != background_label)
    mean = jnp.where(classes, each, 0).sum() / jnp.maximum(classes.sum(), 1)
    offsets = jnp.searchsorted(
        jnp.where(record, kind, class_num), jnp.arange(class_num + 1), side="left"
    ).astype(jnp.int32)
    flag = right.astype(score.dtype)
    rows = [jnp.stack([score, f], 1) for f in (flag, 1 - flag)]
    true = bounded(rows[0], offsets, kind.shape[0])
    return positives[:, None], true, true.with_rows(rows[1]), mean.astype(found.dtype).reshape(1)


def _images(slot: str, value: Any) -> tuple[Any, Any]:
    """Cells [N, longest, ...] and which are rows."""
    x = sequences_of("detection_map", slot, value, 1)
    return view(x), mask(x)


def _judged(
    found: Any, boxes: Any, same_class: Any, there: Any, hard: Any, threshold: float
) -> tuple[Any, Any]:
    """Which detections [N, D] are right, and which count (their box is not difficult)."""
    n, many, _ = found.shape
    if not boxes.shape[1] or not many:
        return jnp.zeros((n, many), bool), jnp.ones((n, many), bool)
    clipped = jnp.clip(found[..., 2:], 0, 1)[:, :, None]
    shared = jnp.where(same_class, overlap(clipped, boxes[:, None], 0), -1)
    shared = jnp.where(jnp.isnan(shared), -1, shared)
    box, hit = first_greatest(shared, 2), shared.max(2) > np.asarray(threshold, np.float32)
    kind, score = found[..., 0].astype(jnp.int32), found[..., 1]
    counted = (
        jnp.ones((n, many), bool) if hard is None else ~(hit & jnp.take_along_axis(hard, box, 1))
    )
    rival = there & hit & counted
    at = jnp.arange(many)
    before = (score[:, None] > score[:, :, None]) | (
        (score[:, None] == score[:, :, None]) & (at[None, :] < at[:, None])
    )
    same = (box[:, None] == box[:, :, None]) & (kind[:, None] == kind[:, :, None]) & rival[:, None]
    return hit & ~(same & before).any(2), counted


def _ordered(
    kind: Any, score: Any, right: Any, record: Any, known: Any
) -> tuple[Any, Any, Any, Any]:
    """The records in 1.8.5's order, flattened: by class, then image, and by descending score if the
    image has the class; and their number.
    """
    shape = kind.shape
    image = lax.broadcasted_iota(jnp.int32, shape, 0)
    key = jnp.where(known, -score, 0)
    at = jnp.arange(kind.size, dtype=jnp.int32)
    keys = [v.reshape(-1) for v in (~record, kind, image, key)]
    order = lax.sort([*keys, at], num_keys=4, is_stable=True)[4]
    return *(v.reshape(-1)[order] for v in (kind, score, right)), record.sum(dtype=jnp.int32)


def _curves(mine: Any, right: Any, positives: Any, dtype: Any) -> tuple[Any, Any]:
    """Precision and recall [classes, records] up to each record; precision 0 at records of other
    classes.
    """
    hits, all_ = jnp.cumsum(mine & right, 1), jnp.cumsum(mine, 1)
    precision = jnp.where(mine, hits.astype(dtype) / jnp.maximum(all_, 1).astype(dtype), 0)
    return precision, hits.astype(dtype) / jnp.maximum(positives, 1).astype(dtype)[:, None]


def _area(mine: Any, right: Any, positives: Any, dtype: Any) -> Any:
    precision, recall = _curves(mine, right, positives, dtype)
    step = jnp.diff(recall, axis=1, prepend=jnp.zeros((recall.shape[0], 1), dtype))
    return jnp.where(mine & (jnp.abs(step) > 1e-6), precision * jnp.abs(step), 0).sum(1)


def _eleven(mine: Any, right: Any, positives: Any, dtype: Any) -> Any:
    """The recalls as in 1.8.5: a recall that all records reach ignores the records after the
    position at which the next higher recall stopped.
    """
    precision, recall = _curves(mine, right, positives, dtype)
    at = jnp.arange(mine.shape[1], dtype=jnp.int32)
    stop, best, total = (
        jnp.full((mine.shape[0], 1), mine.shape[1], jnp.int32),
        jnp.zeros(mine.shape[0], dtype),
        0,
    )
    for j in range(10, -1, -1):
        left = mine & (at <= stop)
        below = jnp.max(
            jnp.where(left & (recall.astype(np.float64) < j / 10.0), at, -1),
            1,
            initial=-1,
            keepdims=True,
        )
        most = jnp.maximum(best, jnp.where(left & (at > below), precision, 0).max(1, initial=0))
        total = total + most / 11
        stops = below >= 0
        stop, best = jnp.where(stops, below, stop), jnp.where(stops[:, 0], most, 0)
    return total
