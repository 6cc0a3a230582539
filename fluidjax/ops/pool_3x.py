"""Pools that Paddle 3 added: norms over windows, and maxima over windows of fractional size."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import FluidValueError, ShapeError, UnsupportedError
from .greatest import first_greatest
from .infer import Spec
from .pool import _max, _max_grad, _sum
from .pool_index import _put
from .registry import Array, Ints, Longs, grad_of, op
from .traits import mixes, row_wise
from .window import Windows, windows_of


def _windows(
    x: Array, *, kernel_size, strides, paddings, ceil_mode, data_format, pooling_type, global_pooling, adaptive, padding_algorithm,
    norm_type,
) -> Windows:  # fmt: skip
    if adaptive or pooling_type not in ("", "lp"):
        raise UnsupportedError("lp_pool2d takes pooling_type 'lp' and adaptive false")
    if norm_type in (0, -math.inf):
        raise FluidValueError(f"lp_pool2d takes a norm_type other than 0 and -inf, not {norm_type}")
    return windows_of(
        x,
        kernel_size,
        strides,
        paddings,
        data_format,
        global_pooling,
        ceil_mode,
        padding_algorithm or "EXPLICIT",
    )


def _power(x: Array, by: float) -> Array:
    return jnp.power(x, jnp.asarray(by, x.dtype))


@op(outs="out", rows=row_wise("x"))
def lp_pool2d(
    x: Array, KernelSizeTensor: Array | None, KernelSizeTensorList: list[Array] | None, *, kernel_size: Longs, strides: Ints = (1, 1),
    paddings: Ints = (0, 0), ceil_mode: bool = False, exclusive: bool = True, data_format: str = "NCHW", pooling_type: str = "",
    global_pooling: bool = False, adaptive: bool = False, padding_algorithm: str = "EXPLICIT", norm_type: float = 0.0,
):  # fmt: skip
    """out = (sum of x ** norm_type over each window) ** (1 / norm_type); x [N, C, H, W] or [N, H,
    W, C] by data_format.

    Powers are of x, not of |x|, as in Paddle: for negative x they are negative with an odd
    norm_type and nan with a fraction. Padding adds nothing. norm_type inf: the maximum. Raises
    FluidValueError for norm_type 0 and -inf, UnsupportedError for a window whose size is a
    variable.
    """
    if KernelSizeTensor is not None or KernelSizeTensorList:
        raise UnsupportedError(
            "lp_pool2d takes kernel_size as numbers, for the size of the window is part of the"
            " compiled step"
        )
    win = _windows(
        x, kernel_size=kernel_size, strides=strides, paddings=paddings, ceil_mode=ceil_mode, data_format=data_format,
        pooling_type=pooling_type, global_pooling=global_pooling, adaptive=adaptive, padding_algorithm=padding_algorithm,
        norm_type=norm_type,
    )  # fmt: skip
    return (
        _max(x, win)
        if math.isinf(norm_type)
        else _power(_sum(_power(x, norm_type), win), 1 / norm_type)
    )


@grad_of("lp_pool2d", "x out", nograd="KernelSizeTensor KernelSizeTensorList")
def lp_pool2d_grad(
    x, out, d_out, *, kernel_size, strides, paddings, ceil_mode, data_format, pooling_type, global_pooling, adaptive, padding_algorithm,
    norm_type,
):  # fmt: skip
    """x@GRAD = the sum of out@GRAD * (x / out) ** (norm_type - 1) over the windows of the cell: nan
    where out is 0. inf: pool2d's.
    """
    if d_out is None:
        return None
    win = _windows(
        x, kernel_size=kernel_size, strides=strides, paddings=paddings, ceil_mode=ceil_mode, data_format=data_format,
        pooling_type=pooling_type, global_pooling=global_pooling, adaptive=adaptive, padding_algorithm=padding_algorithm,
        norm_type=norm_type,
    )  # fmt: skip
    if math.isinf(norm_type):
        return _max_grad(x, d_out, win)
    spread = jax.linear_transpose(lambda powers: _sum(powers, win), x)
    flow = _power(x, norm_type - 1) * spread(d_out * _power(out, 1 - norm_type))[0]
    # Cells of one plane that no window reads: their gradient is 0, even if they are nan.
    alone = (0, data_format.index("C"))
    plane, outs = (
        [1 if i in alone else size for i, size in enumerate(a.shape)] for a in (x, d_out)
    )
    read = jax.linear_transpose(
        lambda powers: _sum(powers, win), jax.ShapeDtypeStruct(plane, x.dtype)
    )(jnp.ones(outs, d_out.dtype))[0]
    return jnp.where(read > 0, flow, 0)


def _fractions(cells: int, outs: int, pool: int, u: Array | np.float32) -> tuple[Array, Array]:
    """Cells of each of `outs` windows, [outs, longest], and which of them count; in float32, as
    Paddle computes them.
    """
    if not 0 < outs <= cells or not 0 <= pool <= cells or (pool and outs == 1 and pool != cells):
        raise ShapeError(
            f"fractional_max_pool cannot take {outs} windows of {pool or 'any'} cells from {cells}"
        )
    alpha = np.float32(cells - pool) / np.float32(max(outs - (pool > 0), 1))
    u = jnp.asarray(u, jnp.float32)
    if not pool:
        base = cells // outs
        most = min(
            np.float32(base + 2) / alpha - 1,
            np.float32(cells + 1 - base) / alpha - np.float32(outs - 1),
        )
        u = u * np.float32(most)
    o = jnp.arange(outs).astype(jnp.float32)
    first = (u * alpha).astype(jnp.int32)
    starts = ((o + u) * alpha).astype(jnp.int32) - first
    ends = starts + pool if pool else ((o + 1 + u) * alpha).astype(jnp.int32) - first
    index = starts[:, None] + np.arange(pool or int(alpha) + 2)
    return jnp.clip(index, 0, cells - 1), (index >= 0) & (index < jnp.minimum(ends, cells)[:, None])


def _fractional(
    x: Array,
    output_size: Sequence[int],
    kernel_size: Sequence[int],
    random_u: float,
    key: jax.Array,
) -> tuple[Array, Array]:
    """The maximum of each window of [N, C, ...] and the position of the first one in its plane,
    int32.
    """
    rank = x.ndim - 2
    if len(output_size) != rank or (kernel_size and len(kernel_size) != rank):
        raise ShapeError(
            f"fractional_max_pool{rank}d takes {rank} numbers in output_size and kernel_size"
        )
    if not 0 <= random_u < 1:
        raise FluidValueError(
            f"fractional_max_pool{rank}d takes random_u above 0 and below 1, or 0 to draw it, not"
            f" {random_u}"
        )
    u = np.float32(random_u) if random_u else jax.random.uniform(key, (), jnp.float32)
    places, valid = jnp.zeros((), jnp.int32), jnp.ones((), bool)
    for i, (cells, outs, pool) in enumerate(
        zip(x.shape[2:], output_size, kernel_size or (0,) * rank, strict=True)
    ):
        index, ok = _fractions(cells, outs, pool, u)
        shape = [1] * (2 * rank)
        shape[i], shape[rank + i] = index.shape
        places, valid = places * cells + index.reshape(shape), valid & ok.reshape(shape)
    places, valid = places.reshape(*output_size, -1), valid.reshape(*output_size, -1)
    least = jnp.asarray(np.finfo(np.float32).min, x.dtype)
    values = jnp.asarray(x).reshape(*x.shape[:2], -1)[:, :, places]
    values = jnp.where(valid & (values > least), values, least)
    which = first_greatest(values, -1)[..., None]
    found = jnp.take_along_axis(values, which, -1)[..., 0]
    mask = jnp.take_along_axis(jnp.broadcast_to(places, values.shape), which, -1)[..., 0]
    return found, jnp.where(found > least, mask, -1).astype(jnp.int32)


def _declare_fractional(rank: int) -> None:
    kind = f"fractional_max_pool{rank}d"

    def infer(x: Spec, *, output_size: Ints, **_: object) -> tuple[Spec, Spec]:
        if x.ndim != rank + 2 or len(output_size) != rank:
            raise ShapeError(
                f"{kind} takes {rank + 2} dimensions and {rank} numbers in output_size, not"
                f" {list(x.shape)}, {output_size}"
            )
        shape = (*x.shape[:2], *output_size)
        return Spec(shape, x.dtype), Spec(shape, "int32")

    @op(kind, outs="out mask", infer=infer, rows=mixes("x"))
    def fractional_max_pool(
        x: Array,
        *,
        output_size: Ints,
        kernel_size: Ints = (),
        random_u: float = 0.0,
        return_mask: bool = True,
        key: jax.Array,
    ):
        """out = max of x [N, C, ...] over output_size windows of about size / output_size cells,
        mask = its position in the plane, int32.

        Window i begins at floor((i + u) * alpha) - floor(u * alpha), alpha = size / output_size,
        and ends where the next begins; u = random_u, or a random number in [0, 1) if that is 0,
        scaled so that the last window ends in the plane. kernel_size: the windows' size, which then
        overlap; alpha = (size - kernel_size) / (output_size - 1). The search starts with the least
        float32, at position -1.
        """
        return _fractional(x, output_size, kernel_size if any(kernel_size) else (), random_u, key)

    @grad_of(kind, "x mask", grad_outs="out")
    def fractional_max_pool_grad(x, mask, d_out):
        """x@GRAD = the sum of out@GRAD over the windows whose mask names the cell."""
        return None if d_out is None else _put(d_out, mask, x)


for _rank in (2, 3):
    _declare_fractional(_rank)
