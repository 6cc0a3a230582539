"""Sums, scales and clips of whole tensors, norms and distances. Scalars have shape [1], as
everywhere in Fluid.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..errors import ShapeError
from .broadcast import same_rows
from .conditions import both, inner_axis, unset
from .extremes import by_equality
from .infer import Spec
from .registry import Array, SelectedRows, grad_of, op
from .selected import total
from .tensor_array import added, is_array
from .traits import StaysSparse, by_values, elementwise, mixes, reduces, row_wise


def _one(value: Any) -> Any:
    return value.reshape(1)


def _same(X: Spec, **_: Any) -> Spec:
    return X


def _one_element(X: Spec, **_: Any) -> Spec:
    if -1 not in X.shape and math.prod(X.shape) != 1:
        raise ShapeError(f"increment takes one element, not {list(X.shape)}")
    return X


def _as(value: Any, like: Any) -> Any:
    """A number in the dtype of an array; for integers the fraction is dropped, as by a cast in C."""
    if isinstance(value, float):
        with np.errstate(invalid="ignore"):  # too large for an integer
            return (
                value
                if jnp.issubdtype(like.dtype, jnp.inexact)
                else np.asarray(value).astype(like.dtype)
            )
    return value.reshape(()).astype(like.dtype)


@op(outs="Out", infer=_same, rows=elementwise("X"), sparse=by_values())
def scale(
    X: Array, ScaleTensor: Array | None, BiasTensor: Array | None, *, scale: float = 1.0, bias: float = 0.0,
    bias_after_scale: bool = True,
):  # fmt: skip
    """Out = scale * X + bias, or scale * (X + bias) without `bias_after_scale`. ScaleTensor and
    BiasTensor [1] override these.
    """
    factor, more = (
        _as(scale if ScaleTensor is None else ScaleTensor, X),
        _as(bias if BiasTensor is None else BiasTensor, X),
    )
    if not bias_after_scale:
        return (X + more) * factor
    out = X * factor
    return out + more if bias or BiasTensor is not None else out


def fits(n: int, m: int) -> bool:
    """Whether two dimensions may be equal; -1 is unknown."""
    return n == m or -1 in (n, m)


def one_shape(kind: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape of all these, as far as it is known. Raises ShapeError."""
    shape = shapes[0]
    for other in shapes[1:]:
        if len(other) != len(shape) or not all(map(fits, shape, other)):
            raise ShapeError(
                f"{kind} takes tensors of one shape, not {list(shape)} and {list(other)}"
            )
        shape = tuple(map(max, shape, other))
    return shape


def _infer_sum(X: Sequence[Spec]) -> Spec:
    return Spec(one_shape("sum", *(x.shape for x in X)), X[0].dtype)


@op(
    "sum",
    outs="Out",
    infer=_infer_sum,
    rows=elementwise("X"),
    sparse=StaysSparse(),
    passes_over=("X",),
)
def sum_(X: list[Array | SelectedRows | None]):
    """Out = X[0] + X[1] + ..., all of one shape; sparse, with equal rows added up, if all X are.

    An accumulator that no startup program sets begins at zero, as in 1.8.5, whose kernel skips
    empty tensors.
    """
    if any(isinstance(x, SelectedRows) for x in X):
        return total(X)
    if any(map(is_array, X)):
        return added(X)
    one_shape("sum", *(x.shape for x in X))
    return functools.reduce(operator.add, X)


@op(outs="Out", grad="X", rows=reduces(0, mean=True, lod=None))
def mean(X: Array):
    """Out[0] = mean of all elements of X."""
    return _one(jnp.mean(X))


def _infer_minus(X: Spec, Y: Spec) -> Spec:
    return Spec(one_shape("minus", X.shape, Y.shape), X.dtype)


@op(outs="Out", infer=_infer_minus, rows=row_wise("X", "Y"))
def minus(X: Array, Y: Array):
    """Out = X - Y, of equal shapes."""
    one_shape("minus", X.shape, Y.shape)
    return X - Y


@op(outs="Out", infer=_same, rows=elementwise("X"))
def sign(X: Array):
    """Out = -1, 0 or 1 for X negative, neither (zero, nan) or positive."""
    return (X > 0).astype(X.dtype) - (X < 0).astype(X.dtype)


@op(outs="Out", infer=_one_element, rows=mixes("X"))
def increment(X: Array, *, step: float = 1.0):
    """Out = X + step, for an X of one element."""
    if X.size != 1:
        raise ShapeError(f"increment takes one element, not {list(X.shape)}")
    return X + _as(step, X)


