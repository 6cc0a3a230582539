"""yolo_box: the boxes and scores of a YOLO head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import FluidValueError, ShapeError
from ..concrete import numbers_of
from ..infer import Spec
from ..later import UNSAID
from ..registry import Array, Ints, op
from ..traits import row_wise
from ..window import from_one


def check_anchors(
    op_type: str, x: Spec, anchors: Sequence[int], used: int, class_num: int, numbers: int = 5
) -> None:
    """Raises for anchors that are not pairs above 0, for no classes, and unless there are used *
    (numbers + classes) channels.
    """
    if not anchors or len(anchors) % 2 or min(anchors) <= 0:
        raise FluidValueError(
            f"op '{op_type}' takes pairs of anchor sizes above 0, not {list(anchors)}"
        )
    if class_num <= 0:
        raise FluidValueError(f"op '{op_type}' takes a class_num above 0, not {class_num}")
    if x.ndim != 4 or x.shape[1] not in (used * (numbers + class_num), -1):
        raise ShapeError(
            f"op '{op_type}' takes X [N, {used} anchors * ({numbers} + {class_num} classes) ="
            f" {used * (numbers + class_num)}, H, W], not {list(x.shape)}"
        )


def _spec(
    X: Spec, ImgSize: Spec, *, anchors: Sequence[int], class_num: int, iou_aware: bool, **_: Any
) -> tuple[Spec, Spec]:
    count = len(anchors) // 2
    check_anchors("yolo_box", X, anchors, count, class_num, 6 if iou_aware else 5)
    if ImgSize.ndim != 2 or ImgSize.shape[1] not in (2, -1):
        raise ShapeError(
            f"op 'yolo_box' takes ImgSize [N, 2], height and width, not {list(ImgSize.shape)}"
        )
    boxes = X.shape[2] * X.shape[3] * count if min(X.shape[2:]) >= 0 else -1
    return Spec((X.shape[0], boxes, 4), X.dtype), Spec((X.shape[0], boxes, class_num), X.dtype)


@op(
    outs="Boxes Scores",
    infer=_spec,
    rows=row_wise("X", "ImgSize", lod=None),
)
def yolo_box(
    X: Array, ImgSize: Array, *, anchors: Ints = (), class_num: int, conf_thresh: float = 0.01, downsample_ratio: int = 32,
    clip_bbox: bool = True, scale_x_y: float = 1.0, iou_aware: bool = UNSAID, iou_aware_factor: float = 0.5,
):  # fmt: skip
    """Boxes [N, anchors * H * W, 4] = (x1, y1, x2, y2) in pixels, and Scores [N, anchors * H * W,
    classes], from X.

    X [N, anchors * (5 + classes), H, W]: shifts of the centre, log of the size, confidence and
    classes, before sigmoid, at each place. Centre = (place + scale_x_y * sigmoid(shift) + (1 -
    scale_x_y) / 2) / H, size = exp(.) * anchor / (downsample_ratio * H), as parts of the image,
    ImgSize [N, 2] integers (height, width). Both are Both are 0 where the confidence is below
    conf_thresh. Scores = confidence * sigmoid(class). clip_bbox: to the image. iou_aware: X has a
    channel for each anchor in front, and with f = iou_aware_factor the confidence is confidence^(1
    - f) * sigmoid(that)^f. If the attribute is given, true or not, as in later Paddles, columns use
    X's own W.
    """
    from_one(downsample_ratio=[downsample_ratio])
    n, _, high, wide = X.shape
    count = len(anchors) // 2
    ious = X[:, :count, None] if iou_aware else None
    cells = (X[:, count:] if iou_aware else X).reshape(n, count, 5 + class_num, high, wide)
    size = jnp.flip(ImgSize, 1).astype(X.dtype).reshape(n, 1, 2, 1, 1)
    column = jnp.broadcast_to(jnp.arange(wide, dtype=X.dtype), (high, wide))
    row = jnp.broadcast_to(jnp.arange(high, dtype=X.dtype)[:, None], (high, wide))
    moved = jax.nn.sigmoid(cells[:, :, :2]) * np.asarray(scale_x_y, X.dtype) + np.asarray(
        -0.5 * (scale_x_y - 1), X.dtype
    )
    xp, sizes = numbers_of([high, wide]), (high if iou_aware is UNSAID else wide, high)
    sides = xp.stack([xp.asarray(n, X.dtype) for n in sizes]).reshape(2, 1, 1)
    centre = (jnp.stack([column, row]) + moved) * size / sides
    anchor = np.array(anchors, X.dtype).reshape(1, count, 2, 1, 1)
    extent = jnp.exp(cells[:, :, 2:4]) * anchor * size / (downsample_ratio * sides)
    boxes = jnp.concatenate([centre - extent / 2, centre + extent / 2], 2)
    if clip_bbox:
        low, high_edge = boxes[:, :, :2], boxes[:, :, 2:]
        last = size - 1
        boxes = jnp.concatenate(
            [jnp.where(low > 0, low, 0), jnp.where(high_edge < last, high_edge, last)], 2
        )
    confidence = jax.nn.sigmoid(cells[:, :, 4:5])
    if ious is not None:
        confidence = confidence ** (1 - iou_aware_factor) * jax.nn.sigmoid(ious) ** iou_aware_factor
    there = ~(confidence < np.asarray(conf_thresh, np.float32))
    scores = confidence * jax.nn.sigmoid(cells[:, :, 5:])
    return tuple(
        jnp.moveaxis(jnp.where(there, v, 0), 2, -1).reshape(n, -1, v.shape[2])
        for v in (boxes, scores)
    )
