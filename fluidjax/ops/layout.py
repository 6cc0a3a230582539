"""Moving elements: flips and rolls, blocks of space and channels, triangles and diagonals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..errors import ShapeError
from .conditions import either_inner_axes, inner_axes
from .registry import Array, Int64, Ints, Longs, grad_of, op
from .symbolic import largest
from .traits import mixes, row_wise
from .window import from_one, window_count


@op(outs="Out", rows=row_wise("X", when=inner_axes("axis"), lod=None))
def reverse(X: Array, *, axis: Ints):
    """Out = X with the order along each of `axis` reversed."""
    return jnp.flip(X, axis)


@op(outs="Out", rows=row_wise("X", when=either_inner_axes("dims", "axis")))
def flip(X: Array, *, dims: Ints, axis: Ints = ()):
    """Out = X with the order along each of `dims` (in later Paddles `axis`) reversed."""
    return jnp.flip(X, dims or axis)


@op(outs="Out", grad="X ShiftsTensor", nograd="ShiftsTensor", rows=mixes("X"))
def roll(
    X: Array, ShiftsTensor: Array | None, *, shifts: Longs = (), dims: Longs = (), axis: Longs = ()
):
    """Out[(i + shifts) mod size] = X[i] along `dims` (`axis` in later Paddles; over the flattened X
    if it is empty).

    ShiftsTensor overrides `shifts`.
    """
    if ShiftsTensor is not None:
        given = ShiftsTensor.reshape(-1)
        if not (dims or axis):
            return jnp.roll(X, given[0])
        return jnp.roll(X, given, dims or axis)
    dims = dims or axis
    if len(shifts) == 1 and not dims:
        return jnp.roll(X, shifts[0])
    if len(shifts) != len(dims):
        raise ShapeError(
            f"roll needs one shift for each dim, not {len(shifts)} for dims {list(dims)}"
        )
    return jnp.roll(X, shifts, dims)


@op(outs="Out", grad="X", rows=row_wise("X"))
def space_to_depth(X: Array, *, blocksize: Int64 = 2):
    """Out [N, C b^2, H / b, W / b] = the elements of X [N, C, H, W] laid out as depth-to-space and
    read in that order.

    This is what Paddle computes (darknet's reorg), not the textbook's space-to-depth: b^2 must
    divide C.
    """
    n, c, h, w = X.shape
    b = int(blocksize)
    if c % (b * b) or h % b or w % b:
        raise ShapeError(
            f"space_to_depth: in {list(X.shape)} C must divide by {b * b}, H and W by {b}"
        )
    blocks = X.reshape(n, b, b, c // (b * b), h, w)
    return blocks.transpose(0, 3, 4, 1, 5, 2).reshape(n, c * b * b, h // b, w // b)


@op(outs="Out", rows=row_wise("X", lod=None))
def pixel_shuffle(X: Array, *, upscale_factor: int = 1, data_format: str = "NCHW"):
    """Out[n, c, h r + i, w r + j] = X[n, c r^2 + i r + j, h, w], r the upscale_factor; channels
    last with NHWC.
    """
    return channels_moved(
        X, data_format, "pixel_shuffle", lambda x: _shuffled_up(x, upscale_factor)
    )


def channels_moved(x: Array, data_format: str, kind: str, fn: Callable[[Any], Any]) -> Any:
    """A function of images [N, C, H, W] applied to images with channels first or last."""
    if data_format not in ("NCHW", "NHWC"):
        raise ShapeError(f"{kind}'s data_format is NCHW or NHWC, not {data_format!r}")
    return fn(x) if data_format == "NCHW" else fn(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)


def _shuffled_up(X: Array, upscale_factor: int) -> Array:
    n, c, h, w = X.shape
    r = upscale_factor
    if c % (r * r):
        raise ShapeError(f"pixel_shuffle: {c} channels do not divide by {r}^2")
    return (
        X.reshape(n, c // (r * r), r, r, h, w)
        .transpose(0, 1, 4, 2, 5, 3)
        .reshape(n, c // (r * r), h * r, w * r)
    )


@grad_of("pixel_shuffle", "")
def pixel_shuffle_grad(d_Out: Array, *, upscale_factor: int, data_format: str):
    """d_X[n, c r^2 + i r + j, h, w] = d_Out[n, c, h r + i, w r + j]."""
    return channels_moved(
        d_Out, data_format, "pixel_shuffle", lambda x: _shuffled_down(x, upscale_factor)
    )


def _shuffled_down(d_Out: Array, upscale_factor: int) -> Array:
    n, c, h, w = d_Out.shape
    r = upscale_factor
    return (
        d_Out.reshape(n, c, h // r, r, w // r, r)
        .transpose(0, 1, 3, 5, 2, 4)
        .reshape(n, c * r * r, h // r, w // r)
    )


def _shuffled(X: Array, groups: int) -> Array:
    n, _, *rest = X.shape
    return X.reshape(n, groups, -1, *rest).swapaxes(1, 2).reshape(X.shape)


@op(outs="Out", rows=row_wise("X", lod=None))
def shuffle_channel(X: Array, *, group: int = 1):
    """Out[n, i group + g] = X[n, g C / group + i]: the channels of the groups, interleaved."""
    return _shuffled(X, group)


@grad_of("shuffle_channel", "")
def shuffle_channel_grad(d_Out: Array, *, group: int):
    """d_X = d_Out shuffled once more, as Paddle does; this is the derivative only if C = group^2."""
    return _shuffled(d_Out, group)


def _shifted(X: Array, segments: int, ratio: float, by: int) -> Array:
    nt, c, h, w = X.shape
    frames = X.reshape(nt // segments, segments, c, h, w)
    first = int(np.float32(c) * np.float32(ratio))
    second = int(np.float32(c * 2) * np.float32(ratio))
    zero = np.zeros((), X.dtype)
    moved = [
        lax.pad(frames[:, :, lo:hi], zero, [(0, 0, 0), (s, -s, 0), (0, 0, 0), (0, 0, 0), (0, 0, 0)])
        for lo, hi, s in ((0, first, by), (first, second, -by))
    ]
    return jnp.concatenate([*moved, frames[:, :, second:]], axis=2).reshape(X.shape)


@op(outs="Out", rows=mixes("X"))
def temporal_shift(X: Array, *, seg_num: int, shift_ratio: float = 0.25, data_format: str = "NCHW"):
    """Out[n, t] = X[n, t - 1] in the first C shift_ratio channels, X[n, t + 1] in as many more,
    X[n, t] in the rest.

    X [N seg_num, C, H, W], or channels last with NHWC; frames before the first and after the last
    are 0.
    """
    return channels_moved(
        X, data_format, "temporal_shift", lambda x: _shifted(x, seg_num, shift_ratio, 1)
    )


@grad_of("temporal_shift", "")
def temporal_shift_grad(d_Out: Array, *, seg_num: int, shift_ratio: float, data_format: str):
    """d_X = d_Out shifted the other way."""
    return channels_moved(
        d_Out, data_format, "temporal_shift", lambda x: _shifted(x, seg_num, shift_ratio, -1)
    )


@op(outs="Y", grad="X", rows=row_wise("X", lod=None))
def unfold(X: Array, *, kernel_sizes: Ints, strides: Ints, paddings: Ints, dilations: Ints):
    """Y [N, C kh kw, L] = the L windows of X [N, C, H, W], one per column; paddings: up, left,
    down, right.
    """
    from_one(kernel_sizes=kernel_sizes, strides=strides, dilations=dilations)
    n, c = X.shape[:2]
    (kh, kw), (sh, sw), (dh, dw) = kernel_sizes, strides, dilations
    up, left, down, right = paddings
    borders, edges, counts = ((up, down), (left, right)), [(0, 0, 0), (0, 0, 0)], []
    for size, border, k, d, s in zip(
        X.shape[2:], borders, kernel_sizes, dilations, strides, strict=True
    ):
        reach = d * (k - 1) + 1
        count = window_count(size + sum(border), reach, s)
        if count == 0:
            raise ShapeError(
                f"unfold: a window of {list(kernel_sizes)} does not fit in {list(X.shape)}, padded by"
                f" {list(paddings)}"
            )
        counts.append(largest(count, 1))  # an open size has room for one
        # up to the end of the last window, which reads zeros beyond the image
        edges.append((border[0], (counts[-1] - 1) * s + reach - border[0] - size, 0))
    rows, columns = counts
    X = lax.pad(X, np.zeros((), X.dtype), edges)
    taps = [
        lax.slice(
            X,
            (0, 0, i, j),
            (n, c, i + (rows - 1) * sh + 1, j + (columns - 1) * sw + 1),
            (1, 1, sh, sw),
        )
        for i in range(0, kh * dh, dh)
        for j in range(0, kw * dw, dw)
    ]
    return jnp.stack(taps, axis=2).reshape(n, c * kh * kw, rows * columns)


@op(outs="Out", rows=mixes("X"))
def tril_triu(X: Array, *, diagonal: int = 0, lower: bool):
    """Out = X on and below (lower) or above its diagonal number `diagonal` of the last two dims, 0
    elsewhere.
    """
    return jnp.tril(X, diagonal) if lower else jnp.triu(X, diagonal)


@grad_of("tril_triu", "")
def tril_triu_grad(d_Out: Array, *, diagonal: int, lower: bool):
    """d_X = d_Out on the same triangle."""
    return tril_triu(d_Out, diagonal=diagonal, lower=lower)


@op(outs="Out", rows=mixes())
def diag(Diagonal: Array):
    """Out [N, N] = Diagonal [N] on the diagonal, 0 elsewhere."""
    if Diagonal.ndim != 1:
        raise ShapeError(f"op 'diag' takes a Diagonal of 1 dimension, not {list(Diagonal.shape)}")
    return jnp.diag(Diagonal)


@op(outs="Out", rows=mixes())
def diag_embed(Input: Array, *, offset: int = 0, dim1: int = -2, dim2: int = -1):
    """Out[..., i, ..., i + offset, ...] = Input[..., i]: diagonals in the planes of dims dim1 and
    dim2, 0 elsewhere.
    """
    rank = Input.ndim + 1
    n = Input.shape[-1] + abs(offset)
    rows = jnp.arange(n, dtype=np.int32)
    on = rows[:, None] + offset == rows[None, :]
    before = (max(-offset, 0), max(offset, 0))
    spread = lax.pad(
        Input,
        np.zeros((), Input.dtype),
        [(0, 0, 0)] * (Input.ndim - 1) + [(before[0], before[1], 0)],
    )
    plane = jnp.where(on, spread[..., :, None], np.zeros((), Input.dtype))
    return jnp.moveaxis(plane, (-2, -1), (dim1 % rank, dim2 % rank))


@op(outs="Out*", grad="X", rows=mixes())
def meshgrid(X: list[Array]):
    """Out[k][i_0, i_1, ...] = X[k][i_k], each X[k] one-dimensional."""
    dims = [x.size for x in X]
    return [lax.broadcast_in_dim(x.reshape(-1), dims, [k]) for k, x in enumerate(X)]