@op(
    outs="Out",
    rows=row_wise("X", when=both(inner_axis("axis"), unset("flatten"), unset("asvector"))),
)
def cumsum(
    X: Array,
    *,
    axis: int = -1,
    exclusive: bool = False,
    reverse: bool = False,
    flatten: bool = False,
):
    """Out[i] = X[0] + ... + X[i] along `axis`; without X[i] if `exclusive`, from the end if
    `reverse`.

    flatten: over the flattened X.
    """
    if flatten:
        X, axis = X.reshape(-1), 0
    axis = axis % X.ndim
    total = lax.cumsum(X, axis, reverse)
    if not exclusive:
        return total
    # shifted, not total - X: the difference would cancel digits
    shift = (-1, 1, 0) if reverse else (1, -1, 0)
    return lax.pad(
        total, jnp.zeros((), X.dtype), [shift if i == axis else (0, 0, 0) for i in range(X.ndim)]
    )


@op(outs="Out", rows=elementwise("X"), sparse=by_values(merged=True))
def clip(X: Array, Min: Array | None, Max: Array | None, *, min: float, max: float):
    """Out = X where min <= X <= max, else the nearer bound. Min [1] and Max [1] override `min` and
    `max`.
    """
    low, high = _bounds(X, Min, Max, min, max)
    return jnp.clip(X, low, high)


def _bounds(
    X: Array, Min: Array | None, Max: Array | None, low: float, high: float
) -> tuple[Any, Any]:
    return _as(low if Min is None else Min, X), _as(high if Max is None else Max, X)


@grad_of("clip", "X Min Max", nograd="Min Max")
def clip_grad(
    X: Array, Min: Array | None, Max: Array | None, d_Out: Array, *, min: float, max: float
):
    """X@GRAD = Out@GRAD where min < X < max, else 0."""
    low, high = _bounds(X, Min, Max, min, max)
    return jnp.where((low < X) & (high > X), d_Out, jnp.zeros((), d_Out.dtype))


@op(outs="Out", infer=_same, rows=mixes("X"), sparse=by_values(merged=True))
def clip_by_norm(X: Array, *, max_norm: float):
    """Out = X * min(1, max_norm / ||X||); zeros stay zeros (Paddle 1.8.5 makes them NaN)."""
    norm = jnp.sqrt(jnp.sum(X * X))
    return X * jnp.where(norm <= max_norm, 1, max_norm / norm)


@op(outs="Out", grad="X", rows=reduces(0))
def squared_l2_norm(X: Array):
    """Out[0] = sum of X ** 2."""
    return _one(jnp.sum(X * X))


@op(outs="Out", rows=reduces(0))
def l1_norm(X: Array):
    """Out[0] = sum of |X|."""
    return _one(jnp.sum(jnp.abs(X)))


@grad_of("l1_norm", "X")
def l1_norm_grad(X: Array, d_Out: Array):
    """X@GRAD = Out@GRAD * sign(X)."""
    return d_Out.reshape(()) * sign(X)


def _p_norm(size: Any, p: float, root: float, axis: int | None, keepdims: bool) -> Any:
    """The p-th root of the sum of the p-th powers of absolute values, root = 1 / p."""
    if p == 0:
        return jnp.sum((size != 0).astype(size.dtype), axis, keepdims=keepdims)
    if np.isinf(p):
        return (jnp.max if p > 0 else jnp.min)(size, axis, keepdims=keepdims)
    return jnp.sum(size**p, axis, keepdims=keepdims) ** root


def _root(p: float) -> float:
    """1 / p."""
    return 1 / p if p else 0.0


@op(
    outs="Out",
    rows=row_wise(
        "X", when=both(inner_axis("axis"), unset("flatten"), unset("asvector")), lod=None
    ),
)
def p_norm(
    X: Array,
    *,
    porder: float = 2.0,
    axis: int = -1,
    epsilon: float = 1e-12,
    keepdim: bool = False,
    asvector: bool = False,
):
    """Out = (sum of |X| ** porder along `axis`) ** (1 / porder); max or min of |X| if infinite, the
    nonzeros for 0.

    asvector: over all elements. No other op has a result of shape [] for a vector.
    """
    root = float(np.float32(_root(porder)))  # in float32, as in Paddle
    return _p_norm(jnp.abs(X), porder, root, None if asvector else axis, keepdim)


