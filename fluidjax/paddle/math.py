"""paddle.add, paddle.exp, paddle.mean, paddle.matmul ...: arithmetic of Paddle 2.0 on static
variables, over Fluid's layers.
"""

from __future__ import annotations

from typing import Any

from .. import layers
from ..base.dtypes import INTEGERS
from ..graph.variable import Variable
from ..layers import (
    abs,
    acos,
    asin,
    atan,
    bmm,
    ceil,
    cos,
    dot,
    exp,
    floor,
    log,
    reciprocal,
    round,
    rsqrt,
    scale,
    sigmoid,
    sin,
    sqrt,
    square,
    stanh,
    tanh,
)
from ..layers._build import unary


def add(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """x + y, element by element; y is broadcast over the first dimensions of x."""
    return layers.elementwise_add(x, y, name=name)


def add_n(inputs: Any, name: str | None = None) -> Variable:
    """The sum of a list of variables of one shape, element by element."""
    return layers.sum(inputs)


def addmm(
    input: Variable,
    x: Variable,
    y: Variable,
    beta: float = 1.0,
    alpha: float = 1.0,
    name: str | None = None,
) -> Variable:
    """beta * input + alpha * x @ y, for matrices."""
    return layers.addmm(input, x, y, beta=beta, alpha=alpha, name=name)


def all(x: Variable, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Variable:
    """Logical and over `axis`: an integer or a list of them, negative from the end; None: over
    everything, shape [1].

    keepdim: reduced dimensions stay with size 1. x: bool.
    """
    return layers.reduce_all(x, axis, keepdim, name)


def any(x: Variable, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Variable:
    """Logical or over `axis`: an integer or a list of them, negative from the end; None: over
    everything, shape [1].

    keepdim: reduced dimensions stay with size 1. x: bool.
    """
    return layers.reduce_any(x, axis, keepdim, name)


def clip(x: Variable, min: Any = None, max: Any = None, name: str | None = None) -> Variable:
    """x clipped to [min, max]; a bound may be missing, or a variable of one element."""
    return layers.clamp(x, min, max, name=name)


def cross(x: Variable, y: Variable, axis: int | None = 9, name: str | None = None) -> Variable:
    """Cross products of the vectors along `axis` (9 or None: the first dimension of size 3)."""
    return layers.cross(x, y, None if axis == 9 else axis)


def dist(x: Variable, y: Variable, p: float = 2, name: str | None = None) -> Variable:
    """(sum |x - y| ** p) ** (1 / p); p may be 0 (how many differ), inf or -inf."""
    return layers.dist(x, y, p)


def divide(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """x / y (towards zero for integers), element by element; y is broadcast over the first
    dimensions of x.
    """
    return layers.elementwise_div(x, y, name=name)


def erf(x: Variable, name: str | None = None) -> Variable:
    """Element by element: 2 / sqrt(pi) * integral of exp(-t^2) from 0 to x."""
    return layers.erf(x)


def floor_divide(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """x / y rounded down, element by element; y is broadcast over the first dimensions of x."""
    if x.desc.dtype not in INTEGERS:
        return layers.floor(layers.elementwise_div(x, y), name)
    towards_zero = layers.elementwise_floordiv(x, y, name=name)
    return layers.elementwise_sub(
        towards_zero, layers.cast(_other_side(layers.elementwise_mod(x, y), y), x.dtype)
    )


def _other_side(rest: Variable, y: Variable) -> Variable:
    """Whether 1.8.5's remainder, which has the sign of x, has another sign than y: bool."""
    zero, none = layers.full_like(rest, 0), layers.fill_constant([1], y.dtype, 0)
    unlike = layers.logical_xor(
        layers.less_than(rest, zero), layers.less_than(layers.elementwise_add(zero, y), none)
    )
    return layers.logical_and(layers.not_equal(rest, zero), unlike)


def increment(x: Variable, value: float = 1.0, name: str | None = None) -> Variable:
    """x itself plus `value`, for a variable of one element."""
    return layers.increment(x, value)


def kron(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Kronecker product: every element of x times the whole of y."""
    return layers.kron(x, y, name=name)


def log1p(x: Variable, name: str | None = None) -> Variable:
    """log(1 + x), accurate for small x."""
    return layers.log1p(x, name=name)


def logsumexp(
    x: Variable, axis: Any = None, keepdim: bool = False, name: str | None = None
) -> Variable:
    """log(sum(exp(x), axis)), as three ops without a shift by the maximum."""
    return layers.logsumexp(x, axis, keepdim, name=name)


def matmul(
    x: Variable,
    y: Variable,
    transpose_x: bool = False,
    transpose_y: bool = False,
    name: str | None = None,
) -> Variable:
    """x @ y over the last two dimensions, those before broadcast; either may be transposed.

    Raises FluidTypeError for integers, FluidValueError for dimensions that do not fit.
    """
    return layers.matmul(x, y, transpose_x, transpose_y, name=name)


def max(x: Variable, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Variable:
    """Maximum over `axis`: an integer or a list of them, negative from the end; None: over
    everything, shape [1].

    keepdim: reduced dimensions stay with size 1.
    """
    return layers.reduce_max(x, axis, keepdim, name)


def maximum(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """max(x, y), element by element; y is broadcast over the first dimensions of x."""
    return layers.elementwise_max(x, y, name=name)


def mean(x: Variable, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Variable:
    """Mean over `axis`: an integer or a list of them, negative from the end; None: over everything,
    shape [1].

    keepdim: reduced dimensions stay with size 1. x: float32, float64, int32, int64.
    """
    return layers.reduce_mean(x, axis, keepdim, name)


def min(x: Variable, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Variable:
    """Minimum over `axis`: an integer or a list of them, negative from the end; None: over
    everything, shape [1].

    keepdim: reduced dimensions stay with size 1.
    """
    return layers.reduce_min(x, axis, keepdim, name)


def minimum(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """min(x, y), element by element; y is broadcast over the first dimensions of x."""
    return layers.elementwise_min(x, y, name=name)


def mm(input: Variable, mat2: Variable, name: str | None = None) -> Variable:
    """input @ mat2 over the last two dimensions, those before broadcast.

    Raises FluidTypeError for integers, FluidValueError for dimensions that do not fit.
    """
    return layers.matmul(input, mat2, name=name)


def mod(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """x mod y with the sign of y, element by element; y is broadcast over the first dimensions of
    x.
    """
    rest = layers.elementwise_mod(x, y, name=name)
    if x.desc.dtype not in INTEGERS:
        return rest
    return layers.elementwise_add(
        rest, layers.elementwise_mul(layers.cast(_other_side(rest, y), x.dtype), y)
    )


def multiply(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """x * y, element by element; y is broadcast over the first dimensions of x."""
    return layers.elementwise_mul(x, y, name=name)


def remainder(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """x mod y with the sign of y, element by element; y is broadcast over the first dimensions of
    x.
    """
    return mod(x, y, name)


def sign(x: Variable, name: str | None = None) -> Variable:
    """Element by element: -1, 0 or 1. x: float16 to float64."""
    return layers.sign(x)


def subtract(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """x - y, element by element; y is broadcast over the first dimensions of x."""
    return layers.elementwise_sub(x, y, name=name)


def trace(
    x: Variable, offset: int = 0, axis1: int = 0, axis2: int = 1, name: str | None = None
) -> Variable:
    """Sums of the diagonals (moved by `offset`) over dimensions axis1 and axis2."""
    return layers.trace(x, offset, axis1, axis2, name=name)


def sum(
    x: Variable, axis: Any = None, dtype: Any = None, keepdim: bool = False, name: str | None = None
) -> Variable:
    """The sum over `axis` (an integer or a list; None: over everything, shape [1]); dtype casts x
    first.
    """
    return layers.reduce_sum(x if dtype is None else layers.cast(x, dtype), axis, keepdim, name)


def prod(
    x: Variable, axis: Any = None, keepdim: bool = False, dtype: Any = None, name: str | None = None
) -> Variable:
    """The product over `axis` (an integer or a list; None: over everything, shape [1]); dtype casts
    x first.
    """
    return layers.reduce_prod(x if dtype is None else layers.cast(x, dtype), axis, keepdim, name)


def pow(x: Variable, y: Any, name: str | None = None) -> Variable:
    """x ** y; y: a number or a variable."""
    return (
        layers.elementwise_pow(x, y, name=name)
        if isinstance(y, Variable)
        else layers.pow(x, y, name)
    )


def cumsum(
    x: Variable, axis: int | None = None, dtype: Any = None, name: str | None = None
) -> Variable:
    """Cumulative sums along `axis` (None: of x flattened); dtype casts x first."""
    x = x if dtype is None else layers.cast(x, dtype)
    return layers.cumsum(layers.reshape(x, [-1]), 0) if axis is None else layers.cumsum(x, axis)


def cosh(x: Variable, name: str | None = None) -> Variable:
    """(exp(x) + exp(-x)) / 2."""
    return unary("cosh", x, name=name)


def sinh(x: Variable, name: str | None = None) -> Variable:
    """(exp(x) - exp(-x)) / 2."""
    return unary("sinh", x, name=name)


def tan(x: Variable, name: str | None = None) -> Variable:
    """sin(x) / cos(x)."""
    return unary("tan", x, name=name)


def log2(x: Variable, name: str | None = None) -> Variable:
    """Logarithm to base 2."""
    return unary("log2", x, name=name)


def log10(x: Variable, name: str | None = None) -> Variable:
    """Logarithm to base 10."""
    return unary("log10", x, name=name)


def isfinite(x: Variable, name: str | None = None) -> Variable:
    """Element by element: whether x is neither infinite nor nan; bool."""
    return unary("isfinite_v2", x, name=name, out="bool")


def isinf(x: Variable, name: str | None = None) -> Variable:
    """Element by element: whether x is inf or -inf; bool."""
    return unary("isinf_v2", x, name=name, out="bool")


def isnan(x: Variable, name: str | None = None) -> Variable:
    """Element by element: whether x is nan; bool."""
    return unary("isnan_v2", x, name=name, out="bool")


def tanh_(x: Variable, name: str | None = None) -> Variable:
    """tanh(x); a static program has nothing to write in place."""
    return layers.tanh(x, name)


__all__ = [
    "abs",
    "acos",
    "add",
    "add_n",
    "addmm",
    "all",
    "any",
    "asin",
    "atan",
    "bmm",
    "ceil",
    "clip",
    "cos",
    "cosh",
    "cross",
    "cumsum",
    "dist",
    "divide",
    "dot",
    "erf",
    "exp",
    "floor",
    "floor_divide",
    "increment",
    "isfinite",
    "isinf",
    "isnan",
    "kron",
    "log",
    "log1p",
    "log2",
    "log10",
    "logsumexp",
    "matmul",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mm",
    "mod",
    "multiply",
    "pow",
    "prod",
    "reciprocal",
    "remainder",
    "round",
    "rsqrt",
    "scale",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "stanh",
    "subtract",
    "sum",
    "tan",
    "tanh",
    "tanh_",
    "trace",
]  # fmt: skip
