"""Special functions, and ops on the bits of floats, in Paddle 2 and 3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import special

from .pointwise_2x import digamma_of
from .registry import Array, grad_of, op
from .traits import elementwise, mixes

# op type, function, formula
BESSEL: list[tuple[str, Callable[[Any], Any], str]] = [
    ("i0", special.i0, "the modified Bessel function of x, of the first kind and order 0."),
    ("i0e", special.i0e, "exp(-|x|) i0(x)."),
    ("i1", special.i1, "the modified Bessel function of x, of the first kind and order 1."),
    ("i1e", special.i1e, "exp(-|x|) i1(x)."),
    ("gammaln", special.gammaln, "log |Gamma(x)|."),
]


def _declare(kind: str, fn: Callable[[Any], Any], formula: str) -> None:
    def run(x: Array) -> Any:
        return fn(x)

    run.__doc__ = f"out = {formula}"
    op(kind, outs="out", rows=elementwise("x"))(run)


for _row in BESSEL:
    _declare(*_row)


@grad_of("i0", "x")
def i0_grad(x: Array, d_out: Array):
    """x@GRAD = out@GRAD * i1(x)."""
    return d_out * special.i1(x)


@grad_of("i0e", "x out")
def i0e_grad(x: Array, out: Array, d_out: Array):
    """x@GRAD = out@GRAD * (i1e(x) - out), or (i1e(x) + out) for negative x."""
    return d_out * (special.i1e(x) - jnp.copysign(1, x).astype(x.dtype) * out)


def _around_0(x: Array, slope: Array) -> Array:
    """A slope with x in the denominator, which is 1 / 2 at 0."""
    return jnp.where(jnp.abs(x) <= np.finfo(x.dtype).eps, np.asarray(0.5, x.dtype), slope)


@grad_of("i1", "x out")
def i1_grad(x: Array, out: Array, d_out: Array):
    """x@GRAD = out@GRAD * (i0(x) - out / x), 1 / 2 of it at 0."""
    return d_out * _around_0(x, special.i0(x) - out / x)


@grad_of("i1e", "x out")
def i1e_grad(x: Array, out: Array, d_out: Array):
    """x@GRAD = out@GRAD * (i0e(x) - out * (sign(x) + 1 / x)), 1 / 2 of it at 0."""
    return d_out * _around_0(x, special.i0e(x) - out * (jnp.copysign(1, x).astype(x.dtype) + 1 / x))


@grad_of("gammaln", "x")
def gammaln_grad(x: Array, d_out: Array):
    """x@GRAD = out@GRAD * digamma(x)."""
    return d_out * digamma_of(x)


@op(outs="out", grad="x", rows=elementwise("x"))
def polygamma(x: Array, *, n: int):
    """out = the n-th derivative of digamma at x."""
    return special.digamma(x) if n == 0 else special.polygamma(np.int32(n), x)


@op(outs="out", rows=mixes())
def nextafter(x: Array, y: Array):
    """out = the float that follows x in the direction of y."""
    return jnp.nextafter(*jnp.broadcast_arrays(x, y))


@op(outs="out", rows=mixes())
def copysign(x: Array, y: Array):
    """out = |x| with the sign of y."""
    return jnp.copysign(*jnp.broadcast_arrays(x, y))


@grad_of("copysign", "x y")
def copysign_grad(x: Array, y: Array, d_out: Array):
    """x@GRAD = out@GRAD * out / x, 0 where x is 0; y@GRAD = 0."""
    _, pull = jax.vjp(lambda v: jnp.broadcast_to(v, d_out.shape), x)
    slope = jnp.where(x == 0, 0, jnp.copysign(*jnp.broadcast_arrays(x, y)) / x)
    return pull((d_out * slope).astype(d_out.dtype))[0], jnp.zeros_like(y)


@op(outs="Out", rows=mixes())
def elementwise_heaviside(X: Array, Y: Array):
    """Out = Y where X is 0, 1 where it is greater, else 0 (also for nan, as in Paddle)."""
    return jnp.where(X == 0, Y, jnp.where(X > 0, 1, 0).astype(X.dtype))


@grad_of("elementwise_heaviside", "X Y")
def elementwise_heaviside_grad(X: Array, Y: Array, d_Out: Array):
    """X@GRAD = 0, Y@GRAD = Out@GRAD where X is 0."""
    _, pull = jax.vjp(lambda y: jnp.broadcast_to(y, d_Out.shape), Y)
    return jnp.zeros_like(X), pull(jnp.where(X == 0, d_Out, 0).astype(d_Out.dtype))[0]


def _declare_shift(
    kind: str,
    arithmetic: Callable[[Any, Any], Any],
    logical: Callable[[Any, Any], Any],
    formula: str,
) -> None:
    def run(x: Array, y: Array, *, is_arithmetic: bool = True) -> Any:
        signed = is_arithmetic and not jnp.issubdtype(x.dtype, jnp.unsignedinteger)
        return (arithmetic if signed else logical)(*jnp.broadcast_arrays(x, y))

    run.__doc__ = formula
    op(kind, outs="out", rows=mixes())(run)


_declare_shift(
    "bitwise_left_shift", jax.lax.shift_left, jax.lax.shift_left, "out = x * 2^y, bit by bit."
)
_declare_shift(
    "bitwise_right_shift", jax.lax.shift_right_arithmetic, jax.lax.shift_right_logical,
    "out = x / 2^y, bit by bit; the sign comes in on the left with is_arithmetic, else zeros.",
)  # fmt: skip


@op(outs="Out", grad="X", rows=elementwise("X"))
def memcpy_d2h(X: Array, *, dst_place_type: int = 0):
    """Out = X; the step decides its device."""
    return X


@op(outs="Out", grad="X", rows=elementwise("X"))
def memcpy_h2d(X: Array, *, dst_place_type: int = 0):
    """Out = X; the step decides its device."""
    return X


@op(outs="out", grad="x", rows=elementwise("x"))
def npu_identity(x: Array, *, format: int = -1):
    """out = x."""
    return x


@op(outs="Out", grad="X", rows=mixes())
def identity_loss(X: Array, *, reduction: int = 1):
    """Out = X (reduction 2), its sum (0) or its mean (1)."""
    return X if reduction == 2 else jnp.sum(X) if reduction == 0 else jnp.mean(X)


@op(outs="Out*", grad="X", rows=mixes())
def broadcast_tensors(X: list[Array]):
    """Out[i] = X[i] in the shape to which all of X broadcast as in NumPy."""
    return list(jnp.broadcast_arrays(*X))


@op(outs="out", grad="x target", nograd="target", rows=mixes())
def reduce_as(x: Array, target: Array):
    """out = x summed over the axes along which target would be broadcast to its shape."""
    more = x.ndim - target.ndim
    over = [
        i for i in range(x.ndim) if i < more or (target.shape[i - more] == 1 and x.shape[i] != 1)
    ]
    return jnp.sum(x, over).reshape(target.shape)
