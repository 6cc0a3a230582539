"""generate_proposals: the best regions of each image, from the anchors' scores and offsets."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...errors import ShapeError
from .. import loops
from ..greatest import first_greatest
from ..infer import Spec
from ..registry import Array, op
from ..traits import Attrs, knows_rows, rows_by
from .boxes import bare
from .overlaps import moved, pixel_overlaps
from .packing import firsts, packed


def suppressed(
    boxes: Any, there: Any, threshold: float, eta: float, most: int, more: int = 1
) -> tuple[Any, Any]:
    """Greedy suppression of boxes [K, 4], best first, ignoring those not `there`: the positions of
    the kept boxes, [most], and their number.

    A box is kept if it overlaps no kept one by more than the threshold; `eta` (< 1) multiplies the
    threshold after each kept box while it is above 0.5.
    """
    count = boxes.shape[0]
    at = jnp.arange(count, dtype=np.int32)

    def going(state: Any) -> Any:
        begin, number, *_ = state
        return (begin < count) & (number < most)

    def keep(state: Any) -> Any:
        begin, number, limit, overlap, kept = state
        free = there & (at >= begin) & (overlap <= limit)
        found, best = free.any(), first_greatest(free)
        new = pixel_overlaps(boxes[best][None], boxes, more)[0]
        overlap = jnp.where(
            found, jnp.maximum(overlap, jnp.where(jnp.isnan(new), np.inf, new)), overlap
        )
        kept = kept.at[jnp.where(found, number, most)].set(best, mode="drop")
        if eta < 1:
            limit = jnp.where(found & (limit > 0.5), limit * np.asarray(eta, boxes.dtype), limit)
        return (
            jnp.where(found, best + 1, count),
            number + found.astype(np.int32),
            limit,
            overlap,
            kept,
        )

    start = (
        np.int32(0), np.int32(0), jnp.asarray(threshold, boxes.dtype), jnp.full(count, -np.inf, boxes.dtype), jnp.zeros(most, np.int32),
    )  # fmt: skip
    _, number, _, _, kept = loops.while_loop(going, keep, start)
    return kept, number


def _of_image(
    scores: Any,
    deltas: Any,
    info: Any,
    anchors: Any,
    variances: Any,
    room: tuple[int, int],
    attrs: Any,
) -> tuple[Any, Any, Any]:
    """The proposals of one image: boxes [most, 4], their scores, and how many."""
    before, most = room
    threshold, min_size, eta = attrs
    _, chosen = lax.top_k(scores, before)
    scores = scores[chosen]
    boxes = moved(anchors[chosen], deltas[chosen], variances[chosen])
    limit = jnp.stack([info[1], info[0], info[1], info[0]]) - 1
    boxes = jnp.maximum(jnp.minimum(boxes, limit), 0)
    size = boxes[:, 2:] - boxes[:, :2]
    centre = boxes[:, :2] + (size + 1) / 2
    least = np.asarray(max(min_size, 1.0), boxes.dtype)
    there = (
        (size / info[2] + 1 >= least).all(1) & (centre[:, 0] <= info[1]) & (centre[:, 1] <= info[0])
    )
    if threshold <= 0:
        kept, number = firsts(there, most)
    else:
        # as in 1.8.5, the last of equal scores comes first
        order = jnp.flip(jnp.argsort(scores, stable=True))
        places, number = suppressed(boxes[order], there[order], threshold, eta, most)
        kept = order[places]
    return boxes[kept], scores[kept], number


def _room(anchors: int, pre: int, post: int, threshold: float) -> tuple[int, int]:
    """The number of boxes of an image to consider, and the number that may stay."""
    before = min(pre, anchors) if pre > 0 else anchors
    return before, min(post, before) if post > 0 and threshold > 0 else before


def _checked(scores: Any, deltas: Any, info: Any, anchors: Any, variances: Any) -> None:
    if (
        scores.ndim != 4
        or deltas.ndim != 4
        or info.ndim != 2
        or anchors.ndim != 4
        or variances.ndim != 4
    ):
        raise ShapeError(
            "op 'generate_proposals' takes Scores [N, A, H, W], BboxDeltas [N, 4 * A, H, W],"
            " ImInfo [N, 3], Anchors and Variances [H, W, A, 4], not"
            f" {[list(v.shape) for v in (scores, deltas, info, anchors, variances)]}"
        )


def _spec(
    Scores: Spec, BboxDeltas: Spec, ImInfo: Spec, Anchors: Spec, Variances: Spec, **_: Any
) -> tuple[Spec, ...]:
    _checked(Scores, BboxDeltas, ImInfo, Anchors, Variances)
    return (
        Spec((-1, 4), Anchors.dtype),
        Spec((-1, 1), Scores.dtype),
        Spec((Scores.shape[0],), "int64"),
        Spec((Scores.shape[0],), "int32"),
    )


def _no_level(levels: Any, attrs: Attrs) -> dict[str, int]:
    """No LoD is declared, as in 1.8.5; the fetched values have one."""
    return {}


def _in_rows(
    Scores: Array, BboxDeltas: Array, Anchors: Array, Variances: Array
) -> tuple[Array, Array, Array, Array]:
    """Scores [N, boxes], and deltas [N, boxes, 4], anchors and variances [boxes, 4]: by row, column
    and kind of anchor.
    """
    n, kinds, height, width = Scores.shape
    count = kinds * height * width
    scores = jnp.moveaxis(Scores, 1, -1).reshape(n, count)
    deltas = jnp.moveaxis(BboxDeltas, 1, -1).reshape(n, count, 4)
    return (
        scores,
        deltas,
        jnp.asarray(Anchors).reshape(count, 4),
        jnp.asarray(Variances).reshape(count, 4),
    )


@op(
    outs="RpnRois RpnRoiProbs RpnRoisLod? RpnRoisNum?",
    infer=_spec,
    rows=knows_rows(_no_level),
    chosen=rows_by("Scores BboxDeltas", "post_nms_topN rows an image", exact=False),
)
def generate_proposals(
    Scores: Array, BboxDeltas: Array, ImInfo: Array, Anchors: Array, Variances: Array, *, pre_nms_topN: int, post_nms_topN: int,
    nms_thresh: float, min_size: float, eta: float,
):  # fmt: skip
    """RpnRois [R, 4] and RpnRoiProbs [R, 1] = a sequence of proposals for each image, best first.

    Each image takes the pre_nms_topN largest Scores [N, A, H, W]. Their boxes are Anchors [H, W, A,
    4] moved by BboxDeltas [N, 4 * A, H, W] times Variances, clipped to the image, ImInfo [N, 3]
    (height, width, scale). Small boxes and those that overlap a better one by more than nms_thresh
    are dropped, and post_nms_topN are kept. RpnRoisLod [N]: the number up to and including each
    image; RpnRoisNum [N]: the number per image.
    """
    _checked(Scores, BboxDeltas, ImInfo, Anchors, Variances)
    scores, deltas, anchors, variances = _in_rows(Scores, BboxDeltas, Anchors, Variances)
    room, attrs = (
        _room(scores.shape[1], pre_nms_topN, post_nms_topN, nms_thresh),
        (nms_thresh, min_size, eta),
    )
    boxes, probs, counts = jax.vmap(
        lambda s, d, i: _of_image(s, d, i, anchors, variances, room, attrs)
    )(scores, deltas, ImInfo)
    rois, probs = packed(counts, boxes, probs[..., None])
    return rois, probs, jnp.cumsum(counts).astype(np.int64), counts.astype(np.int32)


def _of_shape(
    scores: Any,
    deltas: Any,
    shape: Any,
    anchors: Any,
    variances: Any,
    room: tuple[int, int],
    attrs: Any,
) -> tuple[Any, ...]:
    """The _of_image of generate_proposals_v2: sizes are in pixels of the fed image; more: whether
    boxes include their edge pixels.
    """
    before, most = room
    threshold, min_size, eta, more = attrs
    _, chosen = lax.top_k(scores, before)
    scores = scores[chosen]
    boxes = moved(anchors[chosen], deltas[chosen], variances[chosen], more)
    limit = jnp.stack([shape[1], shape[0], shape[1], shape[0]]) - more
    boxes = jnp.maximum(jnp.minimum(boxes, limit), 0)
    size = boxes[:, 2:] - boxes[:, :2] + more
    there = (size >= np.asarray(max(min_size, 1.0), boxes.dtype)).all(1)
    if more:
        centre = boxes[:, :2] + size / 2
        there = there & (centre[:, 0] <= shape[1]) & (centre[:, 1] <= shape[0])
    if threshold <= 0:
        kept, number = firsts(there, most)
    else:
        order = jnp.argsort(-scores, stable=True)
        places, number = suppressed(boxes[order], there[order], threshold, eta, most, more)
        kept = order[places]
    none = number == 0  # then one box without extent
    return jnp.where(none, 0, boxes[kept]), jnp.where(none, 0, scores[kept]), jnp.maximum(number, 1)


def _spec_v2(
    Scores: Spec, BboxDeltas: Spec, ImShape: Spec, Anchors: Spec, Variances: Spec, **_: Any
) -> tuple[Spec, ...]:
    _checked(Scores, BboxDeltas, ImShape, Anchors, Variances)
    return (
        Spec((-1, 4), Anchors.dtype),
        Spec((-1, 1), Scores.dtype),
        Spec((Scores.shape[0],), "int32"),
    )


@op(
    outs="RpnRois RpnRoiProbs RpnRoisNum?",
    infer=_spec_v2,
    rows=knows_rows(_no_level),
    chosen=rows_by("Scores BboxDeltas", "post_nms_topN rows an image", exact=False),
)
def generate_proposals_v2(
    Scores: Array, BboxDeltas: Array, ImShape: Array, Anchors: Array, Variances: Array, *, pre_nms_topN: int, post_nms_topN: int,
    nms_thresh: float, min_size: float, eta: float, pixel_offset: bool = True,
):  # fmt: skip
    """RpnRois, RpnRoiProbs = generate_proposals of unscaled images with the sizes ImShape [N, 2]
    (height, width).

    pixel_offset: false if the edges of boxes are lines, not pixels. RpnRoisNum [N]: the number of
    regions per image, at least one (without extent).
    """
    _checked(Scores, BboxDeltas, ImShape, Anchors, Variances)
    scores, deltas, anchors, variances = _in_rows(Scores, BboxDeltas, Anchors, Variances)
    room, attrs = (
        _room(scores.shape[1], pre_nms_topN, post_nms_topN, nms_thresh),
        (nms_thresh, min_size, eta, int(pixel_offset)),
    )
    boxes, probs, counts = jax.vmap(
        lambda s, d, i: _of_shape(s, d, i, anchors, variances, room, attrs)
    )(scores, deltas, ImShape)
    rois, scores_of = packed(counts, boxes, probs[..., None])
    return *bare(rois, scores_of.rows), counts.astype(np.int32)
