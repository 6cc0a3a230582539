"""Overlap of polygons: each is a fan of triangles with signs, and triangles overlap in a convex
polygon.

The signed sum over all pairs of triangles is the area that both polygons cover, so polygons need
not be convex. The area is a continuous function of the corners, even if edges coincide.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import loops
from ..greatest import first_greatest

SIZES = (8, 16, 24, 32)  # numbers of a polygon: x and y of each corner


def polygon_overlap(a: Any, b: Any) -> Any:
    """Intersection over union of polygons a and b [..., 2 * corners] (x1, y1, x2, y2, ...); 0 if
    neither has an area.
    """
    shape = jnp.broadcast_shapes(a.shape, b.shape)
    pair = jnp.stack(
        [jnp.broadcast_to(v, shape).astype(np.float64).reshape(*shape[:-1], -1, 2) for v in (a, b)]
    )
    triangles, turns = _fan(pair - pair[:1, ..., :1, :])  # near both, so that little is lost
    first, second = triangles[0, ..., :, None, :, :], triangles[1, ..., None, :, :, :]
    signs = jnp.sign(turns)
    both = jnp.abs(
        jnp.sum(_common(first, second) * signs[0, ..., :, None] * signs[1, ..., None, :], (-2, -1))
    )
    union = jnp.abs(turns.sum(-1)).sum(0) / 2 - both
    return (both / jnp.where(union == 0, 1, union)).astype(b.dtype)


def area(corners: Any) -> Any:
    """The areas of polygons [..., corners, 2]."""
    at = corners - corners[..., :1, :]
    return jnp.abs(_cross(at, jnp.roll(at, -1, -2)).sum(-1)) / 2


def _cross(a: Any, b: Any) -> Any:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def _fan(corners: Any) -> tuple[Any, Any]:
    """Triangles [..., corners - 2, 3, 2] around the first corner, each oriented counterclockwise,
    and twice their areas, below 0 for those that were clockwise.
    """
    first = jnp.broadcast_to(corners[..., :1, :], corners[..., 2:, :].shape)
    one, two = corners[..., 1:-1, :], corners[..., 2:, :]
    turn = _cross(one - first, two - first)
    back = (turn < 0)[..., None]
    return jnp.stack([first, jnp.where(back, two, one), jnp.where(back, one, two)], -2), turn


def _common(shape: Any, triangle: Any) -> Any:
    """The area [...] that counterclockwise triangles [..., 3, 2] have in common: one is clipped
    by the edges of the other.

    A loop clips three times, with room for six corners, the largest final number; unused ones
    repeat. That is a third of the code of an unrolled loop.
    """
    shape = jnp.broadcast_to(shape, jnp.broadcast_shapes(shape.shape, triangle.shape))
    shape = jnp.take(shape, np.array([0, 1, 2, 2, 2, 2]), -2)
    edges = jnp.stack([triangle, jnp.roll(triangle, -1, -2)], -2)  # [..., 3, begin and end, 2]

    def clip(i: Any, shape: Any) -> Any:
        begin, end = jnp.split(
            lax.dynamic_index_in_dim(edges, i, edges.ndim - 3, keepdims=False), 2, -2
        )
        return _clipped(_without_one(shape), begin, end)

    return area(loops.fori_loop(0, 3, clip, shape))


def _without_one(shape: Any) -> Any:
    """Corners [..., M, 2] without one that repeats the next, [..., M - 1, 2]."""
    repeats = (shape == jnp.roll(shape, -1, -2)).all(-1)
    place = first_greatest(repeats, -1)[..., None]
    return jnp.where(
        (jnp.arange(shape.shape[-2] - 1) >= place)[..., None], shape[..., 1:, :], shape[..., :-1, :]
    )


def _clipped(shape: Any, begin: Any, end: Any) -> Any:
    """The part of convex polygons [..., M, 2] on the left of the lines from begin to end, [..., M +
    1, 2]; corners may repeat.

    Corners on the other side are replaced by the point at which the outline leaves, and the last of
    them is followed by the point at which it enters again. If all corners are on the other side,
    all become one point.
    """
    count = shape.shape[-2]
    following = jnp.roll(shape, -1, -2)
    side, beyond = (_cross(end - begin, corners - begin) for corners in (shape, following))
    step = side - beyond
    crossing = shape + (following - shape) * (side / jnp.where(step == 0, 1, step))[..., None]
    at = jnp.arange(count + 1)

    def first(there: Any) -> tuple[Any, Any]:
        place = first_greatest(there, -1)[..., None]
        return place, jnp.sum(
            jnp.where((at[:-1] == place)[..., None], crossing, 0), -2, keepdims=True
        )

    enters = (side < 0) & (beyond >= 0)
    _, leaving = first((side >= 0) & (beyond < 0))
    place, entering = first(enters)
    place = jnp.where(enters.any(-1, keepdims=True), place, count)[..., None]
    corners = jnp.where((side < 0)[..., None], leaving, shape)
    before, behind = (
        jnp.pad(corners, [(0, 0)] * (corners.ndim - 2) + [pad, (0, 0)], mode="edge")
        for pad in ((0, 1), (1, 0))
    )
    at = at[:, None]
    return jnp.where(at <= place, before, jnp.where(at == place + 1, entering, behind))
