"""Functions of one variable, element by element. A dtype that is not listed raises FluidTypeError."""

from __future__ import annotations

from typing import Any

from ..base.loc import located
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ._build import FLOATS, HALF, INTS, append, require, typed, unary, variable

_NUMBERS = (*HALF, *INTS)


@located
def abs(x: Variable, name: str | None = None) -> Variable:
    """Element by element: |x|. x: float16 to float64, int32, int64."""
    return unary("abs", x, _NUMBERS, name)


@located
def acos(x: Variable, name: str | None = None) -> Variable:
    """Element by element: arccos(x). x: float16 to float64."""
    return unary("acos", x, HALF, name)


@located
def asin(x: Variable, name: str | None = None) -> Variable:
    """Element by element: arcsin(x). x: float16 to float64."""
    return unary("asin", x, HALF, name)


@located
def atan(x: Variable, name: str | None = None) -> Variable:
    """Element by element: arctan(x). x: float16 to float64."""
    return unary("atan", x, HALF, name)


@located
def brelu(
    x: Variable, t_min: float = 0.0, t_max: float = 24.0, name: str | None = None
) -> Variable:
    """Element by element: min(max(x, t_min), t_max). x: float16 to float64."""
    return unary("brelu", x, HALF, name, {"t_min": t_min, "t_max": t_max})


@located
def ceil(x: Variable, name: str | None = None) -> Variable:
    """Element by element: x rounded up. x: float16 to float64."""
    return unary("ceil", x, HALF, name)


@located
def cos(x: Variable, name: str | None = None) -> Variable:
    """Element by element: cos(x). x: float16 to float64."""
    return unary("cos", x, HALF, name)


@located
def elu(x: Variable, alpha: float = 1.0, name: str | None = None) -> Variable:
    """Element by element: x where x > 0, else alpha * (exp(x) - 1). x: float16 to float64."""
    return unary("elu", x, HALF, name, {"alpha": alpha})


@located
def erf(x: Variable) -> Variable:
    """Element by element: 2 / sqrt(pi) * integral of exp(-t^2) from 0 to x."""
    return unary("erf", x, ())


@located
def exp(x: Variable, name: str | None = None) -> Variable:
    """Element by element: exp(x). x: float16 to float64, int32, int64."""
    return unary("exp", x, _NUMBERS, name)


@located
def floor(x: Variable, name: str | None = None) -> Variable:
    """Element by element: x rounded down. x: float16 to float64."""
    return unary("floor", x, HALF, name)


@located
def gelu(x: Variable, approximate: bool = False) -> Variable:
    """Element by element: x * Phi(x), Phi the normal distribution function; approximate: by tanh."""
    return unary("gelu", x, (), None, {"approximate": approximate})


@located
def hard_shrink(x: Variable, threshold: float | None = None) -> Variable:
    """Element by element: x where |x| > threshold (default 0.5), else 0. x: float16 to float64."""
    return unary("hard_shrink", x, HALF, None, {"threshold": threshold})


@located
def hard_sigmoid(
    x: Variable, slope: float = 0.2, offset: float = 0.5, name: str | None = None
) -> Variable:
    """Element by element: min(max(slope * x + offset, 0), 1). x: float16 to float64."""
    return unary("hard_sigmoid", x, HALF, name, {"slope": slope, "offset": offset})


@located
def hard_swish(
    x: Variable,
    threshold: float = 6.0,
    scale: float = 6.0,
    offset: float = 3.0,
    name: str | None = None,
) -> Variable:
    """Element by element: x * min(max(x + offset, 0), threshold) / scale. x: float16 to float64."""
    return unary(
        "hard_swish", x, HALF, name, {"threshold": threshold, "scale": scale, "offset": offset}
    )


@located
def leaky_relu(x: Variable, alpha: float = 0.02, name: str | None = None) -> Variable:
    """Element by element: max(x, alpha * x). x: float16 to float64."""
    return unary("leaky_relu", x, HALF, name, {"alpha": alpha})


@located
def log(x: Variable, name: str | None = None) -> Variable:
    """Element by element: natural logarithm of x. x: float32 or float64."""
    return unary("log", x, FLOATS, name)


@located
def logsigmoid(x: Variable, name: str | None = None) -> Variable:
    """Element by element: log(1 / (1 + exp(-x))). x: float16 to float64."""
    return unary("logsigmoid", x, HALF, name)


@located
def reciprocal(x: Variable, name: str | None = None) -> Variable:
    """Element by element: 1 / x. x: float16 to float64."""
    return unary("reciprocal", x, HALF, name)


@located
def relu(x: Variable, name: str | None = None) -> Variable:
    """Element by element: max(x, 0). x: float16 to float64."""
    return unary("relu", x, HALF, name)


