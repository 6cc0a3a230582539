"""retinanet_detection_output: the detections of a RetinaNet, from all its levels."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ...errors import FluidValueError, ShapeError
from ..infer import Spec
from ..registry import Array, op
from ..traits import Attrs, knows_rows, rows_by
from .coding import centred, cornered, whole
from .matrix_nms import packed
from .similarity import overlap
from .suppress import best, each

OP = "retinanet_detection_output"


def _spec(
    BBoxes: Any,
    Scores: Any,
    Anchors: Any,
    ImInfo: Spec,
    *,
    keep_top_k: int,
    nms_top_k: int,
    **_: Any,
) -> Spec:
    if not BBoxes or not len(BBoxes) == len(Scores) == len(Anchors):
        counts = [len(v) for v in (BBoxes, Scores, Anchors)]
        raise ShapeError(
            f"op '{OP}' takes BBoxes, Scores and Anchors of each level, not {counts} variables"
        )
    for boxes, scores, anchors in zip(BBoxes, Scores, Anchors, strict=True):
        shapes = [list(s.shape) for s in (boxes, scores, anchors)]
        counts = (
            {s for s in (shapes[0][1], shapes[1][1], shapes[2][0]) if s >= 0}
            if list(map(len, shapes)) == [3, 3, 2]
            else {0, 1}
        )
        if len(counts) > 1 or shapes[0][2] not in (4, -1):
            raise ShapeError(
                f"op '{OP}' takes at a level BBoxes [N, M, 4], Scores [N, M, C], Anchors [M, 4],"
                f" not {shapes}"
            )
    if ImInfo.ndim != 2:
        raise ShapeError(f"op '{OP}' takes ImInfo [N, 3], not {list(ImInfo.shape)}")
    if keep_top_k < 0 or nms_top_k < -1:
        raise FluidValueError(
            f"op '{OP}' takes keep_top_k from 0 and nms_top_k from -1, not {keep_top_k} and"
            f" {nms_top_k}"
        )
    return Spec((-1, 6), BBoxes[0].dtype)


def _levels(levels: Any, attrs: Attrs) -> dict[str, int]:
    return {"Out": 0}


def _predicted(codes: Any, anchors: Any, info: Any) -> Any:
    """Boxes [N, K, 4] in pixels of the original images, from codes [N, K, 4] beside anchors [N, K,
    4].
    """
    centres, sizes = centred(anchors, 1)
    boxes = (
        cornered(codes[..., :2] * sizes + centres, jnp.exp(codes[..., 2:]) * sizes, 1)
        / info[:, None, 2:3]
    )
    ends = jnp.stack([whole(info[:, a] / info[:, 2]) - 1 for a in (1, 0, 1, 0)], -1)[:, None]
    cut = jnp.where(ends < boxes, ends, boxes)
    return jnp.where(cut < 0, 0, cut)


@op(
    outs="Out",
    infer=_spec,
    rows=knows_rows(_levels),
    chosen=rows_by("Scores BBoxes", "keep_top_k rows an image", exact=False),
)
def retinanet_detection_output(
    BBoxes: list[Array], Scores: list[Array], Anchors: list[Array], ImInfo: Array, *, score_threshold: float, nms_top_k: int,
    nms_threshold: float, nms_eta: float, keep_top_k: int,
):  # fmt: skip
    """Out [rows, 6] = (label from 1, score, x1, y1, x2, y2) by falling scores, a sequence an image;
    no rows if there is no box.

    Each level has BBoxes [N, M, 4] (codes beside Anchors [M, 4]) and Scores [N, M, C]. The boxes of
    its nms_top_k largest scores above score_threshold (above 0 at the last level) are decoded,
    divided by the scale and clipped to the image (ImInfo [N, 3]: height, width, scale). A box that
    overlaps one of its class with a larger score by more than nms_threshold is dropped; the
    keep_top_k best stay. The last pixel belongs to a box.
    """
    n, _, classes = Scores[0].shape
    taken: list[list[Any]] = [[], [], [], []]
    for level, (codes, scores, anchors) in enumerate(zip(BBoxes, Scores, Anchors, strict=True)):
        flat = scores.reshape(n, -1)
        at, there = best(flat, score_threshold if level < len(Scores) - 1 else 0.0, nms_top_k)
        row = (at // classes)[..., None]
        boxes = _predicted(
            jnp.take_along_axis(codes, row, 1), jnp.asarray(anchors)[row[..., 0]], ImInfo
        )
        for values, value in zip(
            taken, (boxes, jnp.take_along_axis(flat, at, 1), at % classes, there), strict=True
        ):
            values.append(value)
    boxes, scores, kinds, there = (jnp.concatenate(v, 1) for v in taken)
    order, alive = best(jnp.where(there, scores, -jnp.inf), -np.inf, -1)
    scores, kinds = (jnp.take_along_axis(v, order, 1) for v in (scores, kinds))
    boxes = jnp.take_along_axis(boxes, order[..., None], 1)
    room = min(keep_top_k, scores.shape[1])
    lanes = (alive[:, None] & (kinds[:, None] == jnp.arange(classes)[:, None])).reshape(
        n * classes, -1
    )
    many = jnp.repeat(boxes, classes, 0, total_repeat_length=n * classes)
    at, count = each(many, lanes, lambda a, b: overlap(b, a, 1), nms_threshold, nms_eta, room)
    kept = (jnp.arange(room, dtype=jnp.int32) < count[:, None]).reshape(n, -1)
    at = at.reshape(n, -1)
    found = jnp.where(kept, jnp.take_along_axis(scores, at, 1), -jnp.inf)
    top, stays = best(found, -np.inf, keep_top_k)
    at = jnp.take_along_axis(at, top, 1)
    label = (top // max(room, 1) + 1).astype(boxes.dtype)
    rows = [
        label[..., None],
        jnp.take_along_axis(scores, at, 1)[..., None],
        jnp.take_along_axis(boxes, at[..., None], 1),
    ]
    return packed(jnp.concatenate(rows, -1), stays)
