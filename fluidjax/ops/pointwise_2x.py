"""Pointwise ops of Paddle 2 and 3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import FluidTypeError
from .registry import Array, grad_of, op
from .traits import elementwise, mixes

Unary = Callable[[Any], Any]


@jax.custom_jvp
def acosh_of(x: Any) -> Any:
    """log(x + sqrt(x^2 - 1)). Its slope is 1 / sqrt(x^2 - 1) below -1 too, as in Paddle; versions
    of JAX differ there.
    """
    return jnp.arccosh(x)


acosh_of.defjvps(lambda tangent, ans, x: tangent / jnp.sqrt(jnp.square(x) - 1))

# op type, function, formula
DIFFERENTIABLE: list[tuple[str, Unary, str]] = [
    ("log2", jnp.log2, "Out = the logarithm of X to the base 2."),
    ("log10", jnp.log10, "Out = the logarithm of X to the base 10."),
    ("expm1", jnp.expm1, "Out = exp(X) - 1."),
    ("sinh", jnp.sinh, "Out = (exp(X) - exp(-X)) / 2."),
    ("cosh", jnp.cosh, "Out = (exp(X) + exp(-X)) / 2."),
    ("tan", jnp.tan, "Out = sin(X) / cos(X)."),
    ("asinh", jnp.arcsinh, "Out = log(X + sqrt(X^2 + 1))."),
    ("acosh", acosh_of, "Out = log(X + sqrt(X^2 - 1))."),
    ("atanh", jnp.arctanh, "Out = log((1 + X) / (1 - X)) / 2."),
    ("trunc", jnp.trunc, "Out = X without its fraction."),
]


def _of_floats(test: Unary) -> Unary:
    """A test of floats that also takes integers."""
    return lambda x: test(x if jnp.issubdtype(x.dtype, jnp.floating) else x.astype(np.float32))


def digamma_of(x: Any) -> Any:
    """Gamma'(x) / Gamma(x); at 0 the sign of the zero selects the side of the pole."""
    return jnp.where(
        x == 0,
        -jnp.copysign(jnp.inf, x).astype(x.dtype),
        jax.scipy.special.digamma(jnp.where(x == 0, 1, x)),
    )


TESTS: list[tuple[str, Unary, str]] = [
    ("isnan_v2", _of_floats(jnp.isnan), "Out (bool) = whether X is nan."),
    ("isinf_v2", _of_floats(jnp.isinf), "Out (bool) = whether X is infinite."),
    (
        "isfinite_v2",
        _of_floats(jnp.isfinite),
        "Out (bool) = whether X is neither nan nor infinite.",
    ),
]


def _declare(kind: str, fn: Unary, formula: str, grad: str | None) -> None:
    def run(X: Array) -> Any:
        return fn(X)

    run.__doc__ = formula
    op(kind, outs="Out", grad=grad, rows=elementwise("X"))(run)


for _kind, _fn, _formula in DIFFERENTIABLE:
    _declare(_kind, _fn, _formula, "X")
for _kind, _fn, _formula in TESTS:
    _declare(_kind, _fn, _formula, None)


@op(outs="Out", rows=elementwise("X"))
def digamma(X: Array) -> Any:
    """Out = Gamma'(X) / Gamma(X), infinite at 0."""
    return digamma_of(X)


@grad_of("digamma", "X")
def digamma_grad(X: Array, d_Out: Array) -> Any:
    """X@GRAD = Out@GRAD * trigamma(X), below 0 by reflection: trigamma(x) + trigamma(1 - x) = (pi /
    sin(pi x))^2.
    """
    far = jax.scipy.special.polygamma(np.int32(1), jnp.where(X < 0, 1 - X, X))
    sine = jnp.sin(np.asarray(np.pi, X.dtype) * (X - jnp.round(X)))  # exact beside a pole
    return d_Out * jnp.where(X < 0, (np.asarray(np.pi, X.dtype) / sine) ** 2 - far, far)


@op(outs="Out", rows=elementwise("X"))
def silu(X: Array) -> Any:
    """Out = X / (1 + exp(-X))."""
    return jax.nn.silu(X)


@grad_of("silu", "X")
def silu_grad(X: Array, d_Out: Array) -> Any:
    """X@GRAD = Out@GRAD * s * (1 + X * (1 - s)), s = 1 / (1 + exp(-X))."""
    s = jax.nn.sigmoid(X)
    return d_Out * (s * (1 + X * (1 - s)))


@op(outs="Out", rows=elementwise("X"))
def lgamma(X: Array) -> Any:
    """Out = log |Gamma(X)|."""
    return jax.scipy.special.gammaln(X)


@grad_of("lgamma", "X")
def lgamma_grad(X: Array, d_Out: Array) -> Any:
    """X@GRAD = Out@GRAD * digamma(X)."""
    return d_Out * digamma_of(X)


@op(outs="Out", rows=elementwise("X"))
def erfinv(X: Array) -> Any:
    """Out = the number whose erf is X; infinite for |X| = 1."""
    return jax.scipy.special.erfinv(jnp.clip(X, -1, 1))


@grad_of("erfinv", "Out")
def erfinv_grad(Out: Array, d_Out: Array) -> Any:
    """X@GRAD = Out@GRAD * sqrt(pi) / 2 * exp(Out^2)."""
    return d_Out * (np.asarray(np.sqrt(np.pi) / 2, Out.dtype) * jnp.exp(Out * Out))


@op(outs="Out", rows=elementwise("X"))
def celu(X: Array, *, alpha: float = 1.0) -> Any:
    """Out = X where X > 0, else alpha * (exp(X / alpha) - 1)."""
    return jnp.where(X > 0, X, alpha * jnp.expm1(jnp.minimum(X, 0) / alpha))


