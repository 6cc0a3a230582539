"""paddle.nn.functional: activations, element by element or along an axis."""

from __future__ import annotations

from typing import Any

from .... import layers
from ....graph.variable import Variable
from ....layer_helper import LayerHelper
from ....layers import elu, relu, sigmoid, softsign, tanh
from ....layers import logsigmoid as log_sigmoid
from ....layers import tanh_shrink as tanhshrink
from ....layers._build import FLOATS, append, chosen, require, unary


def gelu(x: Variable, approximate: bool = False, name: str | None = None) -> Variable:
    """Element by element: x * Phi(x), Phi the normal distribution function; approximate: by tanh."""
    return layers.gelu(x, approximate)


def hardshrink(x: Variable, threshold: float = 0.5, name: str | None = None) -> Variable:
    """Element by element: x where |x| > threshold, else 0. x: float16 to float64."""
    return layers.hard_shrink(x, threshold)


def hardswish(x: Variable, name: str | None = None) -> Variable:
    """Element by element: x * min(max(x + 3, 0), 6) / 6. x: float16 to float64."""
    return layers.hard_swish(x, name=name)


def leaky_relu(x: Variable, negative_slope: float = 0.01, name: str | None = None) -> Variable:
    """Element by element: max(x, negative_slope * x). x: float16 to float64."""
    return layers.leaky_relu(x, negative_slope, name)


def log_softmax(
    x: Variable, axis: int = -1, dtype: Any = None, name: str | None = None
) -> Variable:
    """log(softmax(x, axis)); dtype casts x first."""
    return layers.log_softmax(x, axis, dtype, name)


def maxout(x: Variable, groups: int, axis: int = 1, name: str | None = None) -> Variable:
    """Maximum over each group of `groups` neighbouring channels: [N, C, H, W] gives [N, C / groups,
    H, W]; axis 1, 3 or -1.
    """
    return layers.maxout(x, groups, axis=axis, name=name)


def relu6(x: Variable, name: str | None = None) -> Variable:
    """Element by element: min(max(x, 0), 6). x: float16 to float64."""
    return layers.relu6(x, name=name)


def selu(
    x: Variable,
    scale: float = 1.0507009873554805,
    alpha: float = 1.6732632423543772,
    name: str | None = None,
) -> Variable:
    """scale * (x where x > 0, else alpha * (exp(x) - 1)); the defaults keep mean 0 and variance 1
    through layers.
    """
    return layers.selu(x, scale, alpha, name)


def softshrink(x: Variable, threshold: float = 0.5, name: str | None = None) -> Variable:
    """Element by element: x - threshold above threshold, x + threshold below -threshold, else 0. x:
    float16 to float64.
    """
    return layers.softshrink(x, threshold)


def swish(x: Variable, name: str | None = None) -> Variable:
    """Element by element: x / (1 + exp(-x)). x: float16 to float64."""
    return layers.swish(x, name=name)


def thresholded_relu(x: Variable, threshold: float = 1.0, name: str | None = None) -> Variable:
    """Element by element: x where x > threshold, else 0. x: float16 to float64."""
    return layers.thresholded_relu(x, threshold)


def softmax(x: Variable, axis: int = -1, dtype: Any = None, name: str | None = None) -> Variable:
    """exp(x) / sum(exp(x), axis); dtype casts x first."""
    return layers.softmax(x if dtype is None else layers.cast(x, dtype), axis=axis, name=name)


def elu_(x: Variable, alpha: float = 1.0, name: str | None = None) -> Variable:
    """elu(x, alpha); a static program has nothing to write in place."""
    return layers.elu(x, alpha, name)


def relu_(x: Variable, name: str | None = None) -> Variable:
    """relu(x); a static program has nothing to write in place."""
    return layers.relu(x, name)


def softmax_(x: Variable, axis: int = -1, dtype: Any = None, name: str | None = None) -> Variable:
    """softmax(x, axis, dtype); a static program has nothing to write in place."""
    return softmax(x, axis, dtype, name)


def hardsigmoid(
    x: Variable, slope: float = 0.1666667, offset: float = 0.5, name: str | None = None
) -> Variable:
    """Element by element: min(max(slope * x + offset, 0), 1). x: float16 to float64."""
    return layers.hard_sigmoid(x, slope, offset, name)


def hardtanh(x: Variable, min: float = -1.0, max: float = 1.0, name: str | None = None) -> Variable:
    """Element by element: x clipped to [min, max]. x: float16 to float64."""
    return layers.brelu(x, float(min), float(max), name)


def silu(x: Variable, name: str | None = None) -> Variable:
    """Element by element: x / (1 + exp(-x)). x: float16 to float64."""
    return unary("silu", x, ("float16", *FLOATS), name)


def mish(x: Variable, name: str | None = None) -> Variable:
    """Element by element: x * tanh(log(1 + exp(x)))."""
    return layers.mish(x, name=name)


