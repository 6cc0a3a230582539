"""Overlaps of boxes (x1, y1, x2, y2), and boxes as offsets from others."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

# the logarithm of how much larger than its anchor a box may become
MOST_GROWTH = float(np.log(1000.0 / 16.0))


def pixel_overlaps(a: Any, b: Any, more: int = 1) -> Any:
    """Intersection over union of boxes a [..., A, 4] and b [..., B, 4] whose edges are pixels of
    them, [..., A, B]; 0 where they do

    not meet. more: 0 where edges are lines.
    """
    a, b = a[..., :, None, :], b[..., None, :, :]
    sizes = [
        (box[..., 2] - box[..., 0] + more) * (box[..., 3] - box[..., 1] + more) for box in (a, b)
    ]
    edges = jnp.minimum(a[..., 2:], b[..., 2:]) - jnp.maximum(a[..., :2], b[..., :2]) + more
    both = jnp.maximum(edges[..., 0], 0) * jnp.maximum(edges[..., 1], 0)
    return jnp.where(both == 0, 0, both / (sizes[0] + sizes[1] - both))


def centred(boxes: Any, more: int = 1) -> tuple[Any, Any]:
    """Centres and sizes [..., 2] of boxes whose edges are pixels of them, or lines where more is 0."""
    size = boxes[..., 2:] - boxes[..., :2] + more
    return boxes[..., :2] + size * np.asarray(0.5, boxes.dtype), size


def deltas(anchors: Any, boxes: Any, weights: Any = None) -> Any:
    """How boxes [..., 4] differ from anchors: the way of the centre in sizes of the anchor, and the
    logarithm of the growth; over

    weights [4].
    """
    (at, size), (centre, extent) = centred(anchors), centred(boxes)
    found = jnp.concatenate([(centre - at) / size, jnp.log(extent / size)], -1)
    return found if weights is None else found / np.asarray(weights, boxes.dtype)


def moved(anchors: Any, change: Any, variances: Any, more: int = 1) -> Any:
    """The boxes that differ from anchors [..., 4] by change times variances: the inverse of deltas,
    growth bounded.
    """
    at, size = centred(anchors, more)
    centre = variances[..., :2] * change[..., :2] * size + at
    extent = (
        jnp.exp(
            jnp.minimum(
                variances[..., 2:] * change[..., 2:], np.asarray(MOST_GROWTH, anchors.dtype)
            )
        )
        * size
    )
    half = extent / 2
    return jnp.concatenate([centre - half, centre + half - more], -1)
