"""Arithmetic and logic on variables, and sums, scales and clips."""

from __future__ import annotations

import math
from typing import Any

from ..base.loc import located
from ..errors import ShapeError
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ._build import BOOL, FLOATS, HALF, INTS, REAL, append, require, typed, variable

_NUMBERS = (*HALF, *INTS)


def _arithmetic(
    kind: str, x: Variable, y: Variable, axis: int, act: str | None, name: str | None
) -> Variable:
    helper = LayerHelper(kind, act=act, name=name)
    variable(x, "x", kind, _NUMBERS)
    variable(y, "y", kind, _NUMBERS)
    return helper.append_activation(
        append(helper, {"X": x, "Y": y}, {"Out": x.dtype}, {"axis": axis})
    )


def _logical(
    kind: str, inputs: dict[str, Variable], out: Variable | None, name: str | None
) -> Variable:
    for slot, v in inputs.items():
        variable(v, slot.lower(), kind, BOOL)
    typed(out, "out", (Variable, type(None)), kind)
    return append(LayerHelper(kind, name=name), inputs, {"Out": "bool" if out is None else out})


@located
def elementwise_add(
    x: Variable, y: Variable, axis: int = -1, act: str | None = None, name: str | None = None
) -> Variable:
    """act(x + y), element by element; y is aligned with the dimensions of x from `axis` on (-1: the
    last).
    """
    return _arithmetic("elementwise_add", x, y, axis, act, name)


@located
def elementwise_sub(
    x: Variable, y: Variable, axis: int = -1, act: str | None = None, name: str | None = None
) -> Variable:
    """act(x - y), element by element; y is aligned with the dimensions of x from `axis` on (-1: the
    last).
    """
    return _arithmetic("elementwise_sub", x, y, axis, act, name)


@located
def elementwise_mul(
    x: Variable, y: Variable, axis: int = -1, act: str | None = None, name: str | None = None
) -> Variable:
    """act(x * y), element by element; y is aligned with the dimensions of x from `axis` on (-1: the
    last).
    """
    return _arithmetic("elementwise_mul", x, y, axis, act, name)


@located
def elementwise_div(
    x: Variable, y: Variable, axis: int = -1, act: str | None = None, name: str | None = None
) -> Variable:
    """act(x / y, rounded towards zero for integers), element by element; y is aligned with the
    dimensions of x from `axis` on (-1: the last).
    """
    return _arithmetic("elementwise_div", x, y, axis, act, name)


@located
def elementwise_max(
    x: Variable, y: Variable, axis: int = -1, act: str | None = None, name: str | None = None
) -> Variable:
    """act(max(x, y)), element by element; y is aligned with the dimensions of x from `axis` on (-1:
    the last).
    """
    return _arithmetic("elementwise_max", x, y, axis, act, name)


@located
def elementwise_min(
    x: Variable, y: Variable, axis: int = -1, act: str | None = None, name: str | None = None
) -> Variable:
    """act(min(x, y)), element by element; y is aligned with the dimensions of x from `axis` on (-1:
    the last).
    """
    return _arithmetic("elementwise_min", x, y, axis, act, name)


@located
def elementwise_pow(
    x: Variable, y: Variable, axis: int = -1, act: str | None = None, name: str | None = None
) -> Variable:
    """act(x ** y), element by element; y is aligned with the dimensions of x from `axis` on (-1:
    the last).
    """
    return _arithmetic("elementwise_pow", x, y, axis, act, name)


@located
def elementwise_mod(
    x: Variable, y: Variable, axis: int = -1, act: str | None = None, name: str | None = None
) -> Variable:
    """act(x mod y, with the sign of y), element by element; y is aligned with the dimensions of x
    from `axis` on (-1: the last).
    """
    return _arithmetic("elementwise_mod", x, y, axis, act, name)


@located
def elementwise_floordiv(
    x: Variable, y: Variable, axis: int = -1, act: str | None = None, name: str | None = None
) -> Variable:
    """act(x / y rounded down), element by element; y is aligned with the dimensions of x from
    `axis` on (-1: the last).
    """
    return _arithmetic("elementwise_floordiv", x, y, axis, act, name)


