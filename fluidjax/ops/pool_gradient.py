"""The gradient of a max pool: it goes to the first maximum of each window, in the order of a
window's cells, as in Paddle.

Paddle looks for the first cell that equals the pool's output. Here the cells of a window are also
compared with each other: XLA:CPU may recompute the input for the gradient and round it differently,
so that no cell equals the output (extremes.py).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .concrete import numbers_of
from .extremes import by_equality
from .registry import Array
from .window import Windows

MOST_TAPS = 49  # cells of a window that are examined one by one
MADE = np.int32(65_521)  # more than there are places


def unrolled_max_grad(x: Array, d_out: Array, win: Windows) -> jax.Array:
    """The gradient for windows of up to MOST_TAPS cells."""
    return gathered_by_position(_first_maximum(x, win), d_out, x, win)


def positions(win: Windows) -> list[np.int32]:
    """The number of each cell of a window, in order, as `gathered_by_position` takes it."""
    lengths = [-(-k // s) * s for k, s in zip(win.sizes, win.strides, strict=True)]
    return [np.int32(np.ravel_multi_index(tap, lengths)) for tap in np.ndindex(*win.sizes)]


def gathered_by_position(place: Array, d_out: Array, x: Array, win: Windows) -> jax.Array:
    """The gradient of x, if that of each window goes to its cell of position `place` (-1: to none):
    each input cell sums over the windows that may contain it and whose cell it is.

    Cell i of an axis (the padding counted) is cell i % stride + q * stride of window i // stride -
    q, for as many q as windows overlap. For each q the position and the gradient are read at
    i // stride - q. These reads of whole rows are vectorised if nothing is cut off at the edges, so
    windows of position -1 are added on all sides. A sum for
    each i % stride, the sums interleaved, would take longer.
    """
    overlap = [-(-k // s) for k, s in zip(win.sizes, win.strides, strict=True)]
    lengths = [q * s for q, s in zip(overlap, win.strides, strict=True)]
    blocks = [-(-(b + n) // s) for b, n, s in zip(win.before, win.cells, win.strides, strict=True)]
    widths = [(0, 0, 0)] * x.ndim
    wanted: jax.Array | np.ndarray = np.zeros((), np.int32)
    for a, q, m, o, b, n, s, length in zip(
        win.axes,
        overlap,
        blocks,
        win.outs,
        win.before,
        win.cells,
        win.strides,
        lengths,
        strict=True,
    ):
        widths[a] = (q - 1, m - o, 0)
        cells = ((numbers_of((n,)).arange(n) + b) % s).astype(np.int32)
        wanted = wanted * length + cells.reshape([n if i == a else 1 for i in range(x.ndim)])
    place, d_out = (
        lax.pad(v, jnp.asarray(fill, v.dtype), widths) for v, fill in ((place, -1), (d_out, 0))
    )
    total = jnp.zeros(x.shape, d_out.dtype)
    for ago in np.ndindex(*overlap):
        found, given, more = place, d_out, 0
        for i, (q, s, length) in enumerate(zip(ago, win.strides, lengths, strict=True)):
            found, given = (
                _looked_up(v, win, i, overlap[i] - 1 - q, blocks[i]) for v in (found, given)
            )
            more = more * length + q * s
        total = total + jnp.where(found == wanted + np.int32(more), given, 0)
    return total


def _looked_up(values: Array, win: Windows, i: int, begin: int, blocks: int) -> jax.Array:
    """The value of the window for each input cell of the i-th pooled axis: `blocks` of them from
    `begin` on, a stride each.
    """
    a, s, b = win.axes[i], win.strides[i], win.before[i]
    values = lax.slice_in_dim(values, begin, begin + blocks, axis=a)
    shape = list(values.shape)
    if s > 1:
        values = jnp.broadcast_to(
            jnp.expand_dims(values, a + 1), [*shape[: a + 1], s, *shape[a + 1 :]]
        )
        values = values.reshape([*shape[:a], blocks * s, *shape[a + 1 :]])
    return lax.slice_in_dim(values, b, b + win.cells[i], axis=a)


def least(x: Array) -> Any:
    """The initial value of a maximum in Paddle, in float64 too: a window without greater cells has
    this value.
    """
    return np.asarray(max(float(np.finfo(np.float32).min), float(jnp.finfo(x.dtype).min)), x.dtype)


def _first_maximum(x: Array, win: Windows) -> jax.Array:
    """The position of each window's first maximum; -1 if it is nan or less than `least`.

    Any value after nan is greater than it, as in the pool; the first of equal maxima counts. XLA
    does not fuse a remainder, which is expensive, into a loop that reads each value several times,
    so every position is computed once.
    """
    cells = list(zip(positions(win), win.taps(x, -np.inf), strict=True))
    place, most = jnp.asarray(-1, jnp.int32), jnp.asarray(-jnp.inf, x.dtype)
    for tap, values in cells:
        stays = most >= values
        place, most = jnp.where(stays, place, tap), jnp.where(stays, most, values)
    for tap, values in reversed(cells):
        place = jnp.where(values == most, tap, place)
    return lax.rem(jnp.where(most >= least(x), place, -1), MADE)


def tiling_max_grad(x: Array, d_out: Array, win: Windows) -> jax.Array:
    """The gradient for windows of any size that tile the input."""
    cells, inner = win.blocks(x)
    where = jnp.zeros((), jnp.int32)
    for axis, k in zip(inner, win.sizes, strict=True):
        where = where * k + lax.broadcasted_iota(jnp.int32, cells.shape, axis)

    def first(cells: Array, d_out: Array) -> jax.Array:
        most = cells.max(inner, keepdims=True)
        found = jnp.where((cells == most) & (most >= least(x)), where, np.iinfo(np.int32).max)
        return jnp.where(
            where == jnp.min(found, inner, keepdims=True), jnp.expand_dims(d_out, inner), 0
        )

    grad = by_equality(first, cells, d_out)
    pads = [(0, 0, 0)] * x.ndim
    shape = list(x.shape)
    for a, e, n in zip(win.axes, win.ends, win.cells, strict=True):
        shape[a], pads[a] = e, (0, n - e, 0)
    return lax.pad(grad.reshape(shape), jnp.zeros((), x.dtype), pads)
