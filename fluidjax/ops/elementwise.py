"""Elementwise arithmetic of two tensors, one laid along the other's dimensions from `axis` on (see broadcast.py).

Gradients sum over the dimensions that were broadcast. X and Y have one dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from ..errors import FluidTypeError, ShapeError
from .broadcast import align
from .infer import Spec
from .registry import Array, grad_of, op

_INTEGER = ("int8", "uint8", "int16", "int32", "int64")


def _divide(x: Any, y: Any) -> Any:
    """C's division: integers are rounded toward zero."""
    return x / y if jnp.issubdtype(x.dtype, jnp.floating) else _truncated(x, y)


def _truncated(x: Any, y: Any) -> Any:
    return lax.div(*jnp.broadcast_arrays(x, y))


# op type, what it computes of X and Y, formula
DERIVED: list[tuple[str, Callable[[Any, Any], Any], str]] = [
    ("elementwise_add", jnp.add, "Out = X + Y."),
    ("elementwise_sub", jnp.subtract, "Out = X - Y."),
    ("elementwise_mul", jnp.multiply, "Out = X * Y."),
]
RULED: list[tuple[str, Callable[[Any, Any], Any], str]] = [
    ("elementwise_div", _divide, "Out = X / Y; integers are rounded toward zero."),
    ("elementwise_max", jnp.maximum, "Out = max(X, Y)."),
    ("elementwise_min", jnp.minimum, "Out = min(X, Y)."),
    ("elementwise_pow", jnp.power, "Out = X ** Y."),
    ("elementwise_mod", jnp.remainder, "Out = X mod Y, with the sign of Y."),
    ("elementwise_floordiv", _truncated, "Out = X / Y of integers, rounded toward zero."),
]


def aligned(X: Array, Y: Array, axis: int) -> tuple[Any, Any]:
    """X and Y with ranks that NumPy's rules broadcast. Raises FluidTypeError if their dtypes differ."""
    _one_dtype(X.dtype, Y.dtype)
    return align(X, Y, axis)


def _one_dtype(x: Any, y: Any) -> None:
    if x != y:
        raise FluidTypeError(f"X is {x} and Y is {y}; elementwise ops take one dtype, so cast one of them")


def summed(grad: Array, like: Array, axis: int, other: Array) -> Array:
    """A gradient of the output's shape, summed over the dimensions along which `like` was broadcast."""
    small = align(like, other, axis)[0].shape
    small = (1,) * (grad.ndim - len(small)) + small
    dims = tuple(i for i, (n, m) in enumerate(zip(small, grad.shape, strict=True)) if n != m)
    return (grad.sum(dims) if dims else grad).reshape(like.shape)


def infer_broadcast(X: Spec, Y: Spec, axis: int = -1, dtype: str | None = None) -> Spec:
    """Shape of an elementwise op. A dimension is unknown unless one of the two is known to be greater than 1."""
    _one_dtype(X.dtype, Y.dtype)
    x, y = (list(s.shape) for s in align(_Shaped(X.shape), _Shaped(Y.shape), axis))
    rank = max(len(x), len(y))
    x, y = [1] * (rank - len(x)) + x, [1] * (rank - len(y)) + y
    for n, m in zip(x, y, strict=True):
        if n != m and min(n, m) > 1:
            raise ShapeError(f"X{list(X.shape)} and Y{list(Y.shape)} do not broadcast along axis {axis}: {n} is not {m}")
    known = (max(n, m) if max(n, m) > 1 or n == m else min(n, m) for n, m in zip(x, y, strict=True))
    return Spec(tuple(known), dtype or X.dtype)


class _Shaped:
    """As much of an array as :func:`align` asks for."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape, self.ndim = shape, len(shape)

    def reshape(self, *shape: int) -> _Shaped:
        return _Shaped(shape)


def _declare(kind: str, compute: Callable[[Any, Any], Any], formula: str, grad: str | None) -> None:
    def run(X: Array, Y: Array, *, axis: int = -1):
        return compute(*aligned(X, Y, axis))

    run.__name__ = kind
    run.__doc__ = f"{formula}\n\nY's dimensions are laid along X's from `axis` on; -1 aligns the last ones."
    op(outs="Out", grad=grad, infer=infer_broadcast)(run)


for _row in DERIVED:
    _declare(*_row, grad="X Y")
for _row in RULED:
    _declare(*_row, grad=None)


@grad_of("elementwise_div", "X Y Out")
def elementwise_div_grad(X: Array, Y: Array, Out: Array, d_Out: Array, *, axis: int):
    """dX = dOut / Y; dY = -dOut * Out / Y."""
    _, y = align(X, Y, axis)
    d = d_Out / y
    return summed(d, X, axis, Y), _summed_y(-d * Out, X, Y, axis)


def _summed_y(grad: Array, X: Array, Y: Array, axis: int) -> Array:
    small = align(X, Y, axis)[1].shape
    small = (1,) * (grad.ndim - len(small)) + small
    dims = tuple(i for i, (n, m) in enumerate(zip(small, grad.shape, strict=True)) if n != m)
    return (grad.sum(dims) if dims else grad).reshape(Y.shape)
