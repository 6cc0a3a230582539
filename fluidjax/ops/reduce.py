"""Reductions over some or all dimensions. The result of a full reduction has shape [1]; Fluid has
no scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..base.dtypes import name_of, numpy_dtype
from ..errors import ShapeError
from .concrete import integers
from .extremes import by_equality
from .infer import Spec
from .integers import converted
from .registry import Array, Ints, grad_of, op
from .traits import Rows, reduces, sizes_from


def _axes(rank: int, dim: Sequence[int], reduce_all: bool) -> tuple[int, ...]:
    """The dimensions to reduce over, counted from the front. Raises ShapeError for one that does
    not exist.
    """
    if reduce_all:
        return tuple(range(rank))
    if any(not -rank <= d < rank for d in dim):
        raise ShapeError(f"dim {list(dim)} is not among the {rank} dimensions to reduce over")
    return tuple(sorted({d % rank for d in dim}))


def _norm(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    return jnp.sqrt(jnp.sum(x * x, axis, keepdims=keepdims))


def _sum(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    return jnp.sum(x, axis, dtype=x.dtype, keepdims=keepdims)


def _mean(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    if jnp.issubdtype(x.dtype, jnp.inexact):
        return jnp.mean(x, axis, keepdims=keepdims)
    total = _sum(x, axis, keepdims)
    return lax.div(total, jnp.asarray(x.size // max(total.size, 1), x.dtype))  # as in C


def _prod(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    return jnp.prod(x, axis, dtype=x.dtype, keepdims=keepdims)


def _max(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    found = without_nan(x, -np.inf)
    return jnp.max(
        found, axis, keepdims=keepdims, initial=None if found.size else _worst(found.dtype, -1)
    )


def _min(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    found = without_nan(x, np.inf)
    return jnp.min(
        found, axis, keepdims=keepdims, initial=None if found.size else _worst(found.dtype, 1)
    )


def _worst(dtype: Any, sign: int) -> Any:
    """The initial value of an extreme, which every number beats."""
    if jnp.issubdtype(dtype, jnp.inexact):
        return sign * np.inf
    return jnp.iinfo(dtype).max if sign > 0 else jnp.iinfo(dtype).min


def without_nan(x: Any, value: float) -> Any:
    """x with a value in place of nan, because nan loses every comparison in Paddle."""
    return (
        jnp.where(jnp.isnan(x), np.asarray(value, x.dtype), x)
        if jnp.issubdtype(x.dtype, jnp.floating)
        else x
    )


# op type, the reduction, formula, slots that a derived gradient takes, what padded rows count as
TABLE: list[tuple[str, Callable[..., Any], str, str | None, Rows]] = [
    ("reduce_sum", _sum, "Out = sum of X over `dim`.", "X", reduces(0)),
    (
        "reduce_mean",
        _mean,
        "Out = mean of X over `dim`; of integers rounded toward zero.",
        "X",
        reduces(0, mean=True),
    ),
    ("reduce_max", _max, "Out = max of X over `dim`; nan never wins.", None, reduces("low")),
    ("reduce_min", _min, "Out = min of X over `dim`; nan never wins.", None, reduces("high")),
    ("reduce_prod", _prod, "Out = product of X over `dim`.", None, reduces(1)),
    ("reduce_all", jnp.all, "Out = whether all of X over `dim` are true.", None, reduces(True)),
    ("reduce_any", jnp.any, "Out = whether any of X over `dim` is true.", None, reduces(False)),
    ("frobenius_norm", _norm, "Out = sqrt(sum of X ** 2 over `dim`).", None, reduces(0)),
]


_FROM_TENSORS = ("reduce_all", "reduce_any")  # later Paddles may pass `dim` as tensors


def _rank_alone(
    X: Spec,
    AxisTensor: Spec | None,
    AxisTensorList: Any,
    *,
    keep_dim: bool,
    reduce_all: bool,
    **_: Any,
) -> Spec | None:
    """Unknown sizes if only the step knows the dims; None if they are attributes, and the op is
    run.
    """
    count = (
        len(AxisTensorList)
        if AxisTensorList
        else None
        if AxisTensor is None
        else AxisTensor.shape[0]
        if AxisTensor.ndim
        else 1
    )
    if count is None or reduce_all:
        return None
    return Spec((-1,) * (X.ndim if keep_dim or count < 0 else X.ndim - count) or (1,), X.dtype)


def _declare(
    kind: str, reduction: Callable[..., Any], formula: str, grad: str | None, rows: Rows
) -> None:
    def run(
        X: Array, *, dim: Ints = (0,), keep_dim: bool = False, reduce_all: bool = False,
        in_dtype: int = -1, out_dtype: int = -1,
    ):  # fmt: skip
        if out_dtype >= 0:
            X = converted(X, numpy_dtype(name_of(out_dtype)))
        out = reduction(X, _axes(X.ndim, dim, reduce_all), keepdims=keep_dim)
        return out if out.ndim else out.reshape(1)

    run.__doc__ = (
        f"{formula}\n\nAll dimensions with `reduce_all`. They stay with size 1 if `keep_dim`, else are"
        " removed;\nif none is left, Out has shape [1]. X is first cast to `out_dtype` (-1: no cast)."
    )
    if kind not in _FROM_TENSORS:
        op(kind, outs="Out", grad=grad, rows=rows)(run)
        return

    def from_tensors(
        X: Array, AxisTensor: Array | None, AxisTensorList: list[Array] | None, *, dim: Ints = (0,), keep_dim: bool = False,
        reduce_all: bool = False, in_dtype: int = -1, out_dtype: int = -1,
    ):  # fmt: skip
        dims = dim if reduce_all else integers(kind, "AxisTensor", AxisTensor, AxisTensorList, dim)
        return run(
            X,
            dim=dims,
            keep_dim=keep_dim,
            reduce_all=reduce_all,
            in_dtype=in_dtype,
            out_dtype=out_dtype,
        )

    from_tensors.__doc__ = f"{run.__doc__}\nAxisTensor and AxisTensorList override `dim`."
    op(
        kind,
        outs="Out",
        grad=grad,
        rows=rows,
        infer=_rank_alone,
        sizes=sizes_from("AxisTensor AxisTensorList"),
    )(from_tensors)


for _row in TABLE:
    _declare(*_row)


def _spread(value: Array, x: Array, dim: Sequence[int], reduce_all: bool) -> Array:
    """An array of the reduced shape as one that broadcasts over X, in X's dtype."""
    axes = _axes(x.ndim, dim, reduce_all)
    return value.reshape([1 if i in axes else n for i, n in enumerate(x.shape)]).astype(x.dtype)


