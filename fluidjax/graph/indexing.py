"""Appends the ops of ``x[1]``, ``x[1:3, ::-1]``, ``x[i]``, ``x[:, s:n]``: slice, strided_slice and
reverse, as in Fluid.

An integer or a variable selects one element and drops its dimension. A slice's bounds and step may
be variables of one int32. The ops are appended to the variable's own block, and their results are
named after it (``x_slice_0``). A slice without bounds and with step -1 is a reverse. ``x[::2]``,
``x[3::-1]`` and ``x[..., 0]``, which Fluid refuses, work as in Python.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import unique_name
from ..errors import FluidTypeError, FluidValueError, ShapeError
from .operators import Operators, V, is_variable

_TO_THE_END = 10000000  # Fluid's `end` for "up to the last element"
_PAST_THE_START = -(2**31 - 1)  # the `end` of a negative step that goes down to element 0


@dataclass
class _Parts:
    """The attributes of one slice, in the order of its axes."""

    axes: list[int] = field(default_factory=list)
    starts: list[Any] = field(default_factory=list)
    ends: list[Any] = field(default_factory=list)
    strides: list[Any] = field(default_factory=list)
    decreased: list[int] = field(default_factory=list)
    reversed: list[int] = field(default_factory=list)
    strided: bool = False

    def add(self, axis: int, start: Any, end: Any, stride: Any) -> None:
        for values, value in zip(
            (self.axes, self.starts, self.ends, self.strides),
            (axis, start, end, stride),
            strict=True,
        ):
            values.append(value if is_variable(value) else int(value))


class Indexed(Operators[V]):
    """Indexing of a variable: ``x[item]``."""

    def __getitem__(self, item: Any) -> V:
        """The part of the variable that an index selects.

        Raises FluidTypeError for an index that is not an integer, slice or int32 variable,
        FluidValueError for an index out of range or for too many indices.
        """
        return _getitem(self, item)


def _getitem(var: Any, item: Any) -> Any:
    parts = _Parts()
    for axis, part in enumerate(_expanded_ellipsis(var, item)):
        if isinstance(part, np.ndarray) and part.ndim == 0 and part.dtype.kind in "iu":
            part = int(part)
        if isinstance(part, slice):
            _take_slice(parts, var, axis, part)
        else:
            _take_one(parts, var, axis, part)
    out = _sliced(var, parts) if parts.axes else var
    return (
        _append(var, "reverse", "slice_reverse", {"X": out}, {"axis": parts.reversed})
        if parts.reversed
        else out
    )


def _expanded_ellipsis(var: Any, item: Any) -> list[Any]:
    """The parts of an index, with full slices in place of an ellipsis."""
    items = list(item) if isinstance(item, tuple) else [item]
    dots = [at for at, part in enumerate(items) if part is Ellipsis]
    if len(dots) > 1:
        raise FluidValueError("an index has at most one ellipsis")
    if dots:
        items[dots[0] : dots[0] + 1] = [slice(None)] * (var.ndim - len(items) + 1)
    if len(items) > var.ndim:
        raise ShapeError(f"variable {var.name!r} has {var.ndim} dimensions, not {len(items)}")
    return items


def _take_slice(parts: _Parts, var: Any, axis: int, part: slice) -> None:
    start, end, step = (_bound(var, part, v) for v in (part.start, part.stop, part.step))
    if start is None and end is None and step is None:
        return
    if start is None and end is None and not is_variable(step) and step == -1:
        parts.reversed.append(axis)
        return
    down = not is_variable(step) and step is not None and step < 0
    if is_variable(step):
        _ = step != 1  # Fluid compares while building, and so the comparison stays in the program
    parts.strided = parts.strided or is_variable(step) or step not in (None, 1)
    start = (2**31 - 1 if down else 0) if start is None else start
    end = (_PAST_THE_START if down else _TO_THE_END) if end is None else end
    parts.add(axis, start, end, 1 if step is None else step)


def _bound(var: Any, part: slice, value: Any) -> Any:
    if value is None or isinstance(value, int | np.integer):
        return value
    return _index(
        var, value, f"slices of variable {var.name!r} take integers and variables of one int32"
    )


def _index(var: Any, value: Any, takes: str) -> Any:
    """`value`, a variable of one int32. Raises FluidTypeError for anything else."""
    if not is_variable(value):
        raise FluidTypeError(f"{takes}, not {type(value).__name__}")
    if value.desc.dtype != "int32":
        raise FluidTypeError(
            f"{takes}, but {value.name!r} is {value.desc.dtype}"
            + ("; cast it" if value.desc.dtype == "int64" else "")
        )
    return value


def _take_one(parts: _Parts, var: Any, axis: int, part: Any) -> None:
    parts.decreased.append(axis)
    if isinstance(part, int | np.integer):
        size = var.shape[axis]
        if size >= 0 and not -size <= part < size:
            raise ShapeError(
                f"index {part} is out of range for dimension {axis} of variable {var.name!r}, which"
                f" has size {size}"
            )
        parts.add(axis, part, part + 1 if part != -1 else _TO_THE_END, 1)
        return
    _index(
        var,
        part,
        f"variable {var.name!r} is indexed by integers, slices and variables of one int32",
    )
    one, end = _constant(var, 1), var.block.create_var(dtype="int32")
    var.block.append_op(
        type="elementwise_add",
        inputs={"X": part, "Y": one},
        outputs={"Out": end},
        attrs={"axis": -1},
    )
    parts.add(axis, part, end, 1)


def _constant(var: Any, value: int) -> Any:
    out = var.block.create_var(dtype="int32", stop_gradient=True)
    attrs = {"shape": [1], "dtype": int(out.dtype), "value": float(value), "force_cpu": True}
    var.block.append_op(type="fill_constant", outputs={"Out": out}, attrs=attrs)
    return out


def _sliced(var: Any, parts: _Parts) -> Any:
    kind = "strided_slice" if parts.strided else "slice"
    inputs: dict[str, Any] = {"Input": var}
    attrs: dict[str, Any] = {"axes": parts.axes, "decrease_axis": parts.decreased}
    flags = [1] * len(parts.axes)
    named = {"starts": parts.starts, "ends": parts.ends} | (
        {"strides": parts.strides} if parts.strided else {}
    )
    for what, values in named.items():
        open_ = [is_variable(v) for v in values]
        attrs[what] = [-1 if o else v for o, v in zip(open_, values, strict=True)]
        flags = [-1 if o else f for o, f in zip(open_, flags, strict=True)]
        if any(open_):
            inputs[f"{what.capitalize()}TensorList"] = [_tensor(var, v) for v in values]
    return _append(var, kind, kind, inputs, {**attrs, "infer_flags": flags})


def _tensor(var: Any, value: Any) -> Any:
    if not is_variable(value):
        return _constant(var, value)
    value.stop_gradient = True
    return value


def _append(var: Any, kind: str, suffix: str, inputs: dict[str, Any], attrs: dict[str, Any]) -> Any:
    block = var.block
    name = block.new_name(lambda: unique_name.generate_with_ignorable_key(f"{var.name}_{suffix}"))
    out = block.create_var(name=name, dtype=var.dtype)
    block.append_op(type=kind, inputs=inputs, outputs={"Out": out}, attrs=attrs)
    return out