@located
def relu6(x: Variable, threshold: float = 6.0, name: str | None = None) -> Variable:
    """Element by element: min(max(x, 0), threshold). x: float16 to float64."""
    return unary("relu6", x, HALF, name, {"threshold": threshold})


@located
def round(x: Variable, name: str | None = None) -> Variable:
    """Element by element: x rounded to the nearest integer, halves away from zero. x: float16 to
    float64.
    """
    return unary("round", x, HALF, name)


@located
def rsqrt(x: Variable, name: str | None = None) -> Variable:
    """Element by element: 1 / sqrt(x). x: float16 to float64."""
    return unary("rsqrt", x, HALF, name)


@located
def sigmoid(x: Variable, name: str | None = None) -> Variable:
    """Element by element: 1 / (1 + exp(-x)). x: float16 to float64."""
    return unary("sigmoid", x, HALF, name)


@located
def sign(x: Variable) -> Variable:
    """Element by element: -1, 0 or 1. x: float16 to float64."""
    return unary("sign", x, HALF)


@located
def sin(x: Variable, name: str | None = None) -> Variable:
    """Element by element: sin(x). x: float16 to float64."""
    return unary("sin", x, HALF, name)


@located
def soft_relu(x: Variable, threshold: float = 40.0, name: str | None = None) -> Variable:
    """Element by element: log(1 + exp(min(max(x, -threshold), threshold))). x: float16 to float64."""
    return unary("soft_relu", x, HALF, name, {"threshold": threshold})


@located
def softplus(x: Variable, name: str | None = None) -> Variable:
    """Element by element: log(1 + exp(x)). x: float16 to float64."""
    return unary("softplus", x, HALF, name)


@located
def softshrink(x: Variable, alpha: float | None = None) -> Variable:
    """Element by element: x - alpha above alpha (default 0.5), x + alpha below -alpha, else 0. x:
    float16 to float64.
    """
    return unary("softshrink", x, HALF, None, {"lambda": alpha})


@located
def softsign(x: Variable, name: str | None = None) -> Variable:
    """Element by element: x / (1 + |x|). x: float16 to float64."""
    return unary("softsign", x, HALF, name)


@located
def sqrt(x: Variable, name: str | None = None) -> Variable:
    """Element by element: square root of x. x: float16 to float64."""
    return unary("sqrt", x, HALF, name)


@located
def square(x: Variable, name: str | None = None) -> Variable:
    """Element by element: x * x. x: float16 to float64, int32, int64."""
    return unary("square", x, _NUMBERS, name)


@located
def stanh(
    x: Variable, scale_a: float = 0.67, scale_b: float = 1.7159, name: str | None = None
) -> Variable:
    """Element by element: scale_b * tanh(scale_a * x). x: float16 to float64."""
    return unary("stanh", x, HALF, name, {"scale_a": scale_a, "scale_b": scale_b})


@located
def swish(x: Variable, beta: float = 1.0, name: str | None = None) -> Variable:
    """Element by element: x / (1 + exp(-beta * x)). x: float16 to float64."""
    return unary("swish", x, HALF, name, {"beta": beta})


@located
def tanh(x: Variable, name: str | None = None) -> Variable:
    """Element by element: tanh(x). x: float16 to float64."""
    return unary("tanh", x, HALF, name)


@located
def tanh_shrink(x: Variable, name: str | None = None) -> Variable:
    """Element by element: x - tanh(x). x: float16 to float64."""
    return unary("tanh_shrink", x, HALF, name)


@located
def thresholded_relu(x: Variable, threshold: float | None = None) -> Variable:
    """Element by element: x where x > threshold (default 1), else 0. x: float16 to float64."""
    return unary("thresholded_relu", x, HALF, None, {"threshold": threshold})


@located
def softmax(
    input: Variable, use_cudnn: bool = False, name: str | None = None, axis: int = -1
) -> Variable:
    """exp(x) / sum(exp(x), axis), shifted by the maximum. use_cudnn is ignored."""
    variable(input, "input", "softmax", HALF)
    helper = LayerHelper("softmax", name=name)
    return append(
        helper, {"X": input}, {"Out": input.dtype}, {"axis": axis, "use_cudnn": use_cudnn}
    )


@located
def log_softmax(
    input: Variable, axis: int | None = None, dtype: Any = None, name: str | None = None
) -> Variable:
    """log(softmax(input, axis)), axis None meaning -1; dtype casts the input first."""
    from ..base.dtypes import enum_of

    variable(input, "input", "log_softmax", HALF if dtype is None else ())
    helper = LayerHelper("log_softmax", name=name)
    if dtype is not None:
        to = enum_of(dtype)
        attrs = {"in_dtype": int(input.dtype), "out_dtype": int(to)}
        input = append(helper, {"X": input}, {"Out": to}, attrs, kind="cast")
    attrs = {"axis": -1 if axis is None else axis, "use_cudnn": False}
    probability = append(helper, {"X": input}, {"Out": input.dtype}, attrs, kind="softmax")
    return append(helper, {"X": probability}, {"Out": probability.dtype}, kind="log")


