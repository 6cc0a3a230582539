"""What ``x + y``, ``2 * x``, ``x < y``, ``x[1:3]`` append: Fluid's operators on variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import unique_name
from ..base.dtypes import enum_of, name_of
from ..errors import FluidTypeError, FluidValueError
from .variable import Variable

_INTS = ("uint8", "int8", "int16", "int32", "int64")


def new_tmp(var: Variable, dtype: Any, stop_gradient: bool = False) -> Variable:
    """A fresh variable ``tmp_k`` in the block that ops are being appended to."""
    block = var.block.program.current_block()
    return block.create_var(name=block._new_name(lambda: unique_name.generate("tmp")), dtype=dtype, stop_gradient=stop_gradient)


def _append(var: Variable, kind: str, inputs: dict[str, Any], dtype: Any, attrs: dict[str, Any] | None = None) -> Variable:
    out = new_tmp(var, dtype)
    var.block.program.current_block().append_op(type=kind, inputs=inputs, outputs={"Out": out}, attrs=attrs or {})
    return out


def unary(var: Variable, kind: str) -> Variable:
    return _append(var, kind, {"X": var}, var.dtype)


def astype(var: Variable, dtype: Any) -> Variable:
    """cast to `dtype`."""
    to = enum_of(dtype)
    return _append(var, "cast", {"X": var}, to, {"in_dtype": int(var.dtype), "out_dtype": int(to)})


def _constant(var: Variable, value: float, shape: tuple[int, ...]) -> Variable:
    """`value` as a tensor of the variable's dtype; a batch-size-like fill where the shape has an unknown dimension."""
    attrs: dict[str, Any] = {"dtype": int(var.dtype), "shape": list(shape), "value": float(value), "force_cpu": False}
    out = new_tmp(var, var.dtype, stop_gradient=True)
    block = var.block.program.current_block()
    if -1 not in shape:
        block.append_op(type="fill_constant", outputs={"Out": out}, attrs=attrs)
        return out
    at = shape.index(-1)
    attrs.update(input_dim_idx=at, output_dim_idx=at)
    block.append_op(type="fill_constant_batch_size_like", inputs={"Input": var}, outputs={"Out": out}, attrs=attrs)
    return out


def scaled(var: Variable, scale: float, bias: float) -> Variable:
    return _append(var, "scale", {"X": var}, var.dtype, {"scale": scale, "bias": bias})


_SCALAR: dict[str, Callable[[Variable, float], Variable]] = {
    "__add__": lambda x, v: scaled(x, 1.0, v),
    "__radd__": lambda x, v: scaled(x, 1.0, v),
    "__sub__": lambda x, v: scaled(x, 1.0, -v),
    "__rsub__": lambda x, v: scaled(x, -1.0, v),
    "__mul__": lambda x, v: scaled(x, v, 0.0),
    "__rmul__": lambda x, v: scaled(x, v, 0.0),
    "__truediv__": lambda x, v: scaled(x, 1.0 / v, 0.0),
}
_BINARY = {
    "__add__": "elementwise_add", "__radd__": "elementwise_add", "__sub__": "elementwise_sub",
    "__rsub__": "elementwise_sub", "__mul__": "elementwise_mul", "__rmul__": "elementwise_mul",
    "__truediv__": "elementwise_div", "__rtruediv__": "elementwise_div", "__pow__": "elementwise_pow",
    "__rpow__": "elementwise_pow", "__floordiv__": "elementwise_floordiv", "__mod__": "elementwise_mod",
    "__eq__": "equal", "__ne__": "not_equal", "__lt__": "less_than", "__le__": "less_equal", "__gt__": "greater_than",
    "__ge__": "greater_equal",
}  # fmt: skip
_COMPARE = {"equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal"}


