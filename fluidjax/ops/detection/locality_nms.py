"""locality_aware_nms: neighbouring boxes that overlap are merged first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import ShapeError
from .. import loops
from ..infer import Spec
from ..registry import Array, op
from ..traits import Attrs, knows_rows
from .nms import CHOSEN, check_limits, detections, overlaps
from .polygon_overlap import SIZES
from .suppress import Overlaps


def _spec(BBoxes: Spec, Scores: Spec, *, nms_top_k: int, keep_top_k: int, **_: Any) -> Spec:
    shapes = f"not {list(BBoxes.shape)} and {list(Scores.shape)}"
    if BBoxes.ndim != 3 or Scores.ndim != 3 or Scores.shape[1] not in (1, -1):
        raise ShapeError(
            "op 'locality_aware_nms' takes BBoxes [N, M, 4] and Scores of one class, [N, 1, M],"
            f" {shapes}"
        )
    if min(BBoxes.shape[1], Scores.shape[2]) >= 0 and BBoxes.shape[1] != Scores.shape[2]:
        raise ShapeError(f"op 'locality_aware_nms' takes a score for each box, {shapes}")
    if BBoxes.shape[2] not in (4, *SIZES, -1):
        raise ShapeError(
            f"op 'locality_aware_nms' takes boxes of 4 numbers, or polygons of {SIZES}, {shapes}"
        )
    check_limits("locality_aware_nms", nms_top_k=nms_top_k, keep_top_k=keep_top_k)
    return Spec((-1, BBoxes.shape[2] + 2 if BBoxes.shape[2] > 0 else 6), BBoxes.dtype)


def _levels(levels: Any, attrs: Attrs) -> dict[str, int]:
    return {"Out": 0}


def _merged(boxes: Any, scores: Any, threshold: Any, overlap: Overlaps) -> tuple[Any, Any, Any]:
    """Boxes [M, numbers] and scores [M] in which each run of overlapping boxes is merged at its
    first position (other positions have no meaning); and a mask of the first positions.
    """

    def step(run: tuple[Any, ...], given: tuple[Any, ...]) -> tuple[Any, Any]:
        box, score, begun = run
        here, weight = given
        joins = begun & (overlap(box, here) > threshold)
        mean = (here * weight + box * score) / (weight + score)
        box, score = jnp.where(joins, mean, here), jnp.where(joins, score + weight, weight)
        return (box, score, jnp.ones((), bool)), (box, score, joins)

    def back(end: tuple[Any, ...], given: tuple[Any, ...]) -> tuple[Any, Any]:
        box, score, goes_on = given
        end = jnp.where(goes_on, end[0], box), jnp.where(goes_on, end[1], score)
        return end, end

    start = jnp.zeros(boxes.shape[1:], boxes.dtype), jnp.zeros((), scores.dtype)
    _, (box, score, joins) = loops.scan(step, (*start, jnp.zeros((), bool)), (boxes, scores))
    goes_on = jnp.concatenate([joins[1:], jnp.zeros((min(len(scores), 1),), bool)])
    _, (box, score) = loops.scan(back, start, (box, score, goes_on), reverse=True)
    return box, score, ~joins


@op(outs="Out", infer=_spec, rows=knows_rows(_levels), chosen=CHOSEN)
def locality_aware_nms(
    BBoxes: Array, Scores: Array, *, background_label: int = -1, score_threshold: float, nms_top_k: int, nms_threshold: float = 0.3,
    nms_eta: float = 1.0, keep_top_k: int, normalized: bool = True,
):  # fmt: skip
    """Out [rows, 6] = multiclass_nms of BBoxes [N, M, 4] and Scores [N, 1, M] after merging
    consecutive boxes that overlap.

    BBoxes may be polygons, as there.

    In order, a box that overlaps the one before it (merged so far) by more than nms_threshold is
    merged with it: the mean of both, weighted by their scores, which are summed. [[-1]] if there is
    no box.
    """
    apart = overlaps(BBoxes.shape[2], normalized)
    threshold = np.asarray(nms_threshold, np.float32).astype(BBoxes.dtype)
    boxes, scores, first = jax.vmap(lambda b, s: _merged(b, s, threshold, apart))(
        BBoxes, Scores[:, 0]
    )
    labels = np.array([c for c in (0,) if c != background_label], np.int32)
    attrs = {"threshold": nms_threshold, "eta": nms_eta, "normalized": normalized}
    scores = jnp.where(first, scores, -jnp.inf)[:, None][:, labels]
    out, _ = detections(
        boxes[:, None], scores, labels, score_threshold, nms_top_k, keep_top_k, attrs
    )
    return replace(out, nothing=-1.0)
