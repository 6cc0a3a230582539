"""Reductions, scans and order in Paddle 2 and 3."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..base.dtypes import name_of, numpy_dtype
from ..errors import ShapeError
from .concrete import integers
from .conditions import inner_axis
from .infer import Spec
from .registry import Array, Ints, op
from .traits import mixes, row_wise, sizes_from


@op(outs="Out", grad="X", rows=row_wise("X", when=inner_axis("axis")))
def log_softmax(X: Array, *, axis: int = -1):
    """Out = X - log(sum of exp(X) along `axis`)."""
    return jax.nn.log_softmax(X, axis)


@op(outs="Out", grad="X", rows=mixes())
def logsumexp(X: Array, *, axis: Ints = (), keepdim: bool = False, reduce_all: bool = False):
    """Out = log(sum of exp(X) along `axis`), over all axes if it is empty or with reduce_all."""
    axes = None if reduce_all or not axis else tuple(axis)
    return jax.scipy.special.logsumexp(X, axes, keepdims=keepdim)


def _top_spec(
    X: Spec, K: Spec | None, *, k: int, axis: int, largest: bool, sorted: bool
) -> tuple[Spec, Spec]:
    if K is None and not 1 <= k <= (X.shape[axis] if X.shape[axis] >= 0 else k):
        raise ShapeError(
            f"top_k_v2 takes k from 1 to the size of axis {axis} of {list(X.shape)}, not {k}"
        )
    shape = tuple(
        (k if K is None else -1) if i == axis % X.ndim else n for i, n in enumerate(X.shape)
    )
    return Spec(shape, X.dtype), Spec(shape, "int64")


@op(
    outs="Out Indices",
    grad="X",
    grad_outs="Out",
    infer=_top_spec,
    rows=mixes(),
    sizes=sizes_from("K"),
)
def top_k_v2(
    X: Array,
    K: Array | None,
    *,
    k: int = 1,
    axis: int = -1,
    largest: bool = True,
    sorted: bool = True,
):
    """Out = the k greatest along `axis`, or the least without `largest`, in order; Indices (int64):
    their indices. K [1] overrides k.
    """
    k = integers("top_k_v2", "K", K, None, [k])[0]
    if not 1 <= k <= X.shape[axis]:
        raise ShapeError(
            f"top_k_v2 takes k from 1 to the size of axis {axis} of {list(X.shape)}, not {k}"
        )
    x = jnp.moveaxis(X, axis, -1)
    if largest:
        _, at = lax.top_k(lax.stop_gradient(x), k)
    else:
        at = jnp.argsort(lax.stop_gradient(x), -1, stable=True)[..., :k]
    out = jnp.take_along_axis(x, at, -1)
    return jnp.moveaxis(out, -1, axis), jnp.moveaxis(at.astype(np.int64), -1, axis)


def _scanned(X: Array, axis: int, exclusive: bool, reverse: bool, scan: Any, neutral: float) -> Any:
    axis %= X.ndim
    total = scan(X, axis, reverse)
    if not exclusive:
        return total
    shift = (-1, 1, 0) if reverse else (1, -1, 0)
    return lax.pad(
        total,
        np.asarray(neutral, X.dtype),
        [shift if i == axis else (0, 0, 0) for i in range(X.ndim)],
    )


@op(outs="Out", grad="X", rows=row_wise("X", when=inner_axis("dim")))
def cumprod(X: Array, *, dim: int, exclusive: bool = False, reverse: bool = False):
    """Out[i] = X[0] * ... * X[i] along `dim`; without X[i] if `exclusive`, from the end if
    `reverse`.
    """
    return _scanned(X, dim, exclusive, reverse, lax.cumprod, 1)


@op(outs="Out", grad="X", rows=mixes())
def logcumsumexp(
    X: Array,
    *,
    axis: int = -1,
    flatten: bool = False,
    exclusive: bool = False,
    reverse: bool = False,
):
    """Out[i] = log(exp(X[0]) + ... + exp(X[i])) along `axis`, or over the flattened X with
    `flatten`.
    """
    x, axis = (X.reshape(-1), 0) if flatten else (X, axis)
    return _scanned(x, axis, exclusive, reverse, lax.cumlogsumexp, -np.inf)


def _running(x: Array, axis: int, dtype: int, wins: Any) -> tuple[Any, Any]:
    """The running best along an axis, the last of equals, and its index; nan beats all."""
    axis %= x.ndim
    place = lax.broadcasted_iota(np.int64, x.shape, axis)

    def better(a: Any, b: Any) -> Any:
        take = (
            wins(b[0], a[0]) | jnp.isnan(b[0])
            if jnp.issubdtype(x.dtype, jnp.floating)
            else wins(b[0], a[0])
        )
        take = (
            take & ~(jnp.isnan(a[0]) & ~jnp.isnan(b[0]))
            if jnp.issubdtype(x.dtype, jnp.floating)
            else take
        )
        return jnp.where(take, b[0], a[0]), jnp.where(take, b[1], a[1])

    _, at = lax.associative_scan(better, (lax.stop_gradient(x), place), axis=axis)
    return jnp.take_along_axis(x, at, axis), at.astype(numpy_dtype(name_of(dtype)))


@op(outs="out indices", grad="x", grad_outs="out", rows=mixes())
def cummax(x: Array, *, axis: int = -1, dtype: int = 3):
    """out[i] = the greatest of x[0], ... x[i] along `axis`; indices (`dtype`): its index, the last
    of equals.
    """
    return _running(x, axis, dtype, lambda new, old: new >= old)


@op(outs="out indices", grad="x", grad_outs="out", rows=mixes())
def cummin(x: Array, *, axis: int = -1, dtype: int = 3):
    """out[i] = the least of x[0], ... x[i] along `axis`; indices (`dtype`): its index, the last of
    equals.
    """
    return _running(x, axis, dtype, lambda new, old: new <= old)


@op(outs="Out Indices", grad="X", grad_outs="Out", rows=mixes())
def kthvalue(X: Array, *, k: int = 1, axis: int = -1, keepdim: bool = False):
    """Out = the k-th least along `axis`, counted from 1; Indices (int64): its index."""
    if not 1 <= k <= X.shape[axis]:
        raise ShapeError(
            f"kthvalue takes k from 1 to the size of axis {axis} of {list(X.shape)}, not {k}"
        )
    at = lax.slice_in_dim(
        jnp.argsort(lax.stop_gradient(X), axis, stable=True), k - 1, k, axis=axis % X.ndim
    )
    out = jnp.take_along_axis(X, at, axis)
    return tuple(v if keepdim else jnp.squeeze(v, axis) for v in (out, at.astype(np.int64)))


@op(outs="Out", rows=mixes())
def searchsorted(
    SortedSequence: Array, Values: Array, *, out_int32: bool = False, right: bool = False
):
    """Out = the position in the rows of SortedSequence at which each of Values would be inserted:
    before equal ones, or after them with `right`.

    Both infinities and nan come last.
    """
    kind, side = np.int32 if out_int32 else np.int64, "right" if right else "left"
    if SortedSequence.ndim == 1:
        return _finite_first(
            Values, jnp.searchsorted(SortedSequence, Values, side), SortedSequence.shape[-1]
        ).astype(kind)
    if SortedSequence.shape[:-1] != Values.shape[:-1]:
        raise ShapeError(
            f"searchsorted takes equal leading dimensions, not {list(SortedSequence.shape)} and"
            f" {list(Values.shape)}"
        )
    rows = (
        SortedSequence.reshape(-1, SortedSequence.shape[-1]),
        Values.reshape(-1, Values.shape[-1]),
    )
    places = jax.vmap(lambda a, v: jnp.searchsorted(a, v, side))(*rows).reshape(Values.shape)
    return _finite_first(Values, places, SortedSequence.shape[-1]).astype(kind)


def _finite_first(values: Array, places: Array, end: int) -> Array:
    return (
        jnp.where(jnp.isfinite(values), places, end)
        if jnp.issubdtype(values.dtype, jnp.floating)
        else places
    )


@op(outs="Out", grad="X Vec", rows=mixes())
def mv(X: Array, Vec: Array):
    """Out = X @ Vec, for a matrix and a vector."""
    if X.ndim != 2 or Vec.ndim != 1:
        raise ShapeError(
            f"mv takes a matrix and a vector, not {list(X.shape)} and {list(Vec.shape)}"
        )
    return X @ Vec


@op(outs="Out", rows=mixes())
def equal_all(X: Array, Y: Array):
    """Out (bool) = whether X and Y have one shape and equal elements."""
    return jnp.array_equal(X, Y) if X.shape == Y.shape else jnp.zeros((), bool)


@op(outs="Out", rows=mixes())
def isclose(
    Input: Array, Other: Array, Rtol: Array | None, Atol: Array | None, *, rtol: str = "1e-5", atol: str = "1e-8",
    equal_nan: bool = False,
):  # fmt: skip
    """Out (bool) = whether |Input - Other| <= atol + rtol * |Other|; nan equals nan with equal_nan.
    Tensors override texts.
    """
    r = np.float64(rtol) if Rtol is None else Rtol.reshape(())
    a = np.float64(atol) if Atol is None else Atol.reshape(())
    x, y = Input.astype(np.float64), Other.astype(np.float64)
    # so everything except nan is close to an infinity, as in Paddle
    near = (x == y) | (jnp.abs(x - y) <= a + r * jnp.abs(y))
    return near | (jnp.isnan(x) & jnp.isnan(y)) if equal_nan else near
