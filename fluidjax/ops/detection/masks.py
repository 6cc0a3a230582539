"""Polygons drawn as masks, as by COCO's tools: column by column, on a grid five times as fine.

An edge that crosses a column of pixels switches between outside and inside, so a pixel is inside if
an odd number of edges crosses its column at or before it. An edge crosses a column at most once, at
a position that its ends determine, so no loop walks along edges.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

FINE = 5  # places of the fine grid in a pixel


def _cut(x: Any) -> Any:
    """A C cast to int."""
    return jnp.trunc(x)


def _row_at(a: Any, b: Any, column: Any) -> Any:
    """The fine row at which the edge from a to b [..., 2] passes from fine column `column` to the
    next, or -1 if it does not: the lower of its rows on both sides.
    """
    (xs, ys), (xe, ye) = (jnp.moveaxis(v, -1, 0) for v in (a, b))
    dx, dy = jnp.abs(xe - xs), jnp.abs(ye - ys)
    flat = dx >= dy
    swap = jnp.where(flat, xs > xe, ys > ye)
    xs, xe, ys, ye = (
        jnp.where(swap, xe, xs),
        jnp.where(swap, xs, xe),
        jnp.where(swap, ye, ys),
        jnp.where(swap, ys, ye),
    )
    slope = jnp.where(flat, ye - ys, xe - xs) / jnp.maximum(jnp.where(flat, dx, dy), 1)
    low, high = jnp.minimum(xs, xe), jnp.maximum(xs, xe)
    passes = (low <= column) & (column < high)
    # for a flat edge: one place per column
    rows = [_cut(ys + slope * (c - xs) + 0.5) for c in (column, column + 1)]
    return jnp.where(
        passes, jnp.where(flat, jnp.minimum(*rows), _steep(xs, ys, slope, dy, column)), -np.inf
    )


def _steep(xs: Any, ys: Any, slope: Any, dy: Any, column: Any) -> Any:
    """The lower of the two rows between which a steep edge changes from `column` to the next, or
    back: its column at step t of dy is

    cut(xs + slope * t + 0.5).
    """
    edge = column + 1  # the greater of both columns
    guess = jnp.floor((edge - 0.5 - xs) / jnp.where(slope == 0, 1, slope))
    rises = slope > 0
    t = guess + np.arange(-2, 3).reshape(5, *[1] * guess.ndim)  # the first step on the other side
    before, here = (_cut(xs + slope * (t - n) + 0.5) for n in (1, 0))
    changes = jnp.where(rises, (before < edge) & (here >= edge), (before >= edge) & (here < edge))
    found = jnp.where(changes & (t >= 1) & (t <= dy), ys + t - 1, np.inf).min(0)
    return jnp.where(found < np.inf, found, -np.inf)


def drawn(points: Any, ends: Any, real: Any, size: int) -> Any:
    """Polygons [..., P, L, 2], each of its first `ends` [..., P] points, as one mask [..., size,
    size] (rows, columns) of those that are

    `real` [..., P].
    """
    fine = _cut(FINE * points.astype(np.float64) + 0.5)
    at = jnp.arange(points.shape[-2], dtype=np.int32)
    following = jnp.where(at + 1 < ends[..., None], at + 1, 0)
    other = jnp.take_along_axis(fine, following[..., None], -2)
    column = FINE * jnp.arange(size) + FINE // 2  # a pixel's border in the fine grid
    row = _row_at(fine[..., None, :], other[..., None, :], column)  # [..., P, L, size]
    row = jnp.where((at < ends[..., None])[..., None], row, -np.inf)
    place = jnp.ceil(jnp.clip((row + 0.5) / FINE - 0.5, 0, size))
    begin = jnp.where(jnp.isfinite(row), jnp.arange(size) * size + place, size * size).astype(
        np.int32
    )
    begin = begin.reshape(-1, points.shape[-2] * size)  # of each polygon
    toggles = (
        jnp.zeros((begin.shape[0], size * size + 1), np.int32)
        .at[jnp.arange(begin.shape[0])[:, None], begin]
        .add(1)
    )
    odd = (jnp.cumsum(toggles[:, :-1], 1) % 2 == 1).reshape(*real.shape, size, size)
    return (odd & real[..., None, None]).any(-3).swapaxes(-1, -2)