def _operator(method: str, kind: str) -> Callable[[Variable, Any], Variable]:
    reverse = method.startswith("__r") and method not in ("__round__",)
    scalar = _SCALAR.get(method)

    def run(self: Variable, other: Any) -> Variable:
        if isinstance(other, np.generic):
            other = other.item()
        if not isinstance(other, Variable | int | float):
            raise FluidTypeError(f"{self} {kind} takes a variable or a number, not {type(other).__name__}")
        if not isinstance(other, Variable):
            integer = self.desc.dtype in _INTS
            if integer and float(other) != int(other):
                raise FluidTypeError(f"{other} is no integer, but variable {self.name!r} is {self.desc.dtype}; cast it first")
            if scalar is not None and not (kind == "elementwise_div" and (integer or other == 0)):
                return scalar(self, float(other))
            other = _constant(self, other, self.shape if reverse else (1,))
        elif other.desc.dtype != self.desc.dtype:
            other = astype(other, self.dtype)
        x, y = (other, self) if reverse else (self, other)
        axis = 0 if other.desc.shape and other.desc.shape[0] == -1 else -1  # the same, but it is what Fluid writes
        dtype = "bool" if kind in _COMPARE else self.dtype
        return _append(self, kind, {"X": x, "Y": y}, dtype, {"axis": axis})

    run.__name__ = method
    run.__doc__ = f"Appends {kind}."
    return run


def _negate(self: Variable) -> Variable:
    """Appends scale with scale=-1."""
    return scaled(self, -1.0, 0.0)


def install() -> None:
    """Give Variable its operators."""
    for method, kind in _BINARY.items():
        setattr(Variable, method, _operator(method, kind))
    Variable.__neg__ = _negate


def getitem(var: Variable, item: Any) -> Variable:
    """``x[1]``, ``x[1:3, :, -1]``, ``x[::2]``: slice (strided_slice where a step is given) with decreased axes."""
    items = list(item) if isinstance(item, tuple) else [item]
    if items.count(Ellipsis) > 1:
        raise FluidValueError("an index has at most one ellipsis")
    if Ellipsis in items:
        at = items.index(Ellipsis)
        items[at : at + 1] = [slice(None)] * (var.ndim - len(items) + 1)
    if len(items) > var.ndim:
        raise FluidValueError(f"variable {var.name!r} has {var.ndim} dimensions, not {len(items)}")
    axes: list[int] = []
    starts: list[Any] = []
    ends: list[Any] = []
    steps: list[Any] = []
    decrease: list[int] = []
    for axis, part in enumerate(items):
        if isinstance(part, slice):
            if part == slice(None):
                continue
            if not all(v is None or isinstance(v, int | np.integer) for v in (part.start, part.stop, part.step)):
                raise FluidTypeError(f"slices of variable {var.name!r} take integers, not {part}")
            step = part.step or 1
            start = part.start if part.start is not None else (0 if step > 0 else 2**31 - 1)
            stop = part.stop if part.stop is not None else (2**31 - 1 if step > 0 else -(2**31 - 1))
        elif isinstance(part, int | np.integer) and not isinstance(part, bool):
            _in_range(var, axis, int(part))
            start, step = int(part), 1
            stop = start + 1 if start != -1 else 2**31 - 1
            decrease.append(axis)
        else:
            raise FluidTypeError(f"variable {var.name!r} is indexed by integers and slices, not {type(part).__name__}")
        for values, value in zip((axes, starts, ends, steps), (axis, start, stop, step), strict=True):
            values.append(int(value))
    attrs: dict[str, Any] = {"axes": axes, "starts": starts, "ends": ends, "decrease_axis": decrease}
    if any(s != 1 for s in steps):
        if decrease:
            var = getitem(var, tuple(slice(None) if a in decrease else p for a, p in enumerate(items)))
            return getitem(var, tuple(p if a in decrease else slice(None) for a, p in enumerate(items)))
        return _append(var, "strided_slice", {"Input": var}, var.dtype, {"axes": axes, "starts": starts, "ends": ends, "strides": steps})
    return _append(var, "slice", {"Input": var}, var.dtype, attrs)


def _in_range(var: Variable, axis: int, index: int) -> None:
    size = var.shape[axis]
    if size >= 0 and not -size <= index < size:
        raise FluidValueError(f"index {index} is out of range for dimension {axis} of variable {var.name!r}, which has size {size}")


__all__ = ["astype", "getitem", "install", "name_of", "unary"]
