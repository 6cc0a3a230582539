"""Arithmetic, comparison and logic on variables, and sums, scales and clips."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..layer_helper import LayerHelper
from ..variable import Variable
from ._build import BOOL, FLOATS, HALF, INTS, append, named, require, typed, variable

_NUMBERS = (*HALF, *INTS)
_ARITHMETIC = {
    "elementwise_add": ("x + y", _NUMBERS),
    "elementwise_sub": ("x - y", _NUMBERS),
    "elementwise_mul": ("x * y", _NUMBERS),
    "elementwise_div": ("x / y, rounded towards zero for integers", _NUMBERS),
    "elementwise_max": ("max(x, y)", _NUMBERS),
    "elementwise_min": ("min(x, y)", _NUMBERS),
    "elementwise_pow": ("x ** y", _NUMBERS),
    "elementwise_mod": ("x mod y, with the sign of y", _NUMBERS),
    "elementwise_floordiv": ("x / y rounded down", _NUMBERS),
}
_COMPARE = {
    "equal": "x == y", "not_equal": "x != y", "less_than": "x < y", "less_equal": "x <= y", "greater_than": "x > y",
    "greater_equal": "x >= y",
}  # fmt: skip
_LOGIC = {"logical_and": "x and y", "logical_or": "x or y", "logical_xor": "one of x and y", "logical_not": "not x"}


def _arithmetic(kind: str, formula: str, dtypes: tuple[str, ...]) -> Callable[..., Variable]:
    def layer(x: Variable, y: Variable, axis: int = -1, act: str | None = None, name: str | None = None) -> Variable:
        helper = LayerHelper(kind, act=act, name=name)
        variable(x, "x", kind, dtypes)
        variable(y, "y", kind, dtypes)
        return helper.append_activation(append(helper, {"X": x, "Y": y}, {"Out": x.dtype}, {"axis": axis}))

    doc = (
        f"act({formula}), element by element; y's dimensions are matched with those of x from `axis` on (-1: the last "
        f"ones) and broadcast over the others.\n\nx, y: {', '.join(dtypes)}; anything else raises FluidTypeError."
    )
    layer.__module__ = __name__
    return named(layer, kind, doc, "x, y, axis=-1, act=None, name=None")


def _compare(kind: str, formula: str) -> Callable[..., Variable]:
    def run(x: Variable, y: Variable, cond: Variable | None, attrs: dict[str, Any]) -> Variable:
        variable(x, "x", kind, (*FLOATS, *INTS))
        variable(y, "y", kind, (*FLOATS, *INTS))
        typed(cond, "cond", (Variable, type(None)), kind)
        out = append(LayerHelper(kind), {"X": [x], "Y": [y]}, {"Out": "bool" if cond is None else cond}, attrs)
        if cond is None:
            out.stop_gradient = True
        return out

    if kind == "less_than":

        def layer(x: Variable, y: Variable, force_cpu: bool | None = None, cond: Variable | None = None) -> Variable:
            return run(x, y, cond, {"force_cpu": force_cpu})

    else:

        def layer(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:  # type: ignore[misc]
            return run(x, y, cond, {})

    doc = f"{formula}, element by element, y broadcast to x: bool. cond: a variable to write instead of a new one."
    parameters = "x, y, force_cpu=None, cond=None" if kind == "less_than" else "x, y, cond=None"
    layer.__module__ = __name__
    return named(layer, kind, doc + (" force_cpu: an attribute of the op." if kind == "less_than" else ""), parameters)


def _logical(kind: str, formula: str) -> Callable[..., Variable]:
    def run(inputs: dict[str, Variable], out: Variable | None, name: str | None) -> Variable:
        for slot, v in inputs.items():
            variable(v, slot.lower(), kind, BOOL)
        typed(out, "out", (Variable, type(None)), kind)
        return append(LayerHelper(kind, name=name), inputs, {"Out": "bool" if out is None else out})

    if kind == "logical_not":

        def layer(x: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
            return run({"X": x}, out, name)

    else:

        def layer(x: Variable, y: Variable, out: Variable | None = None, name: str | None = None) -> Variable:  # type: ignore[misc]
            return run({"X": x, "Y": y}, out, name)

    doc = f"{formula}, element by element, for bool variables. out: a variable to write instead of a new one."
    layer.__module__ = __name__
    return named(layer, kind, doc, "x, out=None, name=None" if kind == "logical_not" else "x, y, out=None, name=None")


for _kind, (_formula, _dtypes) in _ARITHMETIC.items():
    globals()[_kind] = _arithmetic(_kind, _formula, _dtypes)
for _kind, _formula in _COMPARE.items():
    globals()[_kind] = _compare(_kind, _formula)
for _kind, _formula in _LOGIC.items():
    globals()[_kind] = _logical(_kind, _formula)


def elementwise_equal(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """x == y, element by element: bool."""
    helper = LayerHelper("elementwise_equal", name=name)
    out = append(helper, {"X": [x], "Y": [y]}, {"Out": "bool"}, kind="equal")
    out.stop_gradient = True
    return out


def scale(
    x: Variable,
    scale: Any = 1.0,
    bias: float = 0.0,
    bias_after_scale: bool = True,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """act(scale * x + bias), or act(scale * (x + bias)); scale: a number or a variable of one element."""
    variable(x, "x", "scale", (*HALF, "int8", "int16", "int32", "int64", "uint8"))
    helper = LayerHelper("scale", act=act, name=name)
    inputs, attrs = {"X": [x]}, {"bias": float(bias), "bias_after_scale": bias_after_scale}
    if isinstance(scale, Variable):
        inputs["ScaleTensor"] = [scale]
    else:
        attrs["scale"] = float(scale)
    return helper.append_activation(append(helper, inputs, {"Out": x.dtype}, attrs))


def clip(x: Variable, min: float, max: float, name: str | None = None) -> Variable:
    """min(max(x, min), max), element by element."""
    variable(x, "x", "clip", HALF)
    return append(LayerHelper("clip", name=name), {"X": x}, {"Out": x.dtype}, {"min": min, "max": max})


def clamp(
    input: Variable, min: Any = None, max: Any = None, output: Variable | None = None, name: str | None = None
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
            attrs[what] = float(bound)
    return append(helper, inputs, {"Out": input.dtype if output is None else output}, attrs, kind="clip")


def clip_by_norm(x: Variable, max_norm: float, name: str | None = None) -> Variable:
    """x * max_norm / |x| where the Euclidean norm |x| exceeds max_norm, else x."""
    variable(x, "x", "clip_by_norm", ("float32",))
    typed(max_norm, "max_norm", float, "clip_by_norm")
    return append(LayerHelper("clip_by_norm", name=name), {"X": x}, {"Out": x.dtype}, {"max_norm": max_norm})


def sum(x: Any) -> Variable:
    """The sum of a list of variables of one shape, element by element."""
    typed(x, "x", (Variable, tuple, list), "sum")
    for i, v in enumerate(x if isinstance(x, list | tuple) else []):
        variable(v, f"x[{i}]", "sum", (*FLOATS, *INTS))
    helper = LayerHelper("sum", x=x)
    return append(helper, {"X": x}, {"Out": helper.input_dtype("x")}, {"use_mkldnn": False})


def sums(input: Any, out: Variable | None = None) -> Variable:
    """The sum of a list of variables, as sum. out: a variable to write instead of a new one."""
    typed(input, "input", (Variable, tuple, list), "sums")
    for i, v in enumerate(input if isinstance(input, list | tuple) else [input]):
        variable(v, f"input[{i}]", "sums", (*FLOATS, *INTS))
    helper = LayerHelper("sum", input=input)
    return append(helper, {"X": input}, {"Out": helper.input_dtype() if out is None else out}, {"use_mkldnn": False})


def allclose(
    input: Variable,
    other: Variable,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
    name: str | None = None,
) -> Variable:
    """Whether |input - other| <= atol + rtol * |other| everywhere: one bool. equal_nan: NaN equals NaN."""
    for what, v in (("input", input), ("other", other)):
        typed(v, what, Variable, "allclose")
    attrs = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan}
    return append(LayerHelper("allclose", name=name), {"Input": input, "Other": other}, {"Out": "bool"}, attrs)


def dist(x: Variable, y: Variable, p: float = 2) -> Variable:
    """(sum |x - y| ** p) ** (1 / p); p may be 0 (how many differ), inf or -inf."""
    for what, v in (("x", x), ("y", y)):
        variable(v, what, "dist", FLOATS)
    return append(LayerHelper("dist"), {"X": [x], "Y": [y]}, {"Out": x.dtype}, {"p": float(p)})


def kron(x: Variable, y: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Kronecker product: every element of x times the whole of y. out: a variable to write."""
    for what, v in (("x", x), ("y", y)):
        variable(v, what, "kron", _NUMBERS)
    return append(LayerHelper("kron", name=name), {"X": x, "Y": y}, {"Out": x.dtype if out is None else out})


