"""Sums and their kin over axes, and along one."""

from __future__ import annotations

from typing import Any

from jax import lax

from ..registry import Array, Ints
from .declare import dtype, lax_op

_OVER_AXES = {
    "reduce_sum": (lax.reduce_sum, "X"),
    "reduce_prod": (lax.reduce_prod, "X"),
    "reduce_max": (lax.reduce_max, "X"),
    "reduce_min": (lax.reduce_min, "X"),
    "reduce_and": (lax.reduce_and, None),
    "reduce_or": (lax.reduce_or, None),
    "reduce_xor": (lax.reduce_xor, None),
}
_ALONG = {
    "cumsum": lax.cumsum,
    "cumprod": lax.cumprod,
    "cummax": lax.cummax,
    "cummin": lax.cummin,
    "cumlogsumexp": lax.cumlogsumexp,
}


def _declare_reduction(name: str, function: Any, grad: str | None) -> None:
    def run(X: Array, *, axes: Ints):
        return function(X, tuple(axes))

    run.__doc__ = f"Out = jax.lax.{name}(X) over these axes, which are removed."
    lax_op(name, grad=grad)(run)


def _declare_running(name: str, function: Any) -> None:
    def run(X: Array, *, axis: int, reverse: bool = False):
        return function(X, axis=axis, reverse=reverse)

    run.__doc__ = f"Out = jax.lax.{name}(X) along an axis, from its end if reverse."
    lax_op(name, grad="X")(run)


for _name, (_function, _grad) in _OVER_AXES.items():
    _declare_reduction(_name, _function, _grad)
for _name, _function in _ALONG.items():
    _declare_running(_name, _function)


@lax_op("argmax")
def argmax(X: Array, *, axis: int, index_dtype: str):
    """Out = the index of the greatest element along an axis, the first of equal ones."""
    return lax.argmax(X, axis, dtype(index_dtype))


@lax_op("argmin")
def argmin(X: Array, *, axis: int, index_dtype: str):
    """Out = the index of the least element along an axis, the first of equal ones."""
    return lax.argmin(X, axis, dtype(index_dtype))


@lax_op("approx_top_k", outs="Out Indices", grad="X", nograd="")
def approx_top_k(
    X: Array,
    *,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    is_max_k: bool = True,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
):
    """Out, Indices (int32) = approximately the k largest, or least, along an axis, and their
    indices.
    """
    find = lax.approx_max_k if is_max_k else lax.approx_min_k
    return tuple(
        find(
            X,
            k,
            reduction_dimension,
            recall_target,
            reduction_input_size_override,
            aggregate_to_topk,
        )
    )
