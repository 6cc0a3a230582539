"""Overlaps of boxes (x1, y1, x2, y2), and boxes as offsets from others."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

# the logarithm of the largest growth of a box over its anchor
MOST_GROWTH = float(np.log(1000.0 / 16.0))


def pixel_overlaps(a: Any, b: Any, more: int = 1) -> Any:
    """Intersection over union of boxes a [..., A, 4] and b [..., B, 4] that include their edge
    pixels, [..., A, B]; 0 if they do not meet.

    more: 0 if edges are lines.
    """
    a, b = a[..., :, None, :], b[..., None, :, :]
    sizes = [
        (box[..., 2] - box[..., 0] + more) * (box[..., 3] - box[..., 1] + more) for box in (a, b)
    ]
    edges = jnp.minimum(a[..., 2:], b[..., 2:]) - jnp.maximum(a[..., :2], b[..., :2]) + more
    both = jnp.maximum(edges[..., 0], 0) * jnp.maximum(edges[..., 1], 0)
    return jnp.where(both == 0, 0, both / (sizes[0] + sizes[1] - both))


def centred(boxes: Any, more: int = 1) -> tuple[Any, Any]:
    """Centres and sizes [..., 2] of boxes that include their edge pixels, or whose edges are lines
    if more is 0.
    """
    size = boxes[..., 2:] - boxes[..., :2] + more
    return boxes[..., :2] + size * np.asarray(0.5, boxes.dtype), size


def deltas(anchors: Any, boxes: Any, weights: Any = None) -> Any:
    """The offsets of boxes [..., 4] from anchors, divided by weights [4]: the shift of the centre
    in sizes of the anchor, and the logarithm of the growth.
    """
    (at, size), (centre, extent) = centred(anchors), centred(boxes)
    found = jnp.concatenate([(centre - at) / size, jnp.log(extent / size)], -1)
    return found if weights is None else found / np.asarray(weights, boxes.dtype)


def moved(anchors: Any, change: Any, variances: Any, more: int = 1) -> Any:
    """The boxes at offset change * variances from anchors [..., 4]: the inverse of deltas, with
    bounded growth.
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
