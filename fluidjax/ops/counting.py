"""Extremes that share their gradient, medians, modes and histograms, in Paddle 2 and 3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..base.dtypes import name_of, numpy_dtype
from ..errors import FluidValueError, ShapeError, UnsupportedError
from .concrete import concrete, new_shape, shape_spec
from .extremes import by_equality
from .greatest import first_greatest
from .infer import Spec
from .registry import Array, Int64, Ints, Longs, grad_of, op
from .traits import EAGER, mixes, sizes_from


def _axes(rank: int, dim: Sequence[int], reduce_all: bool) -> tuple[int, ...]:
    return tuple(range(rank)) if reduce_all or not dim else tuple(sorted({d % rank for d in dim}))


def _declare_extreme(kind: str, reduction: Callable[..., Any], word: str) -> None:
    @op(kind, outs="Out", rows=mixes())
    def extreme(
        X: Array, AxisTensor: Array | None, AxisTensorList: list[Array] | None, *, dim: Longs = (0,), keep_dim: bool = False,
        reduce_all: bool = False, in_dtype: int = -1, out_dtype: int = -1,
    ):  # fmt: skip
        """Out = an extreme of X over `dim`."""
        # Paddle 3.3.1 declares them, and reads neither
        if AxisTensor is not None or AxisTensorList:
            raise UnsupportedError(
                f"op '{kind}' takes its axes from the attribute dim, not from AxisTensor"
            )
        return reduction(X, _axes(X.ndim, dim, reduce_all), keepdims=keep_dim)

    extreme.__doc__ = f"Out = the {word} of X over `dim`; equal ones share the gradient."

    @grad_of(kind, "X Out", nograd="AxisTensor AxisTensorList")
    def extreme_grad(X: Array, Out: Array, d_Out: Array, *, dim: Longs, reduce_all: bool):
        """X@GRAD = Out@GRAD divided among the elements that equal Out."""
        axes = _axes(X.ndim, dim, reduce_all)
        shape = [1 if i in axes else n for i, n in enumerate(X.shape)]

        def shared(x: Any, d: Any) -> Any:
            best = x == reduction(x, axes, keepdims=True)
            count = jnp.sum(best, axes, x.dtype, keepdims=True)
            others = jnp.where(count > 0, 0, jnp.nan) if jnp.issubdtype(x.dtype, jnp.inexact) else 0
            return jnp.where(best, d / count, others).astype(d.dtype)

        return by_equality(shared, X, d_Out.reshape(shape)).astype(X.dtype)


_declare_extreme("reduce_amax", jnp.max, "greatest")
_declare_extreme("reduce_amin", jnp.min, "least")


@op(outs="Out Indices", grad="X Indices", grad_outs="Out", rows=mixes())
def mode(X: Array, *, axis: int = -1, keepdim: bool = False):
    """Out = the most frequent value along `axis`, the least of several; Indices (int64): where it
    is last.
    """
    x = jnp.moveaxis(lax.stop_gradient(X), axis, -1)
    same = x[..., :, None] == x[..., None, :]
    count = jnp.sum(same, -1)
    often = count == jnp.max(count, -1, keepdims=True)
    best = jnp.min(jnp.where(often, x, _greatest(x.dtype)), -1, keepdims=True)
    at = x.shape[-1] - 1 - first_greatest((x == best)[..., ::-1], -1, keepdims=True)
    at = jnp.moveaxis(at, -1, axis)
    out = jnp.take_along_axis(X, at, axis)
    return tuple(v if keepdim else jnp.squeeze(v, axis) for v in (out, at.astype(np.int64)))


def _greatest(dtype: Any) -> Any:
    return np.asarray(np.inf if jnp.issubdtype(dtype, jnp.floating) else np.iinfo(dtype).max, dtype)


def _of_all(x: Any, axis: Sequence[int]) -> tuple[Any, list[int]]:
    """The array with the median's axes merged as the last one, and the shape with ones in their
    place.
    """
    axes = _axes(x.ndim, axis, False)
    kept = [i for i in range(x.ndim) if i not in axes]
    flat = x.transpose(*kept, *axes).reshape(*(x.shape[i] for i in kept), -1)
    return flat, [1 if i in axes else n for i, n in enumerate(x.shape)]


@op(outs="Out MedianIndex", rows=mixes())
def nanmedian(X: Array, *, axis: Ints = (), keepdim: bool = True, mode: str = "avg"):
    """Out = the median of X over `axis` (default: all), without nan; for an even number of elements
    the mean of both middles, or with `min` the lesser.

    MedianIndex (int64): where the middles are, [..., 2] of avg.
    """
    if mode not in ("avg", "min"):
        raise FluidValueError(f"nanmedian has the modes 'avg' and 'min', not {mode!r}")
    x, shape = _of_all(X, axis)
    count = jnp.sum(~jnp.isnan(x), -1, keepdims=True)
    order = jnp.argsort(lax.stop_gradient(x), -1, stable=True)  # nan comes last
    low = jnp.take_along_axis(order, jnp.maximum(count - 1, 0) // 2, -1)
    high = jnp.take_along_axis(order, jnp.minimum(count // 2, x.shape[-1] - 1), -1)
    first, second = jnp.take_along_axis(x, low, -1), jnp.take_along_axis(x, high, -1)
    out = jnp.where(low == high, first, (first + second) / 2) if mode == "avg" else first
    at = jnp.concatenate([low, high], -1) if mode == "avg" else low
    return (out.reshape(shape) if keepdim else out[..., 0]), at.astype(np.int64)


@grad_of("nanmedian", "X Out MedianIndex", grad_outs="Out")
def nanmedian_grad(
    X: Array, Out: Array, MedianIndex: Array, d_Out: Array, *, axis: Ints, mode: str
):
    """X@GRAD = Out@GRAD divided among the elements that equal Out, else (avg) half to each of the
    middles; min: all to MedianIndex.

    If all elements are nan it is also divided; with min they get nothing.
    """
    x = _of_all(X, axis)[0]
    out, d = Out.reshape(*x.shape[:-1], 1), d_Out.reshape(*x.shape[:-1], 1)
    rows = jnp.zeros(x.shape, d.dtype)
    at = MedianIndex.reshape(*x.shape[:-1], -1)
    middle = jnp.put_along_axis(
        rows, at[..., :1], jnp.where(jnp.isnan(out), 0, d), -1, inplace=False
    )
    if mode == "avg":
        equal = (x == out) | (jnp.isnan(x) & jnp.isnan(out))
        count = jnp.sum(equal, -1, keepdims=True, dtype=d.dtype)
        high = jnp.put_along_axis(rows, at[..., 1:], d, -1, inplace=False)
        middle = jnp.where(
            count > 0, jnp.where(equal, d / jnp.maximum(count, 1), 0), (middle + high) / 2
        )
    axes = _axes(X.ndim, axis, False)
    kept = [i for i in range(X.ndim) if i not in axes]
    order = [*kept, *axes]
    return middle.reshape([X.shape[i] for i in order]).transpose(np.argsort(order))


@op(outs="Out", rows=mixes())
def histogram(
    X: Array,
    Weight: Array | None,
    *,
    bins: Int64 = 100,
    min: float = 0.0,
    max: float = 0.0,
    density: bool = False,
):
    """Out [bins] = the number of elements in each of equal bins (int64), or the sum of their
    Weight; with density, the share divided by the width.

    The bins go from min to max, or if these are equal from the least to the greatest of X. The last
    bin includes its upper end.
    """
    x = X.reshape(-1)
    kind = x.dtype if jnp.issubdtype(x.dtype, jnp.floating) else np.float32
    ends = (
        jnp.asarray([min, max], kind)
        if min != max
        else jnp.stack([jnp.min(x), jnp.max(x)]).astype(kind)
    )
    low, high = (
        jnp.where(ends[0] == ends[1], ends[0] - 1, ends[0]),
        jnp.where(ends[0] == ends[1], ends[1] + 1, ends[1]),
    )
    at = jnp.minimum(((x - low) * bins / (high - low)).astype(np.int32), bins - 1)
    there = (x >= low) & (x <= high)
    each = there.astype(np.int64) if Weight is None else jnp.where(there, Weight.reshape(-1), 0)
    count = jnp.zeros(bins, each.dtype).at[jnp.where(there, at, bins)].add(each, mode="drop")
    if not density:
        return count
    return (
        count.astype(np.float32)
        / jnp.sum(count).astype(np.float32)
        / ((high - low) / bins).astype(np.float32)
    )


def _counts_spec(X: Spec, Weights: Spec | None, *, minlength: int) -> Spec:
    return Spec((-1,), "int64" if Weights is None else Weights.dtype)


@op(outs="Out", rows=mixes(), sizes=sizes_from("X"), infer=_counts_spec)
def bincount(X: Array, Weights: Array | None, *, minlength: int = 0):
    """Out [n] = how often each number from 0 to n - 1 is in X (int64), or the sum of its Weights; n
    is max(X) + 1, at least minlength.
    """
    values = concrete(X, "bincount", "X")
    if values.size and values.min() < 0:
        raise ShapeError(f"bincount counts numbers from 0 on, but X holds {values.min()}")
    size = max(int(values.max(initial=-1)) + 1, minlength)
    each = np.ones(values.shape, np.int64) if Weights is None else Weights
    return jnp.zeros(size, each.dtype).at[X].add(each)


@op(
    outs="Out",
    infer=lambda Start, Stop, Num, Base, *, dtype: Spec((-1,), name_of(dtype)),
    rows=mixes(),
    sizes=sizes_from("Num"),
)
def logspace(Start: Array, Stop: Array, Num: Array, Base: Array, *, dtype: int):
    """Out [Num] = Base ** t for Num equally spaced t from Start to Stop."""
    kind, count = numpy_dtype(name_of(dtype)), int(concrete(Num, "logspace", "Num").reshape(-1)[0])
    wide = np.float64 if kind.kind in "iu" else kind
    if count < 1:
        raise ShapeError(f"logspace needs at least one number, Num is {count}")
    start, stop, base = (v.reshape(()).astype(wide) for v in (Start, Stop, Base))
    step, index = (stop - start) / np.asarray(max(count - 1, 1), wide), np.arange(count, dtype=wide)
    # from the nearer end
    power = jnp.where(
        index < max(count // 2, count == 1), start + step * index, stop - step * (count - 1 - index)
    )
    return (base**power).astype(kind)


def _empty_spec(
    ShapeTensor: Spec | None, ShapeTensorList: Sequence[Spec] | None, *, shape: Longs, dtype: int
) -> Spec:
    return Spec(shape_spec(shape, ShapeTensor, ShapeTensorList), name_of(dtype))


@op(
    outs="Out",
    infer=_empty_spec,
    rows=mixes(),
    sizes=sizes_from("ShapeTensor ShapeTensorList"),
    eager=EAGER,
)
def empty(
    ShapeTensor: Array | None,
    ShapeTensorList: list[Array] | None,
    *,
    shape: Longs = (),
    dtype: int = 5,
):
    """Out = a tensor of `shape` for others to fill: zeros."""
    return np.zeros(
        new_shape("empty", ShapeTensor, ShapeTensorList, shape), numpy_dtype(name_of(dtype))
    )
