"""Shared parts of the layer functions: argument checks, appending one op, integer lists with
variables.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..base.dtypes import VarType, enum_of, name_of
from ..errors import ArgumentError, FluidTypeError, FluidValueError, ShapeError
from ..graph.variable import Variable
from ..layer_helper import LayerHelper

HALF = ("float16", "float32", "float64")
FLOATS = ("float32", "float64")
REAL = (float, np.floating)  # Paddle's float dtypes
INTS = ("int32", "int64")
BOOL = ("bool",)


def _said(kinds: Any) -> str:
    many = kinds if isinstance(kinds, tuple) else (kinds,)
    return " or ".join("None" if k is type(None) else k.__name__ for k in many)


def typed(value: Any, what: str, kinds: Any, layer: str) -> Any:
    """`value`, if it is of these types. Raises ArgumentError naming layer and argument otherwise."""
    if not isinstance(value, kinds):
        raise ArgumentError(f"{layer}'s {what} is a {_said(kinds)}, not {value!r}" if not isinstance(value, Variable)
                            else f"{layer}'s {what} is a {_said(kinds)}, not the variable {value.name!r}")  # fmt: skip
    return value


def variable(value: Any, what: str, layer: str, dtypes: Iterable[str] = ()) -> Variable:
    """`value`, if it is a Variable of one of these dtypes (default: any). Raises FluidTypeError
    otherwise.
    """
    typed(value, what, Variable, layer)
    if dtypes and value.plain.dtype not in dtypes:
        raise FluidTypeError(
            f"{layer}'s {what} is of dtype {', '.join(dtypes)}, but variable {value.name!r} is"
            f" {value.desc.dtype}"
        )
    return value


def dtype_in(dtype: Any, what: str, layer: str, dtypes: Iterable[str]) -> str:
    """The name of `dtype`, if it is one of these. Raises FluidTypeError otherwise."""
    name = name_of(dtype)
    if name not in dtypes:
        raise FluidTypeError(f"{layer}'s {what} is one of {', '.join(dtypes)}, not {name}")
    return name


def require(ok: bool, text: str, kind: type[FluidValueError] = FluidValueError) -> None:
    """Raises an error of this kind with this text unless `ok`."""
    if not ok:
        raise kind(text)


def shapes_fit(ok: bool, text: str) -> None:
    """Raises ShapeError with this text unless `ok`."""
    require(ok, text, ShapeError)


def one_of(value: Any, what: str, layer: str, known: Sequence[Any]) -> None:
    """Raises FluidValueError unless `value` is one of the known values, ArgumentError if its type
    differs from theirs.
    """
    text = f"{layer}'s {what} is {' or '.join(map(repr, known))}, not {value!r}"
    if not isinstance(value, tuple({type(k) for k in known})):
        raise ArgumentError(text)
    require(value in known, text)


def append(
    helper: LayerHelper,
    inputs: Mapping[str, Any],
    outs: Mapping[str, Any],
    attrs: Mapping[str, Any] | None = None,
    *,
    kind: str | None = None,
    stop: str = "",
) -> Any:
    """Append an op and return the variable of its output (a tuple if there are several).

    outs: slot -> dtype of a new temporary, made in this order, or the Variable to write. kind: the
    op type; default: the helper's. stop: slots of new outputs through which no gradient flows.
    """
    made: dict[str, Variable] = {}
    for slot, out in outs.items():
        new = not isinstance(out, Variable)
        if isinstance(out, numbers.Number) and not isinstance(out, VarType):
            raise ArgumentError(f"{helper.layer_type} writes a variable, not {out!r}")
        made[slot] = (
            helper.create_variable_for_type_inference(out, slot in stop.split()) if new else out
        )
    given = {slot: value for slot, value in inputs.items() if value is not None}
    helper.append_op(type=kind or helper.layer_type, inputs=given, outputs=made, attrs=attrs or {})
    values = tuple(made.values())
    return values[0] if len(values) == 1 else values


def unary(
    kind: str, x: Variable, dtypes: Iterable[str] = (), name: str | None = None, attrs: Mapping[str, Any] | None = None,
    out: Any = None,
) -> Variable:  # fmt: skip
    """Append the op `kind` of one variable `x`. out: the dtype of the output; default: x's."""
    variable(x, "x", kind, dtypes)
    return append(LayerHelper(kind, name=name), {"X": x}, {"Out": out or x.dtype}, attrs)


def chosen(condition: Variable, x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Append an op `where` of three variables of one shape: x where the condition is true, else y."""
    return append(
        LayerHelper("where", name=name), {"Condition": condition, "X": x, "Y": y}, {"Out": x.dtype}
    )


def whole(value: Any, what: str, layer: str) -> int:
    """`value`, if it is an integer (or NumPy's). Raises ArgumentError otherwise; nothing is
    rounded.
    """
    if not isinstance(value, numbers.Integral):
        raise ArgumentError(f"{layer}'s {what} is an integer, not {value!r}")
    return int(value)


def sized(shape: Any, layer: str) -> None:
    """Raises ArgumentError for a shape without dimensions."""
    if isinstance(shape, list | tuple) and not shape:
        raise ArgumentError(
            f"{layer}'s shape has at least one dimension; [1] is that of a single number"
        )


def size_list(value: Any, n: int, what: str, layer: str) -> list[int]:
    """`n` integers from one integer or a list of n. Raises FluidValueError for another number of
    them, ArgumentError for anything else.
    """
    if isinstance(value, numbers.Integral):
        return [int(value)] * n
    text = f"{layer}'s {what} is an integer or a list of {n}, not {value!r}"
    if not (
        isinstance(value, list | tuple) and all(isinstance(v, numbers.Integral) for v in value)
    ):
        raise ArgumentError(text)
    require(len(value) == n, text)
    return [int(v) for v in value]


def holds_variable(values: Any) -> bool:
    return isinstance(values, list | tuple) and any(isinstance(v, Variable) for v in values)


def tensors(helper: LayerHelper, values: Iterable[Any], dtype: str = "int32") -> list[Variable]:
    """Each integer of a list as a fill_constant on the CPU; variables are kept, with their gradient
    stopped.
    """
    result = []
    for v in values:
        if not isinstance(v, Variable):
            out = helper.create_variable_for_type_inference(dtype)
            attrs = {
                "shape": [1],
                "dtype": int(enum_of(dtype)),
                "value": float(v),
                "str_value": str(int(v)),
                "force_cpu": True,
            }
            v = append(LayerHelper("fill_constant"), {}, {"Out": out}, attrs)
        v.stop_gradient = True
        result.append(v)
    return result


def known_ints(values: Iterable[Any]) -> list[int]:
    """A list with -1 in place of its variables."""
    return [-1 if isinstance(v, Variable) else int(v) for v in values]


def int_argument(
    helper: LayerHelper,
    value: Any,
    what: str,
    attr: str,
    whole: str,
    parts: str,
    dtype: str = "int32",
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs and attributes for an argument that is a list of integers, of integers and variables,
    or a variable.

    attr: the attribute that takes the integers (-1 for variables); whole, parts: the slots for one
    variable that holds the list, and for one variable per element.
    """
    if isinstance(value, Variable):
        value.stop_gradient = True
        return {whole: value}, {}
    typed(value, what, (list, tuple), helper.layer_type)
    if holds_variable(value):
        return {parts: tensors(helper, value, dtype)}, {attr: known_ints(value)}
    return {}, {attr: [int(v) for v in value]}
