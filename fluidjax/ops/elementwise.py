"""Elementwise arithmetic of two tensors; one is aligned with the other's dimensions from `axis` on
(see broadcast.py).

X and Y have one dtype. Gradients are summed over the dimensions that were broadcast. In gradients
of gradients, ``DDX`` is the gradient that flows back into X@GRAD.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from ..errors import EnforceNotMet, FluidTypeError, ShapeError, UnsupportedError
from . import integers
from .broadcast import align
from .conditions import pairs
from .infer import Spec
from .registry import Array, grad_of, op
from .traits import by_values, elementwise


def one_dtype(x: Any, y: Any) -> None:
    """Raise FluidTypeError unless X and Y have the same dtype."""
    if x.dtype != y.dtype:
        raise FluidTypeError(
            f"X is {x.dtype} and Y is {y.dtype}; elementwise ops take one dtype, so cast one of"
            " them"
        )


def infer_broadcast(X: Spec, Y: Spec, axis: int = -1) -> Spec:
    """Shape of an elementwise op. A dimension is unknown unless one of the two is known to be
    greater than 1.
    """
    one_dtype(X, Y)
    _check_axis(X, Y, axis)
    x, y = (list(s.shape) for s in align(_Shaped(X.shape), _Shaped(Y.shape), axis))
    rank = max(len(x), len(y))
    x, y = [1] * (rank - len(x)) + x, [1] * (rank - len(y)) + y
    for n, m in zip(x, y, strict=True):
        if n != m and 1 not in (n, m) and -1 not in (n, m):
            raise ShapeError(
                f"X{list(X.shape)} and Y{list(Y.shape)} do not broadcast along axis {axis}: {n} is"
                f" not {m}"
            )
    return Spec(tuple(_wider(n, m) for n, m in zip(x, y, strict=True)), X.dtype)


def _check_axis(X: Spec, Y: Spec, axis: int) -> None:
    """Equal ranks allow only axis 0 (or -1), though Paddle 1.8.5 ignores axis if the shapes are
    equal.
    """
    differ = any(n != m and -1 not in (n, m) for n, m in zip(X.shape, Y.shape, strict=False))
    if axis < -1 or (axis > 0 and X.ndim == Y.ndim and differ):
        raise ShapeError(f"axis {axis} does not lay Y{list(Y.shape)} along X{list(X.shape)}")


def _wider(n: int, m: int) -> int:
    if n == m or m == 1:
        return n
    return m if n == 1 or m != -1 else n


class _Shaped:
    """The parts of an array that :func:`align` reads."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape, self.ndim = shape, len(shape)

    def reshape(self, *shape: int) -> _Shaped:
        return _Shaped(shape)


def _divided(x: Any, y: Any) -> Any:
    return x / y if jnp.issubdtype(x.dtype, jnp.inexact) else _truncated(x, y)


def _truncated(x: Any, y: Any) -> Any:
    """C's division of integers. Raises EnforceNotMet for floats, which 1.8.5 does not divide so."""
    if not jnp.issubdtype(x.dtype, jnp.integer):
        raise EnforceNotMet(
            f"op 'elementwise_floordiv' divides integers, not {x.dtype}; write layers.floor(x / y)"
        )
    return lax.div(*jnp.broadcast_arrays(x, y))


def _powers(x: Any, y: Any) -> Any:
    return jnp.power(x, y) if jnp.issubdtype(x.dtype, jnp.inexact) else integers.power(x, y)


def _modulo(x: Any, y: Any) -> Any:
    """The remainder as in Paddle 1.8.5: integers as in C, floats with the sign of Y, by adding Y in
    float64 (which loses much smaller remainders).
    """
    a, b = jnp.broadcast_arrays(x, y)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return lax.rem(a, b)
    a, b = a.astype(jnp.float64), b.astype(jnp.float64)
    return lax.rem(b + lax.rem(a, b), b).astype(x.dtype)


def _maximum(x: Any, y: Any) -> Any:
    """The maximum or minimum as in Paddle: Y where either is nan."""
    return jnp.where(x > y, x, y)


def _minimum(x: Any, y: Any) -> Any:
    return jnp.where(x < y, x, y)