def cross(input: Variable, other: Variable, dim: int | None = None) -> Variable:
    """Cross products of the vectors along `dim` (default: the first dimension of size 3)."""
    for what, v in (("input", input), ("other", other)):
        typed(v, what, Variable, "cross")
    return append(LayerHelper("cross"), {"X": input, "Y": other}, {"Out": input.dtype}, {"dim": dim})


def has_inf(x: Variable) -> Variable:
    """Whether x holds an infinity: shape [1], of x's dtype."""
    typed(x, "x", Variable, "has_inf")
    return append(LayerHelper("isinf"), {"X": x}, {"Out": x.dtype})


def has_nan(x: Variable) -> Variable:
    """Whether x holds a NaN: shape [1], of x's dtype."""
    typed(x, "x", Variable, "has_nan")
    return append(LayerHelper("isnan"), {"X": x}, {"Out": x.dtype})


def isfinite(x: Variable) -> Variable:
    """Whether x holds neither NaN nor infinity: one bool."""
    variable(x, "x", "isfinite", (*FLOATS, *INTS))
    return append(LayerHelper("isfinite"), {"X": x}, {"Out": "bool"})


__all__ = [
    *_ARITHMETIC,
    *_COMPARE,
    *_LOGIC,
    "allclose",
    "clamp",
    "clip",
    "clip_by_norm",
    "cross",
    "dist",
    "elementwise_equal",
    "has_inf",
    "has_nan",
    "isfinite",
    "kron",
    "scale",
    "sum",
    "sums",
]
