"""The overlap of boxes: iou_similarity, and the overlap for non-maximum suppression."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ...errors import ShapeError
from ..infer import Spec
from ..registry import Array, op
from ..traits import row_wise

EPSILON = 1e-10


def _spec(X: Spec, Y: Spec, **_: Any) -> Spec:
    for slot, boxes in (("X", X), ("Y", Y)):
        if boxes.ndim != 2 or boxes.shape[1] not in (4, -1):
            raise ShapeError(f"op 'iou_similarity' takes {slot} [rows, 4], not {list(boxes.shape)}")
    return Spec((X.shape[0], Y.shape[0]), X.dtype)


@op(outs="Out", infer=_spec, rows=row_wise("X"))
def iou_similarity(X: Array, Y: Array, *, box_normalized: bool = True):
    """Out[i, j] = intersection over union of the boxes (x1, y1, x2, y2) X[i] and Y[j]: [N, M] from
    X [N, 4] and Y [M, 4].

    box_normalized: false if the last pixel belongs to a box, which makes sides longer by one. 1e-10
    is added to the union.
    """
    more = 0 if box_normalized else 1
    a, b = X[:, None, :], Y[None, :, :]
    low = jnp.where(a[..., :2] > b[..., :2], a[..., :2], b[..., :2])
    high = jnp.where(a[..., 2:] > b[..., 2:], b[..., 2:], a[..., 2:])
    side = high - low + more
    side = jnp.where(side > 0, side, 0)
    common = side[..., 0] * side[..., 1]
    first, second = (jnp.prod(v[..., 2:] - v[..., :2] + more, -1) for v in (a, b))
    return common / (first + second - common + EPSILON)


def overlap(a: Any, b: Any, more: int) -> Any:
    """Intersection over union of boxes [..., 4]; 0 if they are apart, nan if both are empty.

    more: 1 if the last pixel belongs to a box. A box whose edges run backwards has no area.
    """
    low = jnp.where(a[..., :2] < b[..., :2], b[..., :2], a[..., :2])
    high = jnp.where(b[..., 2:] < a[..., 2:], b[..., 2:], a[..., 2:])
    common = jnp.prod(high - low + more, -1)
    apart = jnp.any((b[..., :2] > a[..., 2:]) | (b[..., 2:] < a[..., :2]), -1)
    return jnp.where(apart, 0, common / (area(a, more) + area(b, more) - common))


def area(boxes: Any, more: int) -> Any:
    """The areas of boxes [..., 4]; 0 if an edge runs backwards."""
    sides = boxes[..., 2:] - boxes[..., :2]
    return jnp.where(jnp.any(boxes[..., 2:] < boxes[..., :2], -1), 0, jnp.prod(sides + more, -1))
