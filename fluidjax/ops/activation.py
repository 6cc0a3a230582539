"""Activations and other elementwise functions of one tensor.

Ops without attributes sit in two tables: those whose gradient op sees X (differentiated by jax.vjp), and those whose
gradient op sees only Out, with the derivative in terms of Out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..errors import ShapeError
from .registry import Array, Attr, grad_of, op
from .traits import Sparse, by_values, elementwise, row_wise

Unary = Callable[[Any], Any]


def _round_half_away(x: Any) -> Any:
    """std::round: halves go away from zero (jnp.round takes them to even)."""
    return jnp.trunc(x + jnp.copysign(jnp.asarray(0.5, x.dtype), x)) if jnp.issubdtype(x.dtype, jnp.floating) else x


# op type, function, formula: the gradient op takes X
OF_INPUT: list[tuple[str, Unary, str]] = [
    ("logsigmoid", jax.nn.log_sigmoid, "Out = log(1 / (1 + exp(-X)))."),
    ("tanh_shrink", lambda x: x - jnp.tanh(x), "Out = X - tanh(X)."),
    ("log", jnp.log, "Out = log(X), the natural logarithm."),
    ("log1p", jnp.log1p, "Out = log(1 + X)."),
    ("square", lambda x: x * x, "Out = X * X."),
    ("abs", jnp.abs, "Out = |X|."),
    ("sin", jnp.sin, "Out = sin(X)."),
    ("cos", jnp.cos, "Out = cos(X)."),
    ("asin", jnp.arcsin, "Out = arcsin(X)."),
    ("acos", jnp.arccos, "Out = arccos(X)."),
    ("atan", jnp.arctan, "Out = arctan(X)."),
    ("erf", jax.lax.erf, "Out = 2 / sqrt(pi) * integral from 0 to X of exp(-t^2)."),
    ("softplus", jax.nn.softplus, "Out = log(1 + exp(X))."),
    ("softsign", jax.nn.soft_sign, "Out = X / (1 + |X|)."),
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
    ("round", _round_half_away, "Out = the integer nearest to X; halves go away from zero."),
]


ON_SPARSE = frozenset({"square", "abs", "sqrt"})  # these work on the values of sparse rows


def _sparse(kind: str) -> Sparse | None:
    return by_values() if kind in ON_SPARSE else None


def _unary(function: Unary, formula: str) -> Callable[..., Any]:
    def run(X: Array) -> Any:
        return function(X)

    run.__doc__ = formula
    return run


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


for _kind, _function, _formula in OF_INPUT:
    op(_kind, outs="Out", grad="X", rows=elementwise("X"), sparse=_sparse(_kind))(_unary(_function, _formula))
for _row in OF_OUTPUT:
    _declare_of_output(*_row)
for _step in STEPS:
    _declare_step(*_step)


@op(outs="Out", rows=elementwise("X"))
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
    """X@GRAD = Out@GRAD where 0 < Out < threshold, else 0."""
    return jnp.where((Out > 0) & (Out < threshold), d_Out, 0)


@op(outs="Out", rows=elementwise("X"))
def leaky_relu(X: Array, *, alpha: float = 0.02) -> Any:
    """Out = max(X, alpha * X)."""
    return jnp.maximum(X, alpha * X)


@grad_of("leaky_relu", "Out")
def leaky_relu_grad(Out: Array, d_Out: Array, *, alpha: float) -> Any:
    """X@GRAD = Out@GRAD where Out > 0, else alpha * Out@GRAD."""
    return jnp.where(Out > 0, d_Out, alpha * d_Out)


@grad_of("leaky_relu_grad", "Out", wiring={"DDX": "X@GRAD@GRAD"}, gives={"DDOut": "Out@GRAD"})
def leaky_relu_grad_grad(Out: Array, DDX: Array, *, alpha: float) -> Any:
    """DDOut = DDX where Out > 0, else alpha * DDX."""
    return jnp.where(Out > 0, DDX, alpha * DDX)


@grad_of("square_grad", "X", wiring={"DOut": "Out@GRAD", "DDX": "X@GRAD@GRAD"}, gives={"DX": "X", "DDOut": "Out@GRAD"})
def square_grad_grad(X: Array, DOut: Array, DDX: Array) -> Any:
    """DX = 2 * DOut * DDX; DDOut = 2 * X * DDX."""
    return 2 * DOut * DDX, 2 * X * DDX


@grad_of(
    "sqrt_grad", "Out", wiring={"DX": "X@GRAD", "DDX": "X@GRAD@GRAD"}, gives={"DOut": "Out", "DDOut": "Out@GRAD"}
)
def sqrt_grad_grad(Out: Array, DX: Array, DDX: Array) -> Any:
    """DOut = -DX * DDX / Out; DDOut = 0.5 * DDX / Out."""
    return -DX * DDX / Out, 0.5 * DDX / Out


@op(outs="Out", grad="X", rows=elementwise("X"))
def elu(X: Array, *, alpha: float = 1.0) -> Any:
    """Out = X where X > 0, else alpha * (exp(X) - 1)."""
    return jnp.where(X > 0, X, alpha * jnp.expm1(jnp.minimum(X, 0)))


@grad_of("elu_grad", "X", wiring={"DOut": "Out@GRAD", "DDX": "X@GRAD@GRAD"}, gives={"DX": "X", "DDOut": "Out@GRAD"})
def elu_grad_grad(X: Array, DOut: Array, DDX: Array, *, alpha: float) -> Any:
    """DX = alpha * exp(X) * DOut * DDX where X <= 0, else 0; DDOut = DDX, times alpha * exp(X) where X <= 0."""
    curve = alpha * jnp.exp(jnp.minimum(X, 0))
    return jnp.where(X > 0, 0, curve * DOut * DDX), jnp.where(X > 0, DDX, curve * DDX)


@op(outs="Out", rows=elementwise("X"))
def selu(X: Array, *, scale: float = 1.0507009873554804934193349852946, alpha: float = 1.6732632423543772848170429916717) -> Any:
    """Out = scale * (X where X > 0, else alpha * (exp(X) - 1))."""
    return scale * jnp.where(X > 0, X, alpha * jnp.expm1(jnp.minimum(X, 0)))


@grad_of("selu", "Out")
def selu_grad(Out: Array, d_Out: Array, *, scale: float, alpha: float) -> Any:
    """X@GRAD = Out@GRAD * (scale where Out > 0, else Out + scale * alpha)."""
    return d_Out * jnp.where(Out > 0, scale, Out + scale * alpha)


@op(outs="Out", grad="X", rows=elementwise("X"))
def gelu(X: Array, *, approximate: bool = False) -> Any:
    """Out = 0.5 * X * (1 + erf(X / sqrt(2))); approximate: by tanh(sqrt(2 / pi) * (X + 0.044715 * X^3))."""
    return jax.nn.gelu(X, approximate=approximate)


@op(outs="Out", grad="X", rows=elementwise("X"))
def brelu(X: Array, *, t_min: float = 0.0, t_max: float = 24.0) -> Any:
    """Out = min(max(X, t_min), t_max)."""
    return jnp.clip(X, t_min, t_max)


@op(outs="Out", rows=elementwise("X"))
def soft_relu(X: Array, *, threshold: float = 40.0) -> Any:
    """Out = log(1 + exp(min(max(X, -threshold), threshold)))."""
    return jnp.log1p(jnp.exp(jnp.clip(X, -threshold, threshold)))


@grad_of("soft_relu", "Out")
def soft_relu_grad(Out: Array, d_Out: Array, *, threshold: float) -> Any:
    """X@GRAD = Out@GRAD * (1 - exp(-Out)) where -threshold < Out < threshold, else 0."""
    return jnp.where((Out > -threshold) & (Out < threshold), d_Out * (1 - jnp.exp(-Out)), 0)


def softshrink(X: Array, **attrs: Any) -> Any:
    """Out = X - lambda where X > lambda, X + lambda where X < -lambda, else 0."""
    threshold = attrs["lambda"]  # no parameter can have that name
    return jnp.where(X > threshold, X - threshold, jnp.where(X < -threshold, X + threshold, 0))


op(outs="Out", grad="X", attrs={"lambda": Attr("lambda", "FLOAT", 0.5)}, rows=elementwise("X"))(softshrink)


@op(outs="Out", grad="X", rows=elementwise("X"))
def hard_shrink(X: Array, *, threshold: float = 0.5) -> Any:
    """Out = X where |X| > threshold, else 0."""
    return jnp.where((X > threshold) | (X < -threshold), X, 0)


@op(outs="Out", rows=elementwise("X"))
def hard_sigmoid(X: Array, *, slope: float = 0.2, offset: float = 0.5) -> Any:
    """Out = min(max(slope * X + offset, 0), 1)."""
    return jnp.clip(slope * X + offset, 0, 1)


@grad_of("hard_sigmoid", "Out")
def hard_sigmoid_grad(Out: Array, d_Out: Array, *, slope: float) -> Any:
    """X@GRAD = slope * Out@GRAD where 0 < Out < 1, else 0."""
    return jnp.where((Out > 0) & (Out < 1), d_Out * slope, 0)


@op(outs="Out", grad="X", rows=elementwise("X"))
def hard_swish(X: Array, *, threshold: float = 6.0, scale: float = 6.0, offset: float = 3.0) -> Any:
    """Out = X * min(max(X + offset, 0), threshold) / scale."""
    return X * jnp.clip(X + offset, 0, threshold) / scale


@op(outs="Out", grad="X", rows=elementwise("X"))
def swish(X: Array, *, beta: float = 1.0) -> Any:
    """Out = X / (1 + exp(-beta * X))."""
    return X * jax.nn.sigmoid(beta * X)


@op(outs="Out", grad="X", rows=elementwise("X"))
def mish(X: Array, *, threshold: float = 20.0) -> Any:
    """Out = X * tanh(softplus(X)), where softplus(X) is X above the threshold and exp(X) below minus it."""
    soft = jnp.log1p(jnp.exp(jnp.clip(X, -threshold, threshold)))
    return X * jnp.tanh(jnp.where(X > threshold, X, jnp.where(X < -threshold, jnp.exp(jnp.minimum(X, 0)), soft)))


@op(outs="Out", grad="X", rows=elementwise("X"))
def stanh(X: Array, *, scale_a: float = 0.67, scale_b: float = 1.7159) -> Any:
    """Out = scale_b * tanh(scale_a * X)."""
    return scale_b * jnp.tanh(scale_a * X)


@op(outs="Out", grad="X", rows=elementwise("X"))
def thresholded_relu(X: Array, *, threshold: float = 1.0) -> Any:
    """Out = X where X > threshold, else 0."""
    return jnp.where(X > threshold, X, 0)


@op("pow", outs="Out", grad="X FactorTensor", nograd="FactorTensor", rows=elementwise("X"))
def power(X: Array, FactorTensor: Array | None, *, factor: float = 1.0) -> Any:
    """Out = X ** factor; a FactorTensor of one element takes factor's place."""
    exponent = factor if FactorTensor is None else FactorTensor.reshape(()).astype(X.dtype)
    return jnp.power(X, exponent) if FactorTensor is not None or factor != 2 else X * X


@op(outs="Out", grad="X Out", rows=row_wise("X", lod=None))
def maxout(X: Array, *, groups: int, axis: int = 1) -> Any:
    """Out[.., c, ..] = max of X over channels c * groups .. c * groups + groups - 1 (dimension `axis`)."""
    at = axis % X.ndim
    channels = X.shape[at]
    if channels % groups:
        raise ShapeError(f"maxout needs channels divisible by groups: {channels} channels, groups={groups}")
    return X.reshape(*X.shape[:at], channels // groups, groups, *X.shape[at + 1 :]).max(at + 1)


@op(outs="Out", grad="X Alpha", rows=row_wise("X"))
def prelu(X: Array, Alpha: Array, *, mode: str = "all") -> Any:
    """Out = X where X > 0, else Alpha * X; Alpha is one number (all), one a channel, or one an element of a sample."""
    if mode == "channel":
        alpha = Alpha.reshape(1, -1, *[1] * (X.ndim - 2))
    elif mode == "element":
        alpha = Alpha.reshape(1, *X.shape[1:])
    else:
        alpha = Alpha.reshape([1] * X.ndim)
    return jnp.where(X > 0, X, alpha * X)
