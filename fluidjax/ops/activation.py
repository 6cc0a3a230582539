"""Activations and other elementwise functions of one tensor.

Ops without attributes are declared by two tables with their derivatives: in one the gradient op
takes X, in the other Out.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import ShapeError
from . import integers
from .extremes import by_equality
from .registry import Array, Attr, grad_of, op
from .traits import Sparse, by_values, elementwise, row_wise

Unary = Callable[[Any], Any]


def _sign(x: Any) -> Any:
    """-1, 0 or 1, and 0 for nan (jnp.sign gives nan). A complex number gives the conjugate of its
    direction.
    """
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        return jnp.conj(jnp.sign(x))
    return (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)


def _softsign_slope(x: Any) -> Any:
    size = 1 + jnp.abs(x)
    return 1 / (size * size)


# op type, function, derivative from X, formula: the gradient op takes X
OF_INPUT: list[tuple[str, Unary, Unary, str]] = [
    (
        "logsigmoid",
        jax.nn.log_sigmoid,
        lambda x: jax.nn.sigmoid(-x),
        "Out = log(1 / (1 + exp(-X))).",
    ),
    (
        "tanh_shrink",
        lambda x: x - jnp.tanh(x),
        lambda x: jnp.tanh(x) * jnp.tanh(x),
        "Out = X - tanh(X).",
    ),
    ("log", jnp.log, lambda x: 1 / x, "Out = log(X), the natural logarithm."),
    ("log1p", jnp.log1p, lambda x: 1 / (1 + x), "Out = log(1 + X)."),
    ("square", lambda x: x * x, lambda x: 2 * x, "Out = X * X."),
    ("abs", jnp.abs, _sign, "Out = |X|; its derivative at 0 is 0."),
    ("sin", jnp.sin, jnp.cos, "Out = sin(X)."),
    ("cos", jnp.cos, lambda x: -jnp.sin(x), "Out = cos(X)."),
    ("asin", jnp.arcsin, lambda x: 1 / jnp.sqrt(1 - x * x), "Out = arcsin(X)."),
    ("acos", jnp.arccos, lambda x: -1 / jnp.sqrt(1 - x * x), "Out = arccos(X)."),
    ("atan", jnp.arctan, lambda x: 1 / (1 + x * x), "Out = arctan(X)."),
    (
        "erf",
        jax.lax.erf,
        lambda x: 2 / math.sqrt(math.pi) * jnp.exp(-x * x),
        "Out = 2 / sqrt(pi) * integral from 0 to X of exp(-t^2).",
    ),
    ("softsign", jax.nn.soft_sign, _softsign_slope, "Out = X / (1 + |X|)."),
]
# op type, function, derivative from Out, formula: the gradient op takes Out
OF_OUTPUT: list[tuple[str, Unary, Unary, str]] = [
    ("sigmoid", jax.nn.sigmoid, lambda y: y * (1 - y), "Out = 1 / (1 + exp(-X))."),
    ("tanh", jnp.tanh, lambda y: 1 - y * y, "Out = tanh(X)."),
    ("exp", jnp.exp, lambda y: y, "Out = exp(X)."),
    ("sqrt", jnp.sqrt, lambda y: 0.5 / y, "Out = sqrt(X)."),
    ("rsqrt", jax.lax.rsqrt, lambda y: -0.5 * y * y * y, "Out = 1 / sqrt(X)."),
    ("reciprocal", lambda x: 1 / x, lambda y: -y * y, "Out = 1 / X."),
]
# op type, function, formula: the gradient is zero
STEPS: list[tuple[str, Unary, str]] = [
    ("ceil", jnp.ceil, "Out = the smallest integer >= X."),
    ("floor", jnp.floor, "Out = the largest integer <= X."),
]


ON_SPARSE = frozenset({"square", "abs", "sqrt"})  # these work on the values of sparse rows


def _sparse(kind: str) -> Sparse | None:
    return by_values() if kind in ON_SPARSE else None


def _unary(function: Unary, formula: str) -> Callable[..., Any]:
    def run(X: Array) -> Any:
        return function(X)

    run.__doc__ = formula
    return run


def _declare_of_input(kind: str, function: Unary, slope: Unary, formula: str) -> None:
    op(kind, outs="Out", rows=elementwise("X"), sparse=_sparse(kind))(_unary(function, formula))

    def rule(X: Array, d_Out: Array) -> Any:
        return d_Out * slope(X)

    rule.__doc__ = f"X@GRAD = Out@GRAD * d {kind}(X) / dX."
    grad_of(kind, "X")(rule)


def _declare_of_output(kind: str, function: Unary, slope: Unary, formula: str) -> None:
    op(kind, outs="Out", rows=elementwise("X"), sparse=_sparse(kind))(_unary(function, formula))

    def rule(Out: Array, d_Out: Array) -> Any:
        return d_Out * slope(Out)

    rule.__doc__ = f"X@GRAD = Out@GRAD * d {kind}(X) / dX, from Out."
    grad_of(kind, "Out")(rule)


def _declare_step(kind: str, function: Unary, formula: str) -> None:
    op(kind, outs="Out", rows=elementwise("X"))(_unary(function, formula))

    def rule(d_Out: Array) -> Any:
        return jnp.zeros_like(d_Out)

    rule.__doc__ = "X@GRAD = 0."
    grad_of(kind, "")(rule)


for _entry in OF_INPUT:
    _declare_of_input(*_entry)
for _row in OF_OUTPUT:
    _declare_of_output(*_row)
for _step in STEPS:
    _declare_step(*_step)


@op(outs="Out", rows=elementwise("X"))
def softplus(X: Array, *, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """Out = log(1 + exp(beta * X)) / beta, or X where beta * X is beyond the threshold; later
    Paddles added both attributes.
    """
    if (beta, threshold) == (1.0, 20.0):  # beyond 20 it is X in float32
        return jax.nn.softplus(X)
    return jnp.where(X * beta > threshold, X, jax.nn.softplus(X * beta) / beta)


@grad_of("softplus", "X")
def softplus_grad(X: Array, d_Out: Array, *, beta: float, threshold: float) -> Any:
    """X@GRAD = Out@GRAD / (1 + exp(-beta * X)), or Out@GRAD where beta * X is beyond the threshold."""
    if (beta, threshold) == (1.0, 20.0):
        return d_Out * jax.nn.sigmoid(X)
    return jnp.where(X * beta > threshold, d_Out, d_Out * jax.nn.sigmoid(X * beta))


@op("round", outs="Out", rows=elementwise("X"))
def round_(X: Array, *, decimals: int = 0) -> Any:
    """Out = X rounded to `decimals` places (default 0); halves are rounded to even."""
    if not decimals:
        return jnp.round(X)
    return jnp.round(X * X.dtype.type(10.0**decimals)) / X.dtype.type(10.0**decimals)


@grad_of("round", "")
def round_grad(d_Out: Array) -> Any:
    """X@GRAD = 0."""
    return jnp.zeros_like(d_Out)


@op(outs="Out", rows=elementwise("X"), infer=lambda X: X)
def relu(X: Array) -> Any:
    """Out = max(X, 0)."""
    return jnp.maximum(X, 0)


@grad_of("relu", "Out")
def relu_grad(Out: Array, d_Out: Array) -> Any:
    """X@GRAD = Out@GRAD where Out > 0, else 0."""
    return jnp.where(Out > 0, d_Out, 0)


@grad_of("relu_grad", "Out", wiring={"DDX": "X@GRAD@GRAD"}, gives={"DDOut": "Out@GRAD"})
def relu_grad_grad(Out: Array, DDX: Array) -> Any:
    """DDOut = DDX where Out > 0, else 0."""
    return jnp.where(Out > 0, DDX, 0)


@op(outs="Out", rows=elementwise("X"))
def relu6(X: Array, *, threshold: float = 6.0) -> Any:
    """Out = min(max(X, 0), threshold)."""
    return jnp.clip(X, 0, threshold)


@grad_of("relu6", "Out")
def relu6_grad(Out: Array, d_Out: Array, *, threshold: float) -> Any:
    """X@GRAD = Out@GRAD * (1 where 0 < Out < threshold, else 0)."""
    # A product as in Paddle, of nan where Out@GRAD is infinite; XLA:CPU takes 0.45 ms for it at
    # 8x64x56x56, and 0.7 to choose.
    return d_Out * jnp.where(
        (Out > 0) & (Out < threshold), np.ones((), d_Out.dtype), np.zeros((), d_Out.dtype)
    )


@op(outs="Out", rows=elementwise("X"))
def leaky_relu(X: Array, *, alpha: float = 0.02) -> Any:
    """Out = max(X, alpha * X)."""
    return jnp.maximum(X, alpha * X)


@grad_of("leaky_relu", "Out")
def leaky_relu_grad(Out: Array, d_Out: Array, *, alpha: float) -> Any:
    """X@GRAD = Out@GRAD where Out > 0, else alpha * Out@GRAD."""
    return d_Out * ((Out > 0) + alpha * (Out <= 0))


@grad_of("leaky_relu_grad", "Out", wiring={"DDX": "X@GRAD@GRAD"}, gives={"DDOut": "Out@GRAD"})
def leaky_relu_grad_grad(Out: Array, DDX: Array, *, alpha: float) -> Any:
    """DDOut = DDX where Out > 0, else alpha * DDX."""
    return jnp.where(Out > 0, DDX, alpha * DDX)


@grad_of(
    "square_grad",
    "X",
    wiring={"DOut": "Out@GRAD", "DDX": "X@GRAD@GRAD"},
    gives={"DX": "X", "DDOut": "Out@GRAD"},
)
def square_grad_grad(X: Array, DOut: Array, DDX: Array) -> Any:
    """DX = 2 * DOut * DDX; DDOut = 2 * X * DDX."""
    return 2 * DOut * DDX, 2 * X * DDX


@grad_of(
    "sqrt_grad",
    "Out",
    wiring={"DX": "X@GRAD", "DDX": "X@GRAD@GRAD"},
    gives={"DOut": "Out", "DDOut": "Out@GRAD"},
)
def sqrt_grad_grad(Out: Array, DX: Array, DDX: Array) -> Any:
    """DOut = -DX * DDX / Out; DDOut = 0.5 * DDX / Out."""
    return -DX * DDX / Out, 0.5 * DDX / Out


@op(outs="Out", rows=elementwise("X"))
def elu(X: Array, *, alpha: float = 1.0) -> Any:
    """Out = max(X, 0) + min(alpha * (exp(X) - 1), 0)."""
    return jnp.maximum(X, 0) + jnp.minimum(alpha * jnp.expm1(X), 0)


@grad_of("elu", "X")
def elu_grad(X: Array, d_Out: Array, *, alpha: float) -> Any:
    """X@GRAD = Out@GRAD where X > 0, else Out@GRAD * alpha * exp(X)."""
    return d_Out * jnp.where(X > 0, 1, alpha * jnp.exp(jnp.minimum(X, 0)))


@grad_of(
    "elu_grad",
    "X",
    wiring={"DOut": "Out@GRAD", "DDX": "X@GRAD@GRAD"},
    gives={"DX": "X", "DDOut": "Out@GRAD"},
)
def elu_grad_grad(X: Array, DOut: Array, DDX: Array, *, alpha: float) -> Any:
    """DX = alpha * exp(X) * DOut * DDX where X <= 0, else 0; DDOut = DDX, times alpha * exp(X)
    where X <= 0.
    """
    curve = alpha * jnp.exp(jnp.minimum(X, 0))
    return jnp.where(X > 0, 0, curve * DOut * DDX), jnp.where(X > 0, DDX, curve * DDX)


@op(outs="Out", rows=elementwise("X"))
def selu(
    X: Array,
    *,
    scale: float = 1.0507009873554804934193349852946,
    alpha: float = 1.6732632423543772848170429916717,
) -> Any:
    """Out = scale * (X where X > 0, else alpha * (exp(X) - 1))."""
    return scale * jnp.where(X > 0, X, alpha * jnp.expm1(jnp.minimum(X, 0)))


@grad_of("selu", "Out")
def selu_grad(Out: Array, d_Out: Array, *, scale: float, alpha: float) -> Any:
    """X@GRAD = Out@GRAD * (scale where Out > 0, else Out + scale * alpha)."""
    both = float(np.float32(scale) * np.float32(alpha))
    return d_Out * jnp.where(Out <= 0, Out + both, scale)


@op(outs="Out", rows=elementwise("X"))
def gelu(X: Array, *, approximate: bool = False) -> Any:
    """Out = 0.5 * X * (1 + erf(X / sqrt(2))); approximate: by tanh(sqrt(2 / pi) * (X + 0.044715 *
    X^3)).
    """
    return jax.nn.gelu(X, approximate=approximate)


@grad_of("gelu", "X")
def gelu_grad(X: Array, d_Out: Array, *, approximate: bool) -> Any:
    """X@GRAD = Out@GRAD * (cdf + X * cdf'), where Out = X * cdf."""
    if approximate:
        factor = math.sqrt(2 / math.pi)
        bend = jnp.tanh(factor * (X + 0.044715 * X * X * X))
        slope = 0.5 * (1 + bend) + 0.5 * X * (1 - bend * bend) * factor * (1 + 3 * 0.044715 * X * X)
    else:
        z = -X * math.sqrt(0.5)
        # XLA's erfc computes the same exponential
        density = jnp.exp(-(z * z)) / math.sqrt(2 * math.pi)
        slope = 0.5 * jax.lax.erfc(z) + X * density
    return d_Out * slope


@op(outs="Out", rows=elementwise("X"))
def brelu(X: Array, *, t_min: float = 0.0, t_max: float = 24.0) -> Any:
    """Out = min(max(X, t_min), t_max)."""
    return jnp.clip(X, t_min, t_max)


@grad_of("brelu", "X")
def brelu_grad(X: Array, d_Out: Array, *, t_min: float, t_max: float) -> Any:
    """X@GRAD = Out@GRAD where t_min < X < t_max, else 0."""
    return jnp.where((X > t_min) & (X < t_max), d_Out, 0)


@op(outs="Out", rows=elementwise("X"))
def soft_relu(X: Array, *, threshold: float = 40.0) -> Any:
    """Out = log(1 + exp(min(max(X, -threshold), threshold)))."""
    return jnp.log1p(jnp.exp(jnp.clip(X, -threshold, threshold)))


@grad_of("soft_relu", "Out")
def soft_relu_grad(Out: Array, d_Out: Array, *, threshold: float) -> Any:
    """X@GRAD = Out@GRAD * (1 - exp(-Out)) where -threshold < Out < threshold, else 0."""
    return jnp.where((Out > -threshold) & (Out < threshold), d_Out * (1 - jnp.exp(-Out)), 0)


def _only(mask: Any, x: Any) -> Any:
    """x times the mask, as in Paddle: an element that is not finite becomes nan, not 0, where the
    mask is 0.
    """
    # XLA would make a selection of x * mask, and lose the nan
    return jnp.where(mask, x, jax.lax.stop_gradient(x * 0))


def softshrink(X: Array, **attrs: Any) -> Any:
    """Out = X - lambda where X > lambda, X + lambda where X < -lambda, else 0."""
    threshold = attrs["lambda"]  # no parameter can have that name
    return _only(X > threshold, X - threshold) + _only(X < -threshold, X + threshold)


op(outs="Out", grad="X", attrs={"lambda": Attr("lambda", "FLOAT", 0.5)}, rows=elementwise("X"))(
    softshrink
)


@op(outs="Out", rows=elementwise("X"))
def hard_shrink(X: Array, *, threshold: float = 0.5) -> Any:
    """Out = X where |X| > threshold, else 0."""
    return _only((X > threshold) | (X < -threshold), X)


@grad_of("hard_shrink", "X")
def hard_shrink_grad(X: Array, d_Out: Array, *, threshold: float) -> Any:
    """X@GRAD = Out@GRAD where |X| > threshold, else 0."""
    return jnp.where((X > threshold) | (X < -threshold), d_Out, 0)


@op(outs="Out", rows=elementwise("X"))
def hard_sigmoid(X: Array, *, slope: float = 0.2, offset: float = 0.5) -> Any:
    """Out = min(max(slope * X + offset, 0), 1)."""
    return jnp.clip(slope * X + offset, 0, 1)


@grad_of("hard_sigmoid", "Out")
def hard_sigmoid_grad(Out: Array, d_Out: Array, *, slope: float) -> Any:
    """X@GRAD = slope * Out@GRAD where 0 < Out < 1, else 0."""
    return jnp.where((Out > 0) & (Out < 1), d_Out * slope, 0)


@op(outs="Out", rows=elementwise("X"))
def hard_swish(X: Array, *, threshold: float = 6.0, scale: float = 6.0, offset: float = 3.0) -> Any:
    """Out = X * min(max(X + offset, 0), threshold) / scale."""
    return X * jnp.clip(X + offset, 0, threshold) / scale


@grad_of("hard_swish", "X")
def hard_swish_grad(
    X: Array, d_Out: Array, *, threshold: float, scale: float, offset: float
) -> Any:
    """X@GRAD = Out@GRAD * (1 where X + offset >= threshold, (2 * X + offset) / scale where it is >
    0, else 0).
    """
    below = (X + offset < threshold).astype(X.dtype)
    return d_Out * ((2 * X + offset) / scale * (X + offset > 0) * below + (1 - below))


@op(outs="Out", rows=elementwise("X"))
def swish(X: Array, *, beta: float = 1.0) -> Any:
    """Out = X / (1 + exp(-beta * X))."""
    return X / (1 + jnp.exp(-beta * X))


@grad_of("swish", "X")
def swish_grad(X: Array, d_Out: Array, *, beta: float) -> Any:
    """X@GRAD = Out@GRAD * (s + beta * X * s * (1 - s)), where s = 1 / (1 + exp(-beta * X))."""
    share = 1 / (1 + jnp.exp(-beta * X))
    return d_Out * (share + beta * (X * share) * (1 - share))


def _mish_softplus(x: Any, threshold: float) -> Any:
    soft = jnp.log1p(jnp.exp(jnp.clip(x, -threshold, threshold)))
    return jnp.where(x > threshold, x, jnp.where(x < -threshold, jnp.exp(jnp.minimum(x, 0)), soft))


@op(outs="Out", rows=elementwise("X"))
def mish(X: Array, *, threshold: float = 20.0) -> Any:
    """Out = X * tanh(softplus(X)), where softplus(X) is X above the threshold and exp(X) below
    minus it.
    """
    return X * jnp.tanh(_mish_softplus(X, threshold))


@grad_of("mish", "X")
def mish_grad(X: Array, d_Out: Array, *, threshold: float) -> Any:
    """X@GRAD = Out@GRAD * (t + X * (1 - t * t) * (1 - exp(-s))), where s = softplus(X), t =
    tanh(s).
    """
    soft = _mish_softplus(X, threshold)
    bend = jnp.tanh(soft)
    return d_Out * (bend + X * (1 - bend * bend) * -jnp.expm1(-soft))


@op(outs="Out", rows=elementwise("X"))
def stanh(X: Array, *, scale_a: float = 0.67, scale_b: float = 1.7159) -> Any:
    """Out = scale_b * tanh(scale_a * X)."""
    return scale_b * jnp.tanh(scale_a * X)


@grad_of("stanh", "X")
def stanh_grad(X: Array, d_Out: Array, *, scale_a: float, scale_b: float) -> Any:
    """X@GRAD = Out@GRAD * scale_a * scale_b * (1 - tanh(scale_a * X)^2)."""
    bend = jnp.tanh(scale_a * X)
    return d_Out * (scale_a * scale_b) * (1 - bend * bend)


@op(outs="Out", rows=elementwise("X"))
def thresholded_relu(X: Array, *, threshold: float = 1.0, value: float = 0.0) -> Any:
    """Out = X where X > threshold, else 0 (`value` in later Paddles)."""
    return (
        _only(X > threshold, X)
        if not value
        else jnp.where(X > threshold, X, np.asarray(value, X.dtype))
    )


@grad_of("thresholded_relu", "X")
def thresholded_relu_grad(X: Array, d_Out: Array, *, threshold: float) -> Any:
    """X@GRAD = Out@GRAD where X > threshold, else 0."""
    return jnp.where(X > threshold, d_Out, 0)


@op("pow", outs="Out", rows=elementwise("X"))
def power(X: Array, FactorTensor: Array | None, *, factor: float = 1.0) -> Any:
    """Out = X ** factor; a FactorTensor of one element replaces factor. For an X of integers factor
    is an integer, and Out is rounded toward zero.
    """
    exponent = _exponent(X, FactorTensor, factor)
    # unlike in elementwise_pow, large powers keep their low bits
    if jnp.issubdtype(X.dtype, jnp.integer):
        below = integers.power(X, jnp.asarray(exponent, X.dtype))
        return jnp.where(
            exponent < 0, below, jnp.power(X, jnp.maximum(exponent, 0).astype(X.dtype))
        )
    return jnp.power(X, exponent) if FactorTensor is not None or exponent != 2 else X * X


def _exponent(x: Any, tensor: Any, factor: float) -> Any:
    if tensor is not None:
        return tensor.reshape(()).astype(x.dtype)
    return factor if jnp.issubdtype(x.dtype, jnp.floating) else int(factor)


@grad_of("pow", "X FactorTensor", nograd="FactorTensor")
def pow_grad(X: Array, FactorTensor: Array | None, d_Out: Array, *, factor: float) -> Any:
    """X@GRAD = Out@GRAD * factor * X ** (factor - 1)."""
    exponent = _exponent(X, FactorTensor, factor)
    return (d_Out * exponent * jnp.power(X, exponent - 1)).astype(X.dtype)


# the initial value of maxout's maximum, in float64 too
LEAST = -float(np.finfo(np.float32).max)


@op(outs="Out", rows=row_wise("X", lod=None))
def maxout(X: Array, *, groups: int, axis: int = 1) -> Any:
    """Out[.., c, ..] = max of X over channels c * groups .. c * groups + groups - 1 (dimension
    `axis`); nan only if they end with it.
    """
    at = axis % X.ndim
    return _greatest(_grouped(X, groups, at), at + 1)


def _greatest(x: Any, axis: int) -> Any:
    return functools.reduce(
        lambda out, x: jnp.where(out > x, out, x),
        jnp.moveaxis(x, axis, 0),
        jnp.asarray(LEAST, x.dtype),
    )


def _grouped(x: Any, groups: int, at: int) -> Any:
    channels = x.shape[at]
    if channels % groups:
        raise ShapeError(
            f"maxout needs channels divisible by groups: {channels} channels, groups={groups}"
        )
    return x.reshape(*x.shape[:at], channels // groups, groups, *x.shape[at + 1 :])


@grad_of("maxout", "X Out")
def maxout_grad(X: Array, Out: Array, d_Out: Array, *, groups: int, axis: int) -> Any:
    """X@GRAD = Out@GRAD at the first channel of each group that equals Out, 0 elsewhere."""
    at = axis % X.ndim

    def first(x: Any, d: Any) -> Any:
        hit = x == jnp.expand_dims(_greatest(x, at + 1), at + 1)
        return jnp.where(hit & (jnp.cumsum(hit, at + 1) == 1), d, jnp.zeros((), d.dtype))

    return by_equality(first, _grouped(X, groups, at), jnp.expand_dims(d_Out, at + 1)).reshape(
        X.shape
    )


@op(outs="Out", rows=row_wise("X"))
def prelu(X: Array, Alpha: Array, *, mode: str = "all", data_format: str = "NCHW") -> Any:
    """Out = X where X > 0, else Alpha * X; Alpha has one number (all), one per channel, or one per
    element of a sample.

    data_format: the channels are the second axis of X (NCHW) or the last (NHWC).
    """
    return jnp.where(X > 0, X, _alpha(X, Alpha, mode, data_format) * X)


def _alpha(x: Any, alpha: Any, mode: str, data_format: str) -> Any:
    """Alpha with the dimensions that broadcast over X."""
    if mode == "channel" and data_format == "NHWC":
        return alpha.reshape(*[1] * (x.ndim - 1), -1)
    if mode == "channel":
        return alpha.reshape(1, -1, *[1] * (x.ndim - 2))
    return alpha.reshape((1, *x.shape[1:]) if mode == "element" else [1] * x.ndim)


@grad_of("prelu", "X Alpha")
def prelu_grad(
    X: Array, Alpha: Array, d_Out: Array, *, mode: str, data_format: str
) -> tuple[Any, Any]:
    """X@GRAD = Out@GRAD where X > 0, else Alpha * Out@GRAD; Alpha@GRAD = sum of X * Out@GRAD over X
    <= 0.
    """
    alpha = _alpha(X, Alpha, mode, data_format)
    shared = tuple(i for i, n in enumerate(alpha.shape) if n == 1)
    slope = jnp.where(X > 0, 0, X * d_Out).sum(shared, keepdims=True)
    return d_Out * jnp.where(X > 0, 1, alpha), slope.reshape(Alpha.shape)