@located
def logical_and(
    x: Variable, y: Variable, out: Variable | None = None, name: str | None = None
) -> Variable:
    """x and y, element by element, for bool variables. out: a variable to write instead of a new
    one.
    """
    return _logical("logical_and", {"X": x, "Y": y}, out, name)


@located
def logical_or(
    x: Variable, y: Variable, out: Variable | None = None, name: str | None = None
) -> Variable:
    """x or y, element by element, for bool variables. out: a variable to write instead of a new
    one.
    """
    return _logical("logical_or", {"X": x, "Y": y}, out, name)


@located
def logical_xor(
    x: Variable, y: Variable, out: Variable | None = None, name: str | None = None
) -> Variable:
    """one of x and y, element by element, for bool variables. out: a variable to write instead of a
    new one.
    """
    return _logical("logical_xor", {"X": x, "Y": y}, out, name)


@located
def logical_not(x: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """not x, element by element, for bool variables. out: a variable to write instead of a new one."""
    return _logical("logical_not", {"X": x}, out, name)


@located
def elementwise_equal(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """x == y, element by element: bool."""
    helper = LayerHelper("elementwise_equal", name=name)
    out = append(helper, {"X": [x], "Y": [y]}, {"Out": "bool"}, kind="equal")
    out.stop_gradient = True
    return out


@located
def scale(
    x: Variable,
    scale: Any = 1.0,
    bias: float = 0.0,
    bias_after_scale: bool = True,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """act(scale * x + bias), or act(scale * (x + bias)); scale: a number or a variable of one
    element.
    """
    variable(x, "x", "scale", (*HALF, "int8", "int16", "int32", "int64", "uint8"))
    helper = LayerHelper("scale", act=act, name=name)
    inputs, attrs = {"X": [x]}, {"bias": float(bias), "bias_after_scale": bias_after_scale}
    if isinstance(scale, Variable):
        inputs["ScaleTensor"] = [scale]
    else:
        attrs["scale"] = float(scale)
    return helper.append_activation(append(helper, inputs, {"Out": x.dtype}, attrs))


@located
def clip(x: Variable, min: float, max: float, name: str | None = None) -> Variable:
    """min(max(x, min), max), element by element."""
    variable(x, "x", "clip", HALF)
    return append(
        LayerHelper("clip", name=name), {"X": x}, {"Out": x.dtype}, {"min": min, "max": max}
    )


@located
def clamp(
    input: Variable,
    min: Any = None,
    max: Any = None,
    output: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """clip whose bounds may be missing, or variables of one element. output: a variable to write."""
    require(min is not None or max is not None, "clamp needs min or max")
    variable(input, "input", "clamp", (*FLOATS, *INTS))
    helper = LayerHelper("clamp", name=name)
    inputs: dict[str, Any] = {"X": input}
    attrs = {"min": -math.inf, "max": math.inf}
    for what, bound in (("min", min), ("max", max)):
        if isinstance(bound, Variable):
            bound.stop_gradient = True
            inputs[what.title()] = bound  # the attribute stays infinite: the op takes the variable
        elif bound is not None:
            attrs[what] = float(typed(bound, what, (*REAL, Variable), "clamp"))
    return append(
        helper, inputs, {"Out": input.dtype if output is None else output}, attrs, kind="clip"
    )


@located
def clip_by_norm(x: Variable, max_norm: float, name: str | None = None) -> Variable:
    """x * max_norm / |x| where the Euclidean norm |x| exceeds max_norm, else x."""
    variable(x, "x", "clip_by_norm", ("float32",))
    typed(max_norm, "max_norm", float, "clip_by_norm")
    require(max_norm > 0, f"clip_by_norm's max_norm is above 0, not {max_norm}", ShapeError)
    return append(
        LayerHelper("clip_by_norm", name=name), {"X": x}, {"Out": x.dtype}, {"max_norm": max_norm}
    )


@located
def sum(x: Any) -> Variable:
    """The sum of a list of variables of one shape, element by element."""
    typed(x, "x", (Variable, tuple, list), "sum")
    for i, v in enumerate(x if isinstance(x, list | tuple) else []):
        variable(v, f"x[{i}]", "sum", (*FLOATS, *INTS))
    helper = LayerHelper("sum", x=x)
    return append(helper, {"X": x}, {"Out": helper.input_dtype("x")}, {"use_mkldnn": False})


@located
def sums(input: Any, out: Variable | None = None) -> Variable:
    """The sum of a list of variables, as sum. out: a variable to write instead of a new one."""
    typed(input, "input", (Variable, tuple, list), "sums")
    for i, v in enumerate(input if isinstance(input, list | tuple) else [input]):
        variable(v, f"input[{i}]", "sums", (*FLOATS, *INTS))
    helper = LayerHelper("sum", input=input)
    return append(
        helper,
        {"X": input},
        {"Out": helper.input_dtype() if out is None else out},
        {"use_mkldnn": False},
    )


@located
def allclose(
    input: Variable,
    other: Variable,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
    name: str | None = None,
) -> Variable:
    """Whether |input - other| <= atol + rtol * |other| everywhere: one bool. equal_nan: NaN equals
    NaN.
    """
    for what, v in (("input", input), ("other", other)):
        typed(v, what, Variable, "allclose")
    for what, bound in (("rtol", rtol), ("atol", atol)):
        typed(bound, what, REAL, "allclose")
    typed(equal_nan, "equal_nan", bool, "allclose")
    attrs = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan}
    return append(
        LayerHelper("allclose", name=name), {"Input": input, "Other": other}, {"Out": "bool"}, attrs
    )


@located
def dist(x: Variable, y: Variable, p: float = 2) -> Variable:
    """(sum |x - y| ** p) ** (1 / p); p may be 0 (how many differ), inf or -inf."""
    for what, v in (("x", x), ("y", y)):
        variable(v, what, "dist", FLOATS)
    typed(p, "p", (*REAL, int), "dist")
    return append(LayerHelper("dist"), {"X": [x], "Y": [y]}, {"Out": x.dtype}, {"p": float(p)})


@located
def kron(
    x: Variable, y: Variable, out: Variable | None = None, name: str | None = None
) -> Variable:
    """Kronecker product: every element of x times the whole of y. out: a variable to write."""
    for what, v in (("x", x), ("y", y)):
        variable(v, what, "kron", _NUMBERS)
    return append(
        LayerHelper("kron", name=name), {"X": x, "Y": y}, {"Out": x.dtype if out is None else out}
    )


@located
def cross(input: Variable, other: Variable, dim: int | None = None) -> Variable:
    """Cross products of the vectors along `dim` (default: the first dimension of size 3)."""
    for what, v in (("input", input), ("other", other)):
        typed(v, what, Variable, "cross")
    return append(
        LayerHelper("cross"), {"X": input, "Y": other}, {"Out": input.dtype}, {"dim": dim}
    )


@located
def has_inf(x: Variable) -> Variable:
    """Whether x holds an infinity: shape [1], of x's dtype."""
    typed(x, "x", Variable, "has_inf")
    return append(LayerHelper("isinf"), {"X": x}, {"Out": x.dtype})


@located
def has_nan(x: Variable) -> Variable:
    """Whether x holds a NaN: shape [1], of x's dtype."""
    typed(x, "x", Variable, "has_nan")
    return append(LayerHelper("isnan"), {"X": x}, {"Out": x.dtype})


@located
def isfinite(x: Variable) -> Variable:
    """Whether x holds neither NaN nor infinity: one bool."""
    variable(x, "x", "isfinite", (*FLOATS, *INTS))
    return append(LayerHelper("isfinite"), {"X": x}, {"Out": "bool"})


__all__ = [
    "allclose",
    "clamp",
    "clip",
    "clip_by_norm",
    "cross",
    "dist",
    "elementwise_add",
    "elementwise_div",
    "elementwise_equal",
    "elementwise_floordiv",
    "elementwise_max",
    "elementwise_min",
    "elementwise_mod",
    "elementwise_mul",
    "elementwise_pow",
    "elementwise_sub",
    "has_inf",
    "has_nan",
    "isfinite",
    "kron",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "scale",
    "sum",
    "sums",
]