# op type, what it computes of X and Y, formula, slots that a derived gradient takes
TABLE: list[tuple[str, Callable[[Any, Any], Any], str, str | None]] = [
    ("elementwise_add", jnp.add, "Out = X + Y.", "X Y"),
    ("elementwise_sub", jnp.subtract, "Out = X - Y.", "X Y"),
    ("elementwise_mul", jnp.multiply, "Out = X * Y.", "X Y"),
    ("elementwise_div", _divided, "Out = X / Y; integers are rounded toward zero.", None),
    ("elementwise_max", _maximum, "Out = X where X > Y, else Y.", None),
    ("elementwise_min", _minimum, "Out = X where X < Y, else Y.", None),
    ("elementwise_pow", _powers, "Out = X ** Y; integers are rounded toward zero.", None),
    (
        "elementwise_mod",
        _modulo,
        "Out = X mod Y, with the sign of Y for floats and of X for integers.",
        None,
    ),
    ("elementwise_floordiv", _truncated, "Out = X / Y of integers, rounded toward zero.", None),
]


def _declare(kind: str, compute: Callable[[Any, Any], Any], formula: str, grad: str | None) -> None:
    def run(X: Array, Y: Array, *, axis: int = -1):
        one_dtype(X, Y)
        return compute(*align(X, Y, axis))

    run.__doc__ = (
        f"{formula}\n\nY's dimensions are laid along X's from `axis` on; -1 aligns the last ones."
    )
    rows = elementwise("X", "Y", when=pairs, beside="Y")
    sparse = by_values(scalar="Y") if kind == "elementwise_mul" else None
    refuses = integers.divides_by_zero if compute in (_divided, _modulo, _truncated) else None
    op(
        kind,
        outs="Out",
        grad=grad,
        infer=infer_broadcast,
        rows=rows,
        sparse=sparse,
        refuses=refuses,
    )(run)


for _row in TABLE:
    _declare(*_row)


def _along(part: Array | None, whole: Array, axis: int) -> Any:
    """An operand (or its tangent; None: zero) with the rank that broadcasts over the output's
    shape.
    """
    return None if part is None else align(whole, part, axis)[1]


def _summed(grad: Array, like: Array, axis: int) -> Array:
    """A gradient of the output's shape, summed over the dimensions along which `like` was
    broadcast.
    """
    shape = _along(like, grad, axis).shape
    shape = (1,) * (grad.ndim - len(shape)) + shape
    dims = tuple(i for i, (n, m) in enumerate(zip(shape, grad.shape, strict=True)) if n != m)
    return (grad.sum(dims) if dims else grad).reshape(like.shape)


@grad_of("elementwise_div", "X Y Out")
def elementwise_div_grad(X: Array, Y: Array, Out: Array, d_Out: Array, *, axis: int):
    """X@GRAD = Out@GRAD / Y, Y@GRAD = -Out@GRAD * Out / Y."""
    y = _along(Y, Out, axis)
    # XLA:CPU divides a constant by an array faster than two arrays: all three take 2.1 ms instead
    # of 2.7 at 8x64x56x56. 4 / y is a normal number for every normal y; 1 / y is not.
    return _summed(d_Out / y, X, axis), _summed(-(d_Out * Out) / 4 * (4 / y), Y, axis)


@grad_of("elementwise_max", "X Y")
def elementwise_max_grad(X: Array, Y: Array, d_Out: Array, *, axis: int):
    """X@GRAD = Out@GRAD where X > Y, Y@GRAD = Out@GRAD where X <= Y; both are 0 where X or Y is
    nan.
    """
    x, y = align(X, Y, axis)
    return _chosen(x > y, x <= y, X, Y, d_Out, axis)


@grad_of("elementwise_min", "X Y")
def elementwise_min_grad(X: Array, Y: Array, d_Out: Array, *, axis: int):
    """X@GRAD = Out@GRAD where X < Y, Y@GRAD = Out@GRAD where X >= Y; both are 0 where X or Y is
    nan.
    """
    x, y = align(X, Y, axis)
    return _chosen(x < y, x >= y, X, Y, d_Out, axis)


def _chosen(
    first: Array, second: Array, X: Array, Y: Array, d_Out: Array, axis: int
) -> tuple[Array, Array]:
    zero = jnp.zeros((), d_Out.dtype)
    return _summed(jnp.where(first, d_Out, zero), X, axis), _summed(
        jnp.where(second, d_Out, zero), Y, axis
    )