@located
def log1p(x: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """log(1 + x), accurate for small x. out: a variable to write instead of a new one."""
    variable(x, "x", "log1p", FLOATS)
    return append(
        LayerHelper("log1p", name=name), {"X": x}, {"Out": x.dtype if out is None else out}
    )


@located
def selu(
    x: Variable, scale: float | None = None, alpha: float | None = None, name: str | None = None
) -> Variable:
    """scale * (x where x > 0, else alpha * (exp(x) - 1)); the defaults keep mean 0 and variance 1
    through layers.
    """
    variable(x, "x", "selu", FLOATS)
    return append(
        LayerHelper("selu", name=name), {"X": x}, {"Out": x.dtype}, {"scale": scale, "alpha": alpha}
    )


@located
def mish(x: Variable, threshold: int = 20, name: str | None = None) -> Variable:
    """x * tanh(softplus(x)); softplus is x above `threshold` and exp(x) below its negative."""
    variable(x, "x", "mish", FLOATS)
    require(threshold > 0, f"mish's threshold is positive, not {threshold}")
    return append(
        LayerHelper("mish", name=name), {"X": x}, {"Out": x.dtype}, {"threshold": threshold}
    )


@located
def pow(x: Variable, factor: Any = 1.0, name: str | None = None) -> Variable:
    """x ** factor; factor: a number or a variable of one element."""
    variable(x, "x", "pow", (*FLOATS, *INTS))
    helper = LayerHelper("pow", name=name)
    if isinstance(factor, Variable):
        factor.stop_gradient = True
        return append(helper, {"X": x, "FactorTensor": factor}, {"Out": x.dtype})
    return append(helper, {"X": x}, {"Out": x.dtype}, {"factor": factor})


@located
def cumsum(
    x: Variable, axis: int | None = None, exclusive: bool | None = None, reverse: bool | None = None
) -> Variable:
    """Cumulative sums along `axis` (default -1); exclusive: without the element itself; reverse:
    from the end.
    """
    typed(x, "x", Variable, "cumsum")
    attrs = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
    return append(LayerHelper("cumsum"), {"X": x}, {"Out": x.dtype}, attrs)


@located
def prelu(x: Variable, mode: str, param_attr: Any = None, name: str | None = None) -> Variable:
    """max(x, 0) + alpha * min(x, 0) with a learned alpha: one for all ("all"), one per channel, or
    one per element of an image.

    Raises FluidValueError for another mode.
    """
    from ..initializer import ConstantInitializer

    variable(x, "x", "prelu", FLOATS)
    require(
        mode in ("all", "channel", "element"),
        f"prelu's mode is 'all', 'channel' or 'element', not {mode!r}",
    )
    helper = LayerHelper("prelu", param_attr=param_attr, name=name)
    shape = {"all": [1], "channel": [1, x.shape[1], 1, 1], "element": [1, *x.shape[1:]]}[mode]
    alpha = helper.create_parameter(
        helper.param_attr, shape, "float32", default_initializer=ConstantInitializer(0.25)
    )
    return append(helper, {"X": x, "Alpha": alpha}, {"Out": x.dtype}, {"mode": mode})


@located
def maxout(x: Variable, groups: int, name: str | None = None, axis: int = 1) -> Variable:
    """Maximum over each group of `groups` neighbouring channels: [N, C, H, W] gives [N, C / groups,
    H, W]; axis 1, 3 or -1.
    """
    variable(x, "x", "maxout", FLOATS)
    require(axis in (1, -1, 3), f"maxout's axis is 1 (NCHW), 3 or -1 (NHWC), not {axis}")
    helper = LayerHelper("maxout", name=name)
    return append(
        helper, {"X": x}, {"Out": x.dtype}, {"groups": groups, "axis": 3 if axis == -1 else axis}
    )


__all__ = [
    "abs",
    "acos",
    "asin",
    "atan",
    "brelu",
    "ceil",
    "cos",
    "cumsum",
    "elu",
    "erf",
    "exp",
    "floor",
    "gelu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_swish",
    "leaky_relu",
    "log",
    "log1p",
    "log_softmax",
    "logsigmoid",
    "maxout",
    "mish",
    "pow",
    "prelu",
    "reciprocal",
    "relu",
    "relu6",
    "round",
    "rsqrt",
    "selu",
    "sigmoid",
    "sign",
    "sin",
    "soft_relu",
    "softmax",
    "softplus",
    "softshrink",
    "softsign",
    "sqrt",
    "square",
    "stanh",
    "swish",
    "tanh",
    "tanh_shrink",
    "thresholded_relu",
]
