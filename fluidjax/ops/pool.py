"""Max and average pools.

A window of up to MOST_TAPS cells is unrolled: the pool is a chain of maximum or add over strided
slices, which XLA fuses into one loop, and max's gradient is a look-up in the windows that contain a
cell (pool_gradient.py). This is 2 to 3 times faster than XLA's reduce_window, and the gradient 8 to
50 times faster than its select_and_scatter. Larger windows use those.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..errors import ShapeError
from .pool_gradient import MOST_TAPS, least, tiling_max_grad, unrolled_max_grad
from .registry import Array, Ints, grad_of, op
from .traits import row_wise
from .window import Windows, channel_last, from_one, gathered, spatial_axes, uneven, windows_of


def _greater(so_far: jax.Array, x: jax.Array) -> jax.Array:
    """The maximum, except that any value after nan wins, as in Paddle."""
    return jnp.where(so_far > x, so_far, x)


def _greater_within(so_far: jax.Array, x: jax.Array) -> jax.Array:
    """Like _greater, but -inf, the value of cells outside the input, never wins."""
    return jnp.where((so_far > x) | (x == -jnp.inf), so_far, x)


def _max(x: Array, win: Windows) -> jax.Array:
    if win.few(MOST_TAPS):
        greater = _greater_within if any(map(any, win.widths(x.ndim))) else _greater
        return reduce(greater, win.taps(x, -np.inf), jnp.asarray(least(x)))
    if win.tiling:
        blocks, inner = win.blocks(x)
        return blocks.max(inner)
    return _reduce_window(x, win, least(x), -jnp.inf, lax.max)


def _sum(x: Array, win: Windows) -> jax.Array:
    if win.tiling:
        if win.sizes == win.cells:  # a whole plane
            return jnp.sum(x, win.axes, keepdims=True)
        if not win.few(16):
            blocks, inner = win.blocks(x)
            return blocks.sum(inner)
    if win.few(16):
        return reduce(operator.add, win.taps(x, 0.0))
    return _reduce_window(x, win, 0.0, 0.0, lax.add)


def _reduce_window(x: Array, win: Windows, fill: float, start: Any, function: Any) -> jax.Array:
    size, stride = [1] * x.ndim, [1] * x.ndim
    for a, k, s in zip(win.axes, win.sizes, win.strides, strict=True):
        size[a], stride[a] = k, s
    x = lax.pad(x, jnp.asarray(fill, x.dtype), win.widths(x.ndim))
    return lax.reduce_window(x, np.asarray(start, x.dtype)[()], function, size, stride, "VALID")


def _average(x: Array, win: Windows, exclusive: bool) -> jax.Array:
    whole = math.prod(win.sizes)
    counts = win.counts() if exclusive and not win.tiling else None
    if counts is None or (isinstance(counts, np.ndarray) and (counts == whole).all()):
        return _sum(x, win) / whole
    shape = [1] * x.ndim
    for a, o in zip(win.axes, win.outs, strict=True):
        shape[a] = o
    return _sum(x, win) / counts.reshape(shape).astype(x.dtype)


def _max_grad(x: Array, d_out: Array, win: Windows) -> jax.Array:
    """The gradient goes to the first maximum of each window, as in Paddle."""
    if win.few(MOST_TAPS):
        found = unrolled_max_grad(x, d_out, win)
        # XLA:GPU would repeat the look-up within sums over all images, such as a batch norm's,
        # which takes six times as long as storing it
        return lax.platform_dependent(
            found, cuda=lax.optimization_barrier, default=lambda found: found
        )
    if win.tiling:
        return tiling_max_grad(x, d_out, win)
    return jax.vjp(lambda x: _reduce_window(x, win, least(x), -jnp.inf, lax.max), x)[1](d_out)[0]


def _uneven_average(x: Array, ksize: Sequence[int], data_format: str) -> jax.Array:
    """An adaptive average whose windows differ in size: window i is [floor(i * n / outs), ceil((i +
    1) * n / outs)).
    """
    if channel_last(data_format):
        return jnp.moveaxis(_uneven_average(jnp.moveaxis(x, -1, 1), ksize, "NCHW"), 1, -1)
    values, _, valid = gathered(x, [uneven(n, o) for n, o in zip(x.shape[2:], ksize, strict=True)])
    return jnp.sum(values * valid.astype(x.dtype), -1) / valid.sum(-1).astype(x.dtype)


def _adaptive(
    x: Array, kind: str, ksize: Sequence[int], strides: Sequence[int], data_format: str
) -> Windows | None:
    """The windows of an adaptive pool; None if they differ in size.

    With `adaptive`, Paddle's max pool only sets the size of Out; its windows still have ksize cells
    and are a stride apart. (The adaptive_pool layers use max_pool2d_with_index, which is right.)
    """
    from_one(ksize=ksize, strides=strides if kind == "max" else ())
    axes = spatial_axes(x.ndim, data_format)
    cells, nothing = tuple(x.shape[a] for a in axes), (0,) * len(axes)
    if kind == "max":
        return Windows(axes, cells, tuple(ksize), tuple(strides), nothing, tuple(ksize))
    if not all(n % o == 0 for n, o in zip(cells, ksize, strict=True)):
        return None
    sizes = tuple(n // o for n, o in zip(cells, ksize, strict=True))
    return Windows(axes, cells, sizes, sizes, nothing, tuple(ksize))


def _windows(
    x: Array, *, pooling_type, ksize, global_pooling, strides, paddings, adaptive, ceil_mode, data_format,
    padding_algorithm,
) -> Windows | None:  # fmt: skip
    """The windows of a pool; None if they differ in size."""
    if pooling_type not in ("max", "avg"):
        raise ShapeError(f"pooling_type is {pooling_type!r}; it can be 'max' or 'avg'")
    if adaptive and not global_pooling:
        return _adaptive(x, pooling_type, ksize, strides, data_format)
    return windows_of(
        x, ksize, strides, paddings, data_format, global_pooling, ceil_mode, padding_algorithm
    )


def _pool(x: Array, win: Windows | None, pooling_type, ksize, exclusive, data_format) -> jax.Array:
    if win is None:
        return _uneven_average(x, ksize, data_format)
    return _max(x, win) if pooling_type == "max" else _average(x, win, exclusive)


@op(outs="Out", rows=row_wise("X"))
def pool2d(
    X: Array, *, pooling_type: str, ksize: Ints, global_pooling: bool = False, strides: Ints = (1, 1),
    paddings: Ints = (0, 0), exclusive: bool = True, adaptive: bool = False, ceil_mode: bool = False,
    data_format: str = "NCHW", padding_algorithm: str = "EXPLICIT", is_test: bool = False,
):  # fmt: skip
    """Out = max or average ("avg") of X over windows.

    X [N, C, H, W] or [N, H, W, C] by data_format. paddings: two numbers, or four (top, bottom,
    left, right). exclusive: padding does not count in an average. adaptive: ksize is the size of
    Out. global_pooling: one window.
    """
    win = _windows(
        X, pooling_type=pooling_type, ksize=ksize, global_pooling=global_pooling, strides=strides, paddings=paddings,
        adaptive=adaptive, ceil_mode=ceil_mode, data_format=data_format, padding_algorithm=padding_algorithm,
    )  # fmt: skip
    return _pool(X, win, pooling_type, ksize, exclusive, data_format)


@op(outs="Out", rows=row_wise("X"))
def pool3d(
    X: Array, *, pooling_type: str, ksize: Ints, global_pooling: bool = False, strides: Ints = (1, 1, 1),
    paddings: Ints = (0, 0, 0), exclusive: bool = True, adaptive: bool = False, ceil_mode: bool = False,
    data_format: str = "NCDHW", padding_algorithm: str = "EXPLICIT",
):  # fmt: skip
    """Out = max or average ("avg") of X over windows; X [N, C, D, H, W] or [N, D, H, W, C]. See
    pool2d.
    """
    win = _windows(
        X, pooling_type=pooling_type, ksize=ksize, global_pooling=global_pooling, strides=strides, paddings=paddings,
        adaptive=adaptive, ceil_mode=ceil_mode, data_format=data_format, padding_algorithm=padding_algorithm,
    )  # fmt: skip
    return _pool(X, win, pooling_type, ksize, exclusive, data_format)


def _declare_pool_grad(kind: str) -> None:
    @grad_of(kind, "X Out")
    def pool_grad(
        X, Out, d_Out, *, pooling_type, ksize, global_pooling, strides, paddings, exclusive, adaptive, ceil_mode,
        data_format, padding_algorithm,
    ):  # fmt: skip
        """X@GRAD = Out@GRAD at the first maximum of each window, or shared out evenly for an
        average.
        """
        if d_Out is None:
            return None

        win = _windows(
            X, pooling_type=pooling_type, ksize=ksize, global_pooling=global_pooling, strides=strides,
            paddings=paddings, adaptive=adaptive, ceil_mode=ceil_mode, data_format=data_format,
            padding_algorithm=padding_algorithm,
        )  # fmt: skip
        if pooling_type == "max":
            return _max_grad(X, d_Out, win)
        return jax.vjp(lambda x: _pool(x, win, "avg", ksize, exclusive, data_format), X)[1](d_Out)[
            0
        ]


for _kind in ("pool2d", "pool3d"):
    _declare_pool_grad(_kind)
