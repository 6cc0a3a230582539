"""Functions of elements: arithmetic, comparison, bits, types."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from ..registry import Array, Scalar
from .declare import dtype, lax_op, scalar

_SMOOTH = """neg sign floor ceil exp exp2 log expm1 log1p tanh logistic sin cos tan asin acos atan sinh cosh asinh acosh
    atanh sqrt rsqrt cbrt erf erfc erf_inv lgamma digamma bessel_i0e bessel_i1e abs real imag conj square"""
# The functions for which jax.lax accepts an accuracy.
_ACCURATE = frozenset(
    "exp exp2 log log2 expm1 log1p tanh logistic sin cos tan sqrt rsqrt cbrt erfc".split()
)
_OF_BITS = {
    "not": lax.bitwise_not,
    "population_count": lax.population_count,
    "clz": lax.clz,
    "is_finite": lax.is_finite,
}
_ARITHMETIC = (
    "add sub mul div rem pow max min atan2 nextafter complex igamma igammac zeta polygamma"
)
_COMPARING = {
    "eq": lax.eq,
    "ne": lax.ne,
    "lt": lax.lt,
    "le": lax.le,
    "gt": lax.gt,
    "ge": lax.ge,
    "and": lax.bitwise_and,
    "or": lax.bitwise_or,
    "xor": lax.bitwise_xor,
    "shift_left": lax.shift_left,
    "shift_right_arithmetic": lax.shift_right_arithmetic,
    "shift_right_logical": lax.shift_right_logical,
    "eq_to": lax.eq_to_p.bind,
    "lt_to": lax.lt_to_p.bind,
    "le_to": lax.le_to_p.bind,  # by the total order of floats
    "mulhi": lax.mulhi,
    "igamma_grad_a": lax.igamma_grad_a,
    "random_gamma_grad": lax.random_gamma_grad,
}


def _declare_unary(name: str, function: Any, grad: str | None) -> None:
    def plain(X: Array):
        return function(X)

    def accurate(X: Array, *, accuracy: str = ""):
        return function(X, accuracy=_accuracy(accuracy)) if accuracy else function(X)

    run = accurate if name in _ACCURATE else plain
    run.__doc__ = f"Out = jax.lax.{name}(X), element by element."
    lax_op(name, grad=grad)(run)


def _accuracy(text: str) -> Any:
    """``HIGHEST``, or ``atol,rtol,ulps``."""
    if "," not in text:
        return lax.AccuracyMode[text]
    atol, rtol, ulps = text.split(",")
    return lax.Tolerance(float(atol), float(rtol), int(ulps))


def _declare_binary(name: str, function: Any, grad: str | None) -> None:
    def run(X: Array | None, Y: Array | None, *, x: Scalar = None, y: Scalar = None):
        return function(scalar(x, Y) if X is None else X, scalar(y, X) if Y is None else Y)

    run.__doc__ = (
        f"Out = jax.lax.{name}(X, Y), element by element. An operand that is a literal is the"
        " attribute x or y."
    )
    lax_op(name, grad=grad)(run)


def _log2(x: Any) -> Any:
    return jnp.log2(x)


def _one_minus_square(x: Any) -> Any:
    return (1 + x) * (1 - x)


# Replacements for functions that earlier versions of jax.lax lack, so that programs with them run
# there.
_LATER = {"log2": _log2, "one_minus_square": _one_minus_square}

for _name, _function in _LATER.items():
    _declare_unary(_name, getattr(lax, _name, _function), "X")
for _name in _SMOOTH.split():
    _declare_unary(_name, getattr(lax, _name), "X")
for _name, _function in _OF_BITS.items():
    _declare_unary(_name, _function, None)
for _name in _ARITHMETIC.split():
    _declare_binary(_name, getattr(lax, _name), "X Y")
for _name, _function in _COMPARING.items():
    _declare_binary(_name, _function, None)


@lax_op("polynomial", grad="X Coeffs")
def polynomial(X: Array, Coeffs: list[Array]):
    """Out = Coeffs[0] + X (Coeffs[1] + X (Coeffs[2] + ...)), element by element."""
    if hasattr(lax, "polynomial"):
        return lax.polynomial(X, Coeffs)
    total = Coeffs[-1]
    for coefficient in Coeffs[-2::-1]:
        total = total * X + coefficient
    return total


@lax_op("integer_pow", grad="X")
def integer_pow(X: Array, *, y: int):
    """Out = X ** y, element by element."""
    return lax.integer_pow(X, y)


@lax_op("round")
def round(X: Array, *, to_even: bool = False):
    """Out = X rounded to whole numbers; halves away from zero, or to the even one."""
    return lax.round(
        X, lax.RoundingMethod.TO_NEAREST_EVEN if to_even else lax.RoundingMethod.AWAY_FROM_ZERO
    )


@lax_op("regularized_incomplete_beta", grad="A B X", nograd="A B")
def regularized_incomplete_beta(A: Array, B: Array, X: Array):
    """Out = jax.lax.betainc(A, B, X), element by element."""
    return lax.betainc(A, B, X)


@lax_op("clamp", grad="Min X Max")
def clamp(
    Min: Array | None, X: Array, Max: Array | None, *, min: Scalar = None, max: Scalar = None
):
    """Out = X clamped to [Min, Max]; literal bounds are attributes."""
    return lax.clamp(
        scalar(min, X) if Min is None else Min, X, scalar(max, X) if Max is None else Max
    )


@lax_op("select_n", grad="Which Cases", nograd="Which")
def select_n(Which: Array, Cases: list[Array]):
    """Out[i] = Cases[Which[i]][i]; with two cases Which may be boolean: False takes the first."""
    return lax.select_n(Which, *Cases)


@lax_op("convert_element_type", grad="X")
def convert_element_type(X: Array, *, new_dtype: str):
    """Out = X with elements of new_dtype."""
    return lax.convert_element_type(X, dtype(new_dtype))


@lax_op("bitcast_convert_type")
def bitcast_convert_type(X: Array, *, new_dtype: str):
    """Out = the bits of X read as new_dtype."""
    return lax.bitcast_convert_type(X, dtype(new_dtype))


@lax_op("reduce_precision", grad="X")
def reduce_precision(X: Array, *, exponent_bits: int, mantissa_bits: int):
    """Out = X rounded to a float with this many bits."""
    return lax.reduce_precision(X, exponent_bits, mantissa_bits)


@lax_op("stop_gradient")
def stop_gradient(X: Array):
    """Out = X, through which no gradient flows."""
    return lax.stop_gradient(X)


@lax_op("copy", grad="X")
def copy(X: Array):
    """Out = X."""
    return X


@lax_op("optimization_barrier", outs="Out*", grad="X")
def optimization_barrier(X: list[Array]):
    """Out = X; the compiler does not move ops across it."""
    return list(lax.optimization_barrier(tuple(X)))