@grad_of("p_norm", "X Out")
def p_norm_grad(
    X: Array,
    Out: Array,
    d_Out: Array,
    *,
    porder: float,
    axis: int,
    epsilon: float,
    keepdim: bool,
    asvector: bool,
):
    """X@GRAD = Out@GRAD * sign(X) * |X| ** (porder - 1) / (Out ** (porder - 1) + epsilon)."""
    shape = [1] * X.ndim if asvector else list(X.shape)
    if not asvector:
        shape[axis] = 1
    norm, d = Out.reshape(shape), d_Out.reshape(shape)
    if porder == 0:
        return jnp.zeros_like(X)
    if np.isinf(porder):
        reduced = None if asvector else axis
        return by_equality(
            lambda x, d: (
                (jnp.abs(x) == _p_norm(jnp.abs(x), porder, 0, reduced, True)) * sign(x) * d
            ),
            X,
            d,
        )
    return jnp.abs(X) ** (porder - 1) / (norm ** (porder - 1) + epsilon) * sign(X) * d


def _infer_dist(X: Spec, Y: Spec, **_: Any) -> Spec:
    return Spec((1,), X.dtype)


@op(outs="Out", infer=_infer_dist, rows=mixes())
def dist(X: Array, Y: Array, *, p: float = 2.0):
    """Out[0] = the p-norm of X - Y, which broadcast as in NumPy."""
    return _one(_p_norm(jnp.abs(X - Y), p, _root(p), None, False))


@grad_of("dist", "X Y Out")
def dist_grad(X: Array, Y: Array, Out: Array, d_Out: Array, *, p: float):
    """X@GRAD = Out@GRAD * sign(X - Y) * (|X - Y| / Out) ** (p - 1), Y@GRAD = -X@GRAD before
    broadcasting.
    """
    z, norm = X - Y, Out.reshape(())
    if p == 0:
        slope: Any = 0
    elif np.isinf(p):
        d = by_equality(
            lambda z, d: (jnp.abs(z) == _p_norm(jnp.abs(z), p, 0, None, False)) * sign(z) * d,
            z,
            d_Out.reshape(()),
        )
        return _unbroadcast(d, X.shape), _unbroadcast(-d, Y.shape)
    else:
        slope = (jnp.abs(z) / norm) ** (p - 1)
    d = slope * sign(z) * d_Out.reshape(())
    return _unbroadcast(d, X.shape), _unbroadcast(-d, Y.shape)


def _unbroadcast(grad: Any, shape: tuple[int, ...]) -> Any:
    padded = (1,) * (grad.ndim - len(shape)) + shape
    dims = tuple(i for i, (n, m) in enumerate(zip(padded, grad.shape, strict=True)) if n != m)
    return grad.sum(dims).reshape(shape)


LEAST_NORM = 1e-4  # cos_sim's least norm of a row, so that a row of zeros has similarity 0


def _infer_cos_sim(X: Spec, Y: Spec) -> tuple[Spec, Spec, Spec]:
    if X.ndim != Y.ndim or not all(map(fits, X.shape[1:], Y.shape[1:])):
        raise ShapeError(
            f"cos_sim takes rows of one shape, not {list(X.shape)} and {list(Y.shape)}"
        )
    column = Spec((X.shape[0], 1), X.dtype)
    return column, column, Spec((Y.shape[0], 1), X.dtype)


@op(outs="Out XNorm~ YNorm~", infer=_infer_cos_sim, rows=row_wise("X", "Y"))
def cos_sim(X: Array, Y: Array):
    """Out[i, 0] = <X[i], Y[i]> / (XNorm[i] * YNorm[i]); XNorm[i, 0] = max(||X[i]||, 1e-4), YNorm
    likewise.

    Y may have one row, which is used for all rows of X.
    """
    x, y = _rows(X), _rows(Y)
    if y.shape[0] != 1:
        same_rows("cos_sim", X=X, Y=Y)
    x_norm, y_norm = (_norm_of_rows(v) for v in (x, y))
    return jnp.sum(x * y, 1, keepdims=True) / (x_norm * y_norm), x_norm, y_norm


def _norm_of_rows(x: Any) -> Any:
    norm = jnp.sqrt(jnp.sum(x * x, 1, keepdims=True))
    return jnp.where(norm > LEAST_NORM, norm, LEAST_NORM)


def _rows(x: Any) -> Any:
    return x.reshape(x.shape[0], math.prod(x.shape[1:]))


@grad_of("cos_sim", "X Y Out XNorm YNorm")
def cos_sim_grad(X: Array, Y: Array, Out: Array, XNorm: Array, YNorm: Array, d_Out: Array):
    """X@GRAD = Out@GRAD * (Y / (XNorm * YNorm) - Out * X / XNorm ** 2), Y@GRAD likewise."""
    x, y = _rows(X), _rows(Y)
    both = XNorm * YNorm
    dx = d_Out * (y / both - Out * x / (XNorm * XNorm))
    dy = d_Out * (x / both - Out * y / (YNorm * YNorm))
    return dx.reshape(X.shape), _unbroadcast(dy, y.shape).reshape(Y.shape)