@grad_of("celu", "X")
def celu_grad(X: Array, d_Out: Array, *, alpha: float) -> Any:
    """X@GRAD = Out@GRAD where X > 0, else Out@GRAD * exp(X / alpha)."""
    return jnp.where(X > 0, d_Out, d_Out * jnp.exp(jnp.minimum(X, 0) / alpha))


@op(outs="Out", rows=elementwise("X"))
def logit(X: Array, *, eps: float = 1e-6) -> Any:
    """Out = log(x / (1 - x)), x = X clipped to [eps, 1 - eps]; without eps (0), nan outside [0, 1]."""
    x = jnp.clip(X, eps, 1 - eps) if eps else jnp.where((X < 0) | (X > 1), jnp.nan, X)
    return jnp.log(x / (1 - x))


@grad_of("logit", "X")
def logit_grad(X: Array, d_Out: Array, *, eps: float) -> Any:
    """X@GRAD = Out@GRAD / (X * (1 - X)) from eps to 1 - eps, else 0; without eps, nan outside [0,
    1].
    """
    beyond = (X < eps) | (X > 1 - eps)
    return jnp.where(beyond, 0 if eps else jnp.nan, d_Out / (X * (1 - X)))


@op(outs="Out", grad="X1 X2", rows=elementwise("X1", "X2"))
def atan2(X1: Array, X2: Array) -> Any:
    """Out = the angle of the point (X2, X1), from -pi to pi."""
    return jnp.arctan2(X1, X2)


@op(outs="Out", grad="X Y Weight", nograd="Weight", rows=mixes())
def lerp(X: Array, Y: Array, Weight: Array) -> Any:
    """Out = X + Weight * (Y - X), which broadcast as in NumPy."""
    return X + Weight * (Y - X)


@op(outs="Out", rows=mixes())
def elementwise_fmax(X: Array, Y: Array) -> Any:
    """Out = the greater of X and Y; if one is nan, the other."""
    return jnp.fmax(X, Y)


@op(outs="Out", rows=mixes())
def elementwise_fmin(X: Array, Y: Array) -> Any:
    """Out = the lesser of X and Y; if one is nan, the other."""
    return jnp.fmin(X, Y)


def _declare_choice_grad(kind: str, wins: Callable[[Any, Any], Any]) -> None:
    @grad_of(kind, "X Y")
    def choice_grad(X: Array, Y: Array, d_Out: Array) -> Any:
        """Out@GRAD goes to the input that equals Out: to X if both do, and if one is nan to the
        other.
        """
        (x, pull_x), (y, pull_y) = (
            jax.vjp(lambda v: jnp.broadcast_to(v, d_Out.shape), v) for v in (X, Y)
        )
        first = wins(x, y) | jnp.isnan(y) if jnp.issubdtype(x.dtype, jnp.inexact) else wins(x, y)
        return pull_x(jnp.where(first, d_Out, 0))[0], pull_y(jnp.where(first, 0, d_Out))[0]


_declare_choice_grad("elementwise_fmax", jnp.greater_equal)
_declare_choice_grad("elementwise_fmin", jnp.less_equal)


def _whole(kind: str, *values: Any) -> None:
    for x in values:
        if jnp.issubdtype(x.dtype, jnp.floating):
            raise FluidTypeError(f"{kind} takes integers or booleans, not {x.dtype}")


def _declare_bits(kind: str, fn: Callable[[Any, Any], Any], formula: str) -> None:
    def run(X: Array, Y: Array) -> Any:
        _whole(kind, X, Y)
        return fn(X, Y)

    run.__doc__ = formula
    op(kind, outs="Out", rows=mixes())(run)


_declare_bits(
    "bitwise_and", jnp.bitwise_and, "Out = X & Y, bit by bit; they broadcast as in NumPy."
)
_declare_bits("bitwise_or", jnp.bitwise_or, "Out = X | Y, bit by bit; they broadcast as in NumPy.")
_declare_bits(
    "bitwise_xor", jnp.bitwise_xor, "Out = X ^ Y, bit by bit; they broadcast as in NumPy."
)


@op(outs="Out", rows=elementwise("X"))
def bitwise_not(X: Array) -> Any:
    """Out = ~X, bit by bit."""
    _whole("bitwise_not", X)
    return jnp.bitwise_not(X)


@op(outs="Out", grad="X", rows=elementwise("X"))
def share_data(X: Array) -> Any:
    """Out = X."""
    return X


@op(outs="Out", grad="X", rows=elementwise("X"))
def memcpy(X: Array, *, dst_place_type: int) -> Any:
    """Out = X; the step decides its device."""
    return X


@op(outs="out", rows=mixes())
def swiglu(x: Array, y: Array | None) -> Any:
    """out = silu(x) * y; without y, the halves of x [..., 2 D] are x and y."""
    if y is None:
        x, y = jnp.split(x, 2, -1)
    return jax.nn.silu(x) * y


@grad_of("swiglu", "x y")
def swiglu_grad(x: Array, y: Array | None, d_out: Array) -> Any:
    """x@GRAD = out@GRAD * y * s * (1 + x * (1 - s)), y@GRAD = out@GRAD * x * s, where s =
    sigmoid(x).
    """
    a, b = jnp.split(x, 2, -1) if y is None else (x, y)
    s = jax.nn.sigmoid(a)
    first, second = d_out * b * (s * (1 + a * (1 - s))), d_out * (a * s)
    return (jnp.concatenate([first, second], -1), None) if y is None else (first, second)
