"""Functions of one variable, element by element: most come out of a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..layer_helper import LayerHelper
from ..variable import Variable
from ._build import FLOATS, HALF, INTS, append, named, require, typed, variable

# name: formula, dtypes, parameters after x
_NUMBERS = (*HALF, *INTS)
_TABLE: dict[str, tuple[str, tuple[str, ...], str]] = {
    "abs": ("|x|", _NUMBERS, "name=None"),
    "acos": ("arccos(x)", HALF, "name=None"),
    "asin": ("arcsin(x)", HALF, "name=None"),
    "atan": ("arctan(x)", HALF, "name=None"),
    "brelu": ("min(max(x, t_min), t_max)", HALF, "t_min=0.0, t_max=24.0, name=None"),
    "ceil": ("x rounded up", HALF, "name=None"),
    "cos": ("cos(x)", HALF, "name=None"),
    "elu": ("x where x > 0, else alpha * (exp(x) - 1)", HALF, "alpha=1.0, name=None"),
    "erf": ("2 / sqrt(pi) * integral of exp(-t^2) from 0 to x", (), ""),
    "exp": ("exp(x)", _NUMBERS, "name=None"),
    "floor": ("x rounded down", HALF, "name=None"),
    "gelu": ("x * Phi(x), Phi the normal distribution function; approximate: by tanh", (), "approximate=False"),
    "hard_shrink": ("x where |x| > threshold (default 0.5), else 0", HALF, "threshold=None"),
    "hard_sigmoid": ("min(max(slope * x + offset, 0), 1)", HALF, "slope=0.2, offset=0.5, name=None"),
    "hard_swish": (
        "x * min(max(x + offset, 0), threshold) / scale",
        HALF,
        "threshold=6.0, scale=6.0, offset=3.0, name=None",
    ),
    "leaky_relu": ("max(x, alpha * x)", HALF, "alpha=0.02, name=None"),
    "log": ("natural logarithm of x", FLOATS, "name=None"),
    "logsigmoid": ("log(1 / (1 + exp(-x)))", HALF, "name=None"),
    "reciprocal": ("1 / x", HALF, "name=None"),
    "relu": ("max(x, 0)", HALF, "name=None"),
    "relu6": ("min(max(x, 0), threshold)", HALF, "threshold=6.0, name=None"),
    "round": ("x rounded to the nearest integer, halves away from zero", HALF, "name=None"),
    "rsqrt": ("1 / sqrt(x)", HALF, "name=None"),
    "sigmoid": ("1 / (1 + exp(-x))", HALF, "name=None"),
    "sign": ("-1, 0 or 1", HALF, ""),
    "sin": ("sin(x)", HALF, "name=None"),
    "soft_relu": ("log(1 + exp(min(max(x, -threshold), threshold)))", HALF, "threshold=40.0, name=None"),
    "softplus": ("log(1 + exp(x))", HALF, "name=None"),
    "softshrink": ("x - alpha above alpha (default 0.5), x + alpha below -alpha, else 0", HALF, "alpha=None"),
    "softsign": ("x / (1 + |x|)", HALF, "name=None"),
    "sqrt": ("square root of x", HALF, "name=None"),
    "square": ("x * x", _NUMBERS, "name=None"),
    "stanh": ("scale_b * tanh(scale_a * x)", HALF, "scale_a=0.67, scale_b=1.7159, name=None"),
    "swish": ("x / (1 + exp(-beta * x))", HALF, "beta=1.0, name=None"),
    "tanh": ("tanh(x)", HALF, "name=None"),
    "tanh_shrink": ("x - tanh(x)", HALF, "name=None"),
    "thresholded_relu": ("x where x > threshold (default 1), else 0", HALF, "threshold=None"),
}
_ATTRS: dict[str, dict[str, str]] = {"softshrink": {"alpha": "lambda"}}


def _elementwise(kind: str, formula: str, dtypes: tuple[str, ...], parameters: str) -> Callable[..., Variable]:
    renamed = _ATTRS.get(kind, {})

    def layer(*args: Any, **kwargs: Any) -> Variable:
        # binding takes longer than all the rest, and nearly every call is relu(x)
        given = {"x": args[0]} if len(args) == 1 and not kwargs else signature.bind(*args, **kwargs).arguments
        values = {**defaults, **given}
        x = variable(values.pop("x"), "x", kind, dtypes)
        helper = LayerHelper(kind, name=values.pop("name", None))
        attrs = {renamed.get(n, n): v for n, v in values.items()}
        return append(helper, {"X": x}, {"Out": x.dtype}, attrs)

    doc = f"Element by element: {formula}."
    if dtypes:
        doc += f"\n\nx: {', '.join(dtypes)}; anything else raises FluidTypeError."
    named(layer, kind, doc, f"x, {parameters}".rstrip(", "))
    layer.__module__ = __name__
    signature = layer.__signature__  # type: ignore[attr-defined]
    defaults = {p.name: p.default for p in signature.parameters.values() if p.default is not p.empty}
    return layer


for _kind, _row in _TABLE.items():
    globals()[_kind] = _elementwise(_kind, *_row)


def softmax(input: Variable, use_cudnn: bool = False, name: str | None = None, axis: int = -1) -> Variable:
    """exp(x) / sum(exp(x), axis), shifted by the maximum. use_cudnn is a hint without meaning here."""
    variable(input, "input", "softmax", HALF)
    helper = LayerHelper("softmax", name=name)
    return append(helper, {"X": input}, {"Out": input.dtype}, {"axis": axis, "use_cudnn": use_cudnn})


def log_softmax(input: Variable, axis: int | None = None, dtype: Any = None, name: str | None = None) -> Variable:
    """log(softmax(input, axis)), axis None meaning -1; dtype casts the input first."""
    from ..dtypes import enum_of

    variable(input, "input", "log_softmax", HALF if dtype is None else ())
    helper = LayerHelper("log_softmax", name=name)
    if dtype is not None:
        to = enum_of(dtype)
        attrs = {"in_dtype": int(input.dtype), "out_dtype": int(to)}
        input = append(helper, {"X": input}, {"Out": to}, attrs, kind="cast")
    attrs = {"axis": -1 if axis is None else axis, "use_cudnn": False}
    probability = append(helper, {"X": input}, {"Out": input.dtype}, attrs, kind="softmax")
    return append(helper, {"X": probability}, {"Out": probability.dtype}, kind="log")


def log1p(x: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """log(1 + x), accurate for small x. out: a variable to write instead of a new one."""
    variable(x, "x", "log1p", FLOATS)
    return append(LayerHelper("log1p", name=name), {"X": x}, {"Out": x.dtype if out is None else out})


def selu(x: Variable, scale: float | None = None, alpha: float | None = None, name: str | None = None) -> Variable:
    """scale * (x where x > 0, else alpha * (exp(x) - 1)); the defaults keep mean 0 and variance 1 through layers."""
    variable(x, "x", "selu", FLOATS)
    return append(LayerHelper("selu", name=name), {"X": x}, {"Out": x.dtype}, {"scale": scale, "alpha": alpha})


def mish(x: Variable, threshold: int = 20, name: str | None = None) -> Variable:
    """x * tanh(softplus(x)); softplus is x above `threshold` and exp(x) below its negative."""
    variable(x, "x", "mish", FLOATS)
    require(threshold > 0, f"mish's threshold is positive, not {threshold}")
    return append(LayerHelper("mish", name=name), {"X": x}, {"Out": x.dtype}, {"threshold": threshold})


def pow(x: Variable, factor: Any = 1.0, name: str | None = None) -> Variable:
    """x ** factor; factor: a number or a variable of one element."""
    variable(x, "x", "pow", (*FLOATS, *INTS))
    helper = LayerHelper("pow", name=name)
    if isinstance(factor, Variable):
        factor.stop_gradient = True
        return append(helper, {"X": x, "FactorTensor": factor}, {"Out": x.dtype})
    return append(helper, {"X": x}, {"Out": x.dtype}, {"factor": factor})


def cumsum(
    x: Variable, axis: int | None = None, exclusive: bool | None = None, reverse: bool | None = None
) -> Variable:
    """Sums of everything up to each element along `axis` (default -1); exclusive: before it; reverse: from the end."""
    typed(x, "x", Variable, "cumsum")
    attrs = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
    return append(LayerHelper("cumsum"), {"X": x}, {"Out": x.dtype}, attrs)


def prelu(x: Variable, mode: str, param_attr: Any = None, name: str | None = None) -> Variable:
    """max(x, 0) + alpha * min(x, 0) with a learned alpha: one ("all"), one a channel, or one an element of an image.

    Raises FluidValueError for another mode.
    """
    from ..initializer import ConstantInitializer

    variable(x, "x", "prelu", FLOATS)
    require(mode in ("all", "channel", "element"), f"prelu's mode is 'all', 'channel' or 'element', not {mode!r}")
    helper = LayerHelper("prelu", param_attr=param_attr, name=name)
    shape = {"all": [1], "channel": [1, x.shape[1], 1, 1], "element": [1, *x.shape[1:]]}[mode]
    alpha = helper.create_parameter(helper.param_attr, shape, "float32", default_initializer=ConstantInitializer(0.25))
    return append(helper, {"X": x, "Alpha": alpha}, {"Out": x.dtype}, {"mode": mode})


def maxout(x: Variable, groups: int, name: str | None = None, axis: int = 1) -> Variable:
    """Maximum over each group of `groups` neighbouring channels: [N, C, H, W] gives [N, C / groups, H, W]; axis 1, 3
    or -1.
    """
    variable(x, "x", "maxout", FLOATS)
    require(axis in (1, -1, 3), f"maxout's axis is 1 (NCHW), 3 or -1 (NHWC), not {axis}")
    helper = LayerHelper("maxout", name=name)
    return append(helper, {"X": x}, {"Out": x.dtype}, {"groups": groups, "axis": 3 if axis == -1 else axis})


__all__ = [*_TABLE, "cumsum", "log1p", "log_softmax", "maxout", "mish", "pow", "prelu", "selu", "softmax"]
