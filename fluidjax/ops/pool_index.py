"""Max pools that also return the positions of their maxima, and their inverse."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..errors import UnsupportedError
from .concrete import numbers_of
from .outside import within
from .registry import Array, Ints, grad_of, op
from .traits import mixes, row_wise
from .window import even, gathered, uneven, windows_of


def _max_and_place(x: Array, tables: Sequence[tuple[Array, Array]]) -> tuple[jax.Array, jax.Array]:
    """The maximum of each window of [N, C, ...] and the position of the first one in its plane,
    int32.

    As in Paddle, the search starts with the least float32, at position -1, and skips NaN.
    """
    least = np.asarray(np.finfo(np.float32).min, x.dtype)
    values, places, valid = gathered(x, tables)
    values = jnp.where(valid & (values > least), values, least)
    which = lax.argmax(values, values.ndim - 1, np.int32)[..., None]
    found = jnp.take_along_axis(values, which, -1)[..., 0]
    mask = jnp.take_along_axis(jnp.broadcast_to(places.astype(np.int32), values.shape), which, -1)[
        ..., 0
    ]
    return found, jnp.where(found > least, mask, -1)


def _put(d_out: Array, mask: Array, like: Array, add: bool = True) -> jax.Array:
    """Zeros like [N, C, ...] with d_out added (or written) at the places `mask` of each plane."""
    planes = like.shape[0] * like.shape[1]
    rows, cells = numbers_of((planes,)).arange(planes)[:, None], math.prod(like.shape[2:])
    places = mask.reshape(planes, -1)
    places = jnp.where(places < 0, cells, places)  # a window without a maximum
    target = jnp.zeros((planes, cells), d_out.dtype).at[rows, places]
    values = d_out.reshape(planes, -1)
    return (target.add(values, mode="drop") if add else target.set(values, mode="drop")).reshape(
        like.shape
    )


def _tables(
    x: Array, ksize, strides, paddings, global_pooling, adaptive
) -> list[tuple[Array, Array]]:
    # as in Paddle, also with global_pooling, which then means one window per cell
    if adaptive:
        outs = x.shape[2:] if global_pooling else ksize
        return [uneven(n, o) for n, o in zip(x.shape[2:], outs, strict=True)]
    win = windows_of(x, ksize, strides, paddings, "NCHW", global_pooling)
    return [
        even(*each)
        for each in zip(win.cells, win.outs, win.sizes, win.strides, win.before, strict=True)
    ]


def _declare_with_index(kind: str, rank: int) -> None:
    ones, zeros = (1,) * rank, (0,) * rank

    @op(kind, outs="Out Mask", rows=row_wise("X", lod=None))
    def max_pool_with_index(
        X: Array, *, ksize: Ints, global_pooling: bool = False, adaptive: bool = False, strides: Ints = ones,
        paddings: Ints = zeros,
    ):  # fmt: skip
        """Out = max of X [N, C, ...] over windows, Mask = the position of the first maximum in its
        plane of X, int32.

        adaptive: ksize is the size of Out. global_pooling: one window.
        """
        return _max_and_place(X, _tables(X, ksize, strides, paddings, global_pooling, adaptive))

    @grad_of(kind, "X Mask", grad_outs="Out")
    def max_pool_with_index_grad(X, Mask, d_Out):
        """X@GRAD = the sum of Out@GRAD over the windows whose Mask names the cell."""
        return None if d_Out is None else _put(d_Out, Mask, X)


for _kind, _rank in (("max_pool2d_with_index", 2), ("max_pool3d_with_index", 3)):
    _declare_with_index(_kind, _rank)


def _unpooled(shape: Sequence[int], attrs: Mapping[str, Any]) -> list[int]:
    """The sides of unpool's Out."""
    sizes = zip(shape[2:], attrs["ksize"], attrs["strides"], attrs["paddings"], strict=True)
    return list(attrs["output_size"][-2:]) or [(n - 1) * s - 2 * p + k for n, k, s, p in sizes]


@op(
    outs="Out",
    rows=mixes(),
    refuses=within(
        "Indices", "index", lambda inputs, attrs: math.prod(_unpooled(inputs["X"].shape, attrs))
    ),
)
def unpool(
    X: Array, Indices: Array, *, unpooling_type: str, ksize: Ints, strides: Ints = (1, 1), paddings: Ints = (0, 0),
    output_size: Ints = (),
):  # fmt: skip
    """Out = zeros with X's values at Indices, positions in the planes of Out.

    X, Indices [N, C, h, w]; Out [N, C, H, W] with H = (h - 1) * stride - 2 * padding + ksize, or
    the output_size of later Paddles.
    """
    if unpooling_type != "max":
        raise UnsupportedError(f"unpooling_type is {unpooling_type!r}; only 'max' exists")
    sides = _unpooled(
        X.shape, dict(ksize=ksize, strides=strides, paddings=paddings, output_size=output_size)
    )
    return _put(X, Indices, jax.ShapeDtypeStruct((*X.shape[:2], *sides), X.dtype), add=False)


@op(outs="Out", rows=mixes())
def unpool3d(
    X: Array, Indices: Array, *, ksize: Ints, strides: Ints = (1, 1, 1), paddings: Ints = (0, 0, 0), output_size: Ints = (),
    data_format: str = "NCDHW",
):  # fmt: skip
    """Out [N, C, D, H, W] = unpool of X, Indices [N, C, d, h, w]: positions in volumes of Out."""
    if data_format != "NCDHW":
        raise UnsupportedError(f"unpool3d takes data_format NCDHW, not {data_format!r}")
    sides = [
        (n - 1) * s - 2 * p + k
        for n, k, s, p in zip(X.shape[2:], ksize, strides, paddings, strict=True)
    ]
    sides = list(output_size[-3:]) or sides
    return _put(X, Indices, jax.ShapeDtypeStruct((*X.shape[:2], *sides), X.dtype), add=False)


@grad_of("unpool3d", "X Indices Out", nograd="Indices")
def unpool3d_grad(X, Indices, Out, d_Out):
    """X@GRAD = Out@GRAD at Indices."""
    return unpool_grad(X, Indices, Out, d_Out)


@grad_of("unpool", "X Indices Out", nograd="Indices")
def unpool_grad(X, Indices, Out, d_Out):
    """X@GRAD = Out@GRAD at Indices."""
    if d_Out is None:
        return None
    planes = d_Out.reshape(*d_Out.shape[:2], -1)
    return jnp.take_along_axis(planes, Indices.reshape(*X.shape[:2], -1), -1).reshape(X.shape)