@grad_of("elementwise_pow", "X Y")
def elementwise_pow_grad(X: Array, Y: Array, d_Out: Array, *, axis: int):
    """X@GRAD = Out@GRAD * Y * X ** (Y - 1), Y@GRAD = Out@GRAD * log(X) * X ** Y."""
    x, y = align(X, Y, axis)
    return _summed(d_Out * y * x ** (y - 1), X, axis), _summed(d_Out * jnp.log(x) * x**y, Y, axis)


_SECOND = {"DOut": "Out@GRAD", "DDX": "X@GRAD@GRAD", "DDY": "Y@GRAD@GRAD"}


def _plus(*terms: Array | None) -> Any:
    """The sum of those terms that are there."""
    given = [t for t in terms if t is not None]
    return sum(given[1:], given[0]) if given else None


def _times(a: Array | None, b: Array) -> Any:
    return None if a is None else a * b


def _over(whole: Array, value: Array | None) -> Any:
    """The value with the shape of `whole`; nothing is zero."""
    return jnp.zeros_like(whole) if value is None else jnp.broadcast_to(value, whole.shape)


@grad_of("elementwise_add_grad", "Y", wiring=_SECOND, gives={"DDOut": "Out@GRAD"})
def elementwise_add_grad_grad(
    Y: Array, DOut: Array, DDX: Array | None, DDY: Array | None, *, axis: int
):
    """DDOut = DDX + DDY."""
    return _over(DOut, _plus(_along(DDX, DOut, axis), _along(DDY, DOut, axis)))


@grad_of("elementwise_sub_grad", "Y", wiring=_SECOND, gives={"DDOut": "Out@GRAD"})
def elementwise_sub_grad_grad(
    Y: Array, DOut: Array, DDX: Array | None, DDY: Array | None, *, axis: int
):
    """DDOut = DDX - DDY."""
    return _over(DOut, _plus(_along(DDX, DOut, axis), _times(_along(DDY, DOut, axis), -1)))


@grad_of(
    "elementwise_mul_grad",
    "X Y",
    wiring=_SECOND,
    gives={"DDOut": "Out@GRAD", "X@GRAD": "X", "Y@GRAD": "Y"},
)
def elementwise_mul_grad_grad(
    X: Array, Y: Array, DOut: Array, DDX: Array | None, DDY: Array | None, *, axis: int
):
    """DDOut = DDX * Y + X * DDY, X@GRAD = DOut * DDY, Y@GRAD = DOut * DDX."""
    x, y, ddx, ddy = (_along(v, DOut, axis) for v in (X, Y, DDX, DDY))
    ddout = _over(DOut, _plus(_times(ddx, y), _times(ddy, x)))
    return (
        ddout,
        _summed(_over(DOut, _times(ddy, DOut)), X, axis),
        _summed(_over(DOut, _times(ddx, DOut)), Y, axis),
    )


@grad_of(
    "elementwise_div_grad", "Y Out",
    wiring={"DX": "X@GRAD", "DDX": "X@GRAD@GRAD", "DDY": "Y@GRAD@GRAD"},
    gives={"DDOut": "Out@GRAD", "DOut": "Out", "Y@GRAD": "Y"}, alike="Out X@GRAD",
)  # fmt: skip
def elementwise_div_grad_grad(
    Y: Array, Out: Array, DX: Array, DDX: Array | None, DDY: Array | None, *, axis: int
):
    """DDOut = (DDX - Out * DDY) / Y, DOut = -DX * DDY, Y@GRAD = (Out * DDY - DDX) * DX / Y.

    Out counts as a separate input. DX, the gradient of X, is Out@GRAD / Y only if X was not
    broadcast.
    """
    if DX.shape != Out.shape:
        raise UnsupportedError(
            f"elementwise_div broadcasts X{list(DX.shape)} to {list(Out.shape)}, so its gradient"
            " has no gradient of its own (Paddle's is wrong there); give X the shape of Out first,"
            " by expand"
        )
    y, dx, ddx, ddy = (_along(v, Out, axis) for v in (Y, DX, DDX, DDY))
    inner = _over(Out, _plus(ddx, _times(ddy, -Out)))
    return inner / y, _over(Out, _times(ddy, -dx)), _summed(-inner * dx / y, Y, axis)