def _declare_extreme_grad(kind: str, reduction: Callable[..., Any]) -> None:
    @grad_of(kind, "X Out")
    def extreme_grad(X: Array, Out: Array, d_Out: Array, *, dim: Ints, reduce_all: bool):
        """X@GRAD = Out@GRAD wherever X equals Out, at every one of several equal extremes."""
        axes = _axes(X.ndim, dim, reduce_all)

        def equal(x: Any, d: Any) -> Any:
            return jnp.where(x == reduction(x, axes, keepdims=True), d, jnp.zeros((), d.dtype))

        return by_equality(equal, X, _spread(d_Out, X, dim, reduce_all))


_declare_extreme_grad("reduce_max", _max)
_declare_extreme_grad("reduce_min", _min)


@grad_of("reduce_prod", "X Out")
def reduce_prod_grad(X: Array, Out: Array, d_Out: Array, *, dim: Ints, reduce_all: bool):
    """X@GRAD = Out@GRAD * Out / X."""
    out, d = (_spread(v, X, dim, reduce_all) for v in (Out, d_Out))
    return d * out / X


@grad_of("frobenius_norm", "X Out")
def frobenius_norm_grad(X: Array, Out: Array, d_Out: Array, *, dim: Ints, reduce_all: bool):
    """X@GRAD = Out@GRAD * X / (Out + 1e-12)."""
    out, d = (_spread(v, X, dim, reduce_all) for v in (Out, d_Out))
    return d * (X / (out + float(np.float32(1e-12))))