def prelu(
    x: Variable, weight: Variable, data_format: str = "NCHW", name: str | None = None
) -> Variable:
    """Element by element: x where x > 0, else weight * x; weight has one element, or one per
    channel.

    data_format: the position of the channels ("NC...": dimension 1, "N...C": the last). Raises
    FluidValueError if a weight of several elements does not fit the channels.
    """
    last = data_format[-1] == "C" and x.ndim > 2
    if tuple(weight.shape) == (1,):
        return append(
            LayerHelper("prelu", name=name),
            {"X": x, "Alpha": weight},
            {"Out": x.dtype},
            {"mode": "all"},
        )
    channels = x.shape[-1 if last else 1]
    fits = tuple(weight.shape) == (channels,)
    require(
        fits,
        f"prelu's weight has 1 or {channels} elements, but {weight.name!r} has shape"
        f" {list(weight.shape)}",
    )
    if last:
        x = layers.transpose(x, [0, x.ndim - 1, *range(1, x.ndim - 1)])
    out = append(
        LayerHelper("prelu", name=name),
        {"X": x, "Alpha": weight},
        {"Out": x.dtype},
        {"mode": "channel"},
    )
    return layers.transpose(out, [0, *range(2, out.ndim), 1]) if last else out


def softplus(
    x: Variable, beta: float = 1, threshold: float = 20, name: str | None = None
) -> Variable:
    """Element by element: log(1 + exp(beta * x)) / beta, and x where beta * x > threshold."""
    if beta == 1 and threshold == 20:  # beyond 20, log(1 + exp(x)) is x in float32
        return layers.softplus(x, name)
    inner = layers.scale(x, float(beta))
    out = layers.scale(layers.softplus(inner), 1.0 / beta)
    linear = layers.greater_than(inner, layers.fill_constant([1], x.dtype, float(threshold)))
    return chosen(linear, x, out, name)


def celu(x: Variable, alpha: float = 1.0, name: str | None = None) -> Variable:
    """Element by element: max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0). Raises FluidValueError
    for alpha 0.
    """
    require(alpha != 0, "celu's alpha is a number other than 0")
    return unary("celu", x, ("float16", *FLOATS), name, {"alpha": float(alpha)})


def glu(x: Variable, axis: int = -1, name: str | None = None) -> Variable:
    """a * sigmoid(b), where a and b are the halves of x along `axis`. Raises FluidValueError for an
    axis that x lacks or that is odd.
    """
    require(
        -x.ndim <= axis < x.ndim, f"glu's axis {axis} is not an axis of {x.name!r} {list(x.shape)}"
    )
    require(
        x.shape[axis] % 2 == 0,
        f"glu halves axis {axis}, which is {x.shape[axis]} long in {x.name!r}",
    )
    a, b = layers.split(x, 2, axis)
    return layers.elementwise_mul(a, layers.sigmoid(b), name=name)


def swiglu(x: Variable, y: Variable | None = None, name: str | None = None) -> Variable:
    """silu(x) * y; without y these are the halves of x along its last axis."""
    return append(LayerHelper("swiglu", name=name), {"x": x, "y": y}, {"out": x.dtype})


def gumbel_softmax(
    x: Variable,
    temperature: float = 1.0,
    hard: bool = False,
    axis: int = -1,
    name: str | None = None,
) -> Variable:
    """softmax((x + g) / temperature, axis), with g from the Gumbel distribution; hard: 1 at the
    maximum, else 0.
    """
    attrs = {"temperature": float(temperature), "hard": hard, "axis": axis}
    return unary("gumbel_softmax", x, ("float16", *FLOATS), name, attrs)


def rrelu(
    x: Variable,
    lower: float = 1.0 / 8.0,
    upper: float = 1.0 / 3.0,
    training: bool = True,
    name: str | None = None,
) -> Variable:
    """x where x >= 0, else a * x, with a random a in [lower, upper) for each element; their mean if
    not `training`.

    Raises FluidValueError unless 0 <= lower <= upper <= 1.
    """
    require(
        0 <= lower <= upper <= 1, f"rrelu takes 0 <= lower <= upper <= 1, not {lower} and {upper}"
    )
    attrs = {"lower": float(lower), "upper": float(upper), "is_test": not training}
    return append(
        LayerHelper("rrelu", name=name),
        {"X": x},
        {"Out": x.dtype, "Noise": x.dtype},
        attrs,
        stop="Noise",
    )[0]


def hardtanh_(
    x: Variable, min: float = -1.0, max: float = 1.0, name: str | None = None
) -> Variable:
    """hardtanh(x, min, max); a static program has nothing to write in place."""
    return hardtanh(x, min, max, name)


def leaky_relu_(x: Variable, negative_slope: float = 0.01, name: str | None = None) -> Variable:
    """leaky_relu(x, negative_slope); a static program has nothing to write in place."""
    return leaky_relu(x, negative_slope, name)


def tanh_(x: Variable, name: str | None = None) -> Variable:
    """tanh(x); a static program has nothing to write in place."""
    return layers.tanh(x, name)


def thresholded_relu_(x: Variable, threshold: float = 1.0, name: str | None = None) -> Variable:
    """thresholded_relu(x, threshold); a static program has nothing to write in place."""
    return thresholded_relu(x, threshold, name)


__all__ = [
    "celu",
    "elu",
    "elu_",
    "gelu",
    "glu",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "log_sigmoid",
    "log_softmax",
    "maxout",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rrelu",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softmax_",
    "softplus",
    "softshrink",
    "softsign",
    "swiglu",
    "swish",
    "tanh",
    "tanh_",
    "tanhshrink",
    "thresholded_relu",
    "thresholded_relu_",
]  # fmt: skip
