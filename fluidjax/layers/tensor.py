"""Creating and filling variables, casts, copies, concatenation."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.absent import reporter
from ..base.dtypes import enum_of, name_of
from ..base.loc import located
from ..errors import FluidTypeError
from ..graph.variable import Variable, as_shape
from ..initializer import ConstantInitializer, Initializer
from ..layer_helper import LayerHelper
from ..param_attr import ParamAttr
from ._build import (
    FLOATS,
    HALF,
    INTS,
    append,
    dtype_in,
    holds_variable,
    require,
    sized,
    typed,
    variable,
)
from .elementwise import has_inf, has_nan, isfinite, kron, sums
from .manip import stack
from .missing import HINTS
from .reduce import argmax, argmin, argsort

_FILLABLE = ("bool", "float16", "float32", "float64", "int32", "int64")


@located
def create_tensor(dtype: Any, name: str | None = None, persistable: bool = False) -> Variable:
    """A variable of the current block, without a shape until an op writes it."""
    helper = LayerHelper("create_tensor", name=name)
    return helper.create_variable(name=helper.name, dtype=name_of(dtype), persistable=persistable)


@located
def create_parameter(
    shape: Sequence[int],
    dtype: Any,
    name: str | None = None,
    attr: Any = None,
    is_bias: bool = False,
    default_initializer: Any = None,
) -> Any:
    """A parameter, initialised by attr's initializer, else default_initializer, else Xavier (a
    bias: 0).
    """
    typed(shape, "shape", (list, tuple, np.ndarray), "create_parameter")
    typed(attr, "attr", (type(None), ParamAttr), "create_parameter")
    typed(default_initializer, "default_initializer", (type(None), Initializer), "create_parameter")
    helper = LayerHelper("create_parameter", name=name)
    attr = ParamAttr(name=name) if attr is None else attr
    return helper.create_parameter(
        attr, as_shape(shape), name_of(dtype), is_bias, default_initializer
    )


@located
def create_global_var(
    shape: Sequence[int],
    value: float,
    dtype: Any,
    persistable: bool = False,
    force_cpu: bool = False,
    name: str | None = None,
) -> Variable:
    """A variable of the global block that the startup program fills with `value`."""
    typed(shape, "shape", (list, tuple, np.ndarray), "create_global_var")
    if isinstance(value, np.ndarray):
        require(
            value.size == 1,
            f"create_global_var's value is one number, not an array of shape {list(value.shape)}",
        )
        value = value.item()
    helper = LayerHelper("global_var", name=name)
    var = helper.create_global_variable(
        dtype=name_of(dtype),
        shape=as_shape(shape),
        persistable=persistable,
        name=name,
        stop_gradient=True,
    )
    helper.set_variable_initializer(var, ConstantInitializer(float(value), force_cpu))
    return var


@located
def cast(x: Variable, dtype: Any) -> Variable:
    """x as another dtype."""
    helper = LayerHelper("cast")
    to = enum_of(dtype)
    variable(x, "x", "cast", ("bool", *HALF, *INTS, "uint8"))
    return append(helper, {"X": [x]}, {"Out": to}, {"in_dtype": int(x.dtype), "out_dtype": int(to)})


@located
def concat(input: Any, axis: Any = 0, name: str | None = None) -> Variable:
    """The variables of a list concatenated along `axis` (an integer, or a variable of one element)."""
    inputs = list(input) if isinstance(input, list | tuple) else [input]
    for i, v in enumerate(inputs):
        variable(v, f"input[{i}]", "concat", (*HALF, *INTS))
    typed(axis, "axis", (int, Variable), "concat")
    helper = LayerHelper("concat", input=inputs, name=name)
    dtype = helper.input_dtype()
    if isinstance(axis, Variable):
        axis.stop_gradient = True
        return append(helper, {"X": inputs, "AxisTensor": axis}, {"Out": dtype})
    return append(helper, {"X": inputs}, {"Out": dtype}, {"axis": axis})


_VALUES = {
    "bool": "bool_values",
    "float32": "fp32_values",
    "int32": "int32_values",
    "int64": "int64_values",
}


@located
def assign(input: Any, output: Variable | None = None) -> Variable:
    """A copy of a variable, or of a NumPy array (bool, float32, int32, int64), which the op stores.

    output: a variable to write instead of a new one. Raises FluidTypeError for anything else.
    """
    helper = LayerHelper("assign")
    typed(input, "input", (Variable, np.ndarray), "assign")
    if isinstance(input, Variable):
        variable(input, "input", "assign", ("bool", *HALF, *INTS))
        return append(helper, {"X": [input]}, {"Out": input.dtype if output is None else output})
    name = input.dtype.name
    if name not in _VALUES:
        raise FluidTypeError(
            f"assign takes an array of {', '.join(_VALUES)}, not {name}; convert it with astype"
        )
    require(
        input.size <= 2**20,
        f"assign takes an array of at most {2**20} elements, not {input.size}; feed it, or load it"
        " as a parameter",
    )
    values = [int(v) for v in input.flat] if name == "bool" else input.ravel().tolist()
    attrs = {"dtype": int(enum_of(name)), "shape": list(input.shape), _VALUES[name]: values}
    return append(
        helper, {}, {"Out": name if output is None else output}, attrs, kind="assign_value"
    )


@located
def fill_constant(
    shape: Any, dtype: Any, value: Any, force_cpu: bool = False, out: Variable | None = None
) -> Variable:
    """A tensor full of `value`, through which no gradient flows.

    shape: a list of integers and variables, or a variable; value: a number, or a variable of one
    element. force_cpu: stored as the op's attribute. out: a variable to write instead of a new one.
    """
    name = dtype_in(dtype, "dtype", "fill_constant", _FILLABLE)
    helper = LayerHelper("fill_constant")
    inputs: dict[str, Any] = {}
    attrs: dict[str, Any] = {"force_cpu": force_cpu, "dtype": int(enum_of(name))}
    if isinstance(value, Variable):
        inputs["ValueTensor"] = value
    else:
        attrs |= {
            "value": float(value),
            "str_value": str(int(value) if name in INTS else float(value)),
        }
    if isinstance(out, Variable):
        variable(out, "out", "fill_constant", (name,))
    _shape_argument(shape, "fill_constant", inputs, attrs)
    result = append(helper, inputs, {"Out": name if out is None else out}, attrs)
    result.stop_gradient = True
    return result


def _as_int32(size: Variable) -> Variable:
    return size if size.desc.dtype == "int32" else cast(size, "int32")


def _shape_argument(shape: Any, layer: str, inputs: dict[str, Any], attrs: dict[str, Any]) -> None:
    """Slots and attribute for a shape whose integers, next to variables, become fill_constant ops.

    Variables are cast to int32 and get no gradient.
    """
    if isinstance(shape, Variable):
        variable(shape, "shape", layer, INTS).stop_gradient = True
        inputs["ShapeTensor"] = _as_int32(shape)
        return
    for n in typed(shape, "shape", (list, tuple, Variable), layer):
        if isinstance(n, Variable):
            variable(n, "shape", layer, INTS).stop_gradient = True
    attrs["shape"] = [-1 if isinstance(n, Variable) else int(n) for n in shape]
    if any(isinstance(n, Variable) for n in shape):
        inputs["ShapeTensorList"] = [
            (
                _as_int32(n)
                if isinstance(n, Variable)
                else fill_constant([1], "int32", n, force_cpu=True)
            )
            for n in shape
        ]


@located
def fill_constant_batch_size_like(
    input: Variable,
    shape: Sequence[int],
    dtype: Any,
    value: float,
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    force_cpu: bool = False,
) -> Variable:
    """A tensor full of `value` whose dimension output_dim_idx has the size of input's dimension
    input_dim_idx.
    """
    helper = LayerHelper("fill_constant_batch_size_like")
    typed(input, "input", Variable, "fill_constant_batch_size_like")
    name = name_of(dtype)
    attrs = {
        "shape": list(shape),
        "dtype": int(enum_of(name)),
        "value": float(value),
        "input_dim_idx": input_dim_idx,
        "output_dim_idx": output_dim_idx,
        "force_cpu": force_cpu,
        "str_value": str(int(value) if name in INTS else float(value)),
    }
    out = append(helper, {"Input": input}, {"Out": name}, attrs)
    out.stop_gradient = True
    return out


@located
def zeros(shape: Any, dtype: Any, force_cpu: bool = False) -> Variable:
    """fill_constant with 0."""
    return fill_constant(shape, dtype, 0.0, force_cpu)


@located
def ones(shape: Any, dtype: Any, force_cpu: bool = False) -> Variable:
    """fill_constant with 1. For a shape with variables it also appends the ops of their product, as
    Fluid does for a check without effect.
    """
    if holds_variable(shape):
        reduce(operator.mul, shape) > 0  # noqa: B015
    return fill_constant(shape, dtype, 1.0, force_cpu)


@located
def zeros_like(x: Variable, out: Variable | None = None) -> Variable:
    """Zeros of x's shape and dtype. out: a variable to write instead of a new one."""
    variable(x, "x", "zeros_like", ("bool", *FLOATS, *INTS))
    result = append(
        LayerHelper("zeros_like"),
        {"X": [x]},
        {"Out": x.dtype if out is None else out},
        kind="fill_zeros_like",
    )
    result.stop_gradient = True
    return result


@located
def ones_like(x: Variable, out: Variable | None = None) -> Variable:
    """Ones of x's shape and dtype. out: a variable to write instead of a new one."""
    variable(x, "x", "ones_like", ("bool", *FLOATS, *INTS))
    helper = LayerHelper("ones_like")
    return append(
        helper,
        {"X": [x]},
        {"Out": x.dtype if out is None else out},
        {"value": 1.0},
        kind="fill_any_like",
    )


@located
def full(
    shape: Any, fill_value: Any, out: Variable | None = None, dtype: Any = None, device: str | None = None,
    stop_gradient: bool = True, name: str | None = None,
) -> Variable:  # fmt: skip
    """fill_constant with dtype float32 by default. device: "cpu" or "gpu", ignored; out: a variable
    to write.
    """
    helper = LayerHelper("full", name=name)
    dtype = "float32" if dtype is None else dtype_in(dtype, "dtype", "full", _FILLABLE)
    sized(shape, "full")
    _device(device, "full")
    typed(out, "out", (type(None), Variable), "full")
    out = helper.create_variable_for_type_inference(dtype) if out is None else out
    out.stop_gradient = stop_gradient
    return fill_constant(shape, dtype, fill_value, out=out)


@located
def full_like(
    input: Variable, fill_value: float, out: Variable | None = None, dtype: Any = None, device: str | None = None,
    stop_gradient: bool = True, name: str | None = None,
) -> Variable:  # fmt: skip
    """fill_value in the shape of `input`, with its dtype or another. device is ignored; out: a
    variable to write.
    """
    helper = LayerHelper("full_like", name=name)
    typed(input, "input", Variable, "full_like")
    _device(device, "full_like")
    to = input.dtype if dtype is None else enum_of(dtype_in(dtype, "dtype", "full_like", _FILLABLE))
    attrs = {"value": fill_value, "dtype": int(to)}
    result = append(
        helper, {"X": input}, {"Out": to if out is None else out}, attrs, kind="fill_any_like"
    )
    result.stop_gradient = stop_gradient
    return result


def _device(device: str | None, layer: str) -> None:
    require(
        device in (None, "cpu", "gpu"), f"{layer}'s device is 'cpu', 'gpu' or None, not {device!r}"
    )


def _scalar(value: Any, dtype: Any, what: str, layer: str) -> Variable:
    typed(value, what, (int, float, Variable), layer)
    if not isinstance(value, Variable):
        return fill_constant([1], dtype, value)
    return value if value.desc.dtype == name_of(dtype) else cast(value, dtype)


@located
def range(start: Any, end: Any, step: Any, dtype: Any) -> Variable:
    """start, start + step, ... below end: a vector of unknown length. Each is a number, or a
    variable of one element.
    """
    bounds = {
        w.title(): _scalar(v, dtype, w, "range")
        for w, v in (("start", start), ("end", end), ("step", step))
    }
    out = append(LayerHelper("range"), bounds, {"Out": dtype})
    out.stop_gradient = True
    return out


@located
def arange(
    start: Any, end: Any, step: Any = 1, dtype: Any = None, name: str | None = None
) -> Variable:
    """range with dtype float32 by default. name is ignored, as in Fluid 1.8."""
    return range(start, end, step, "float32" if dtype is None else dtype)


@located
def linspace(start: Any, stop: Any, num: Any, dtype: Any) -> Variable:
    """`num` evenly spaced values from start to stop, both included. Each is a number, or a variable
    of one element.
    """
    for what, v, dtypes in (
        ("start", start, FLOATS),
        ("stop", stop, FLOATS),
        ("num", num, ("int32",)),
    ):
        if isinstance(v, Variable):
            variable(v, what, "linspace", dtypes)
    bounds = {
        "Start": _scalar(start, dtype, "start", "linspace"),
        "Stop": _scalar(stop, dtype, "stop", "linspace"),
    }
    bounds["Num"] = (
        num
        if isinstance(num, Variable)
        else fill_constant([1], "int32", typed(num, "num", int, "linspace"))
    )
    return append(LayerHelper("linspace"), bounds, {"Out": dtype})


@located
def diag(diagonal: Any) -> Variable:
    """The square matrix with this diagonal (a variable or a NumPy array) and zeros elsewhere."""
    typed(diagonal, "diagonal", (Variable, np.ndarray), "diag")
    helper = LayerHelper("diag")
    if isinstance(diagonal, np.ndarray):
        diagonal = assign(diagonal)
    variable(diagonal, "diagonal", "diag", (*FLOATS, *INTS))
    out = append(helper, {"Diagonal": [diagonal]}, {"Out": diagonal.dtype})
    out.stop_gradient = True
    return out


@located
def diag_embed(input: Variable, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Variable:
    """Matrices over dim1 and dim2 of the result whose diagonals (moved by `offset`) are input's
    last dimension.
    """
    variable(input, "input", "diag_embed", (*HALF, *INTS))
    helper = LayerHelper("diag_embed")
    out = append(
        helper,
        {"Input": [input]},
        {"Out": input.dtype},
        {"offset": offset, "dim1": dim1, "dim2": dim2},
    )
    out.stop_gradient = True
    return out


@located
def eye(
    num_rows: int,
    num_columns: int | None = None,
    batch_shape: list[int] | None = None,
    dtype: Any = "float32",
) -> Variable:
    """Ones on the diagonal, zeros elsewhere; batch_shape adds leading dimensions of copies. Raises
    FluidTypeError for negative sizes.
    """
    helper = LayerHelper("eye")
    for what, n in (("num_rows", num_rows), ("num_columns", num_columns)):
        if not (isinstance(n, int) and n >= 0) and not (n is None and what == "num_columns"):
            raise FluidTypeError(f"eye's {what} is an integer of at least 0, not {n!r}")
    columns = num_rows if num_columns is None else num_columns
    attrs = {"num_rows": num_rows, "num_columns": columns, "dtype": int(enum_of(dtype))}
    out = append(helper, {}, {"Out": name_of(dtype)}, attrs)
    out.stop_gradient = True
    if batch_shape is None:
        return out
    typed(batch_shape, "batch_shape", list, "eye")
    for n in reversed(batch_shape):
        if not (isinstance(n, int) and n > 0):
            raise FluidTypeError(f"eye's batch_shape holds positive integers, not {n!r}")
        out = stack([out] * n, axis=0)
    return out


@located
def tril(input: Variable, diagonal: int = 0, name: str | None = None) -> Variable:
    """The lower triangle of each matrix: elements up to `diagonal` right of the main one; zeros
    above.
    """
    return _triangle("tril", input, diagonal, name)


@located
def triu(input: Variable, diagonal: int = 0, name: str | None = None) -> Variable:
    """The upper triangle of each matrix: elements from `diagonal` right of the main one on; zeros
    below.
    """
    return _triangle("triu", input, diagonal, name)


def _triangle(layer: str, input: Variable, diagonal: int, name: str | None) -> Variable:
    variable(input, "input", layer, (*FLOATS, *INTS))
    require(
        input.ndim >= 2,
        f"{layer}'s input has at least two dimensions, but {input.name!r} has shape"
        f" {list(input.shape)}",
    )
    typed(diagonal, "diagonal", int, layer)
    helper = LayerHelper(layer, name=name)
    out = helper.create_variable(name=helper.name, dtype=input.dtype)
    return append(
        helper,
        {"X": input},
        {"Out": out},
        {"diagonal": diagonal, "lower": layer == "tril"},
        kind="tril_triu",
    )


@located
def trace(
    input: Variable,
    offset: int = 0,
    dim1: int = 0,
    dim2: int = 1,
    out: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """Sums of the diagonals (moved by `offset`) over dimensions dim1 and dim2. out: a variable to
    write.
    """
    variable(input, "input", "trace", (*HALF, *INTS))
    require(
        input.ndim >= 2,
        f"trace's input has at least two dimensions, but {input.name!r} has shape"
        f" {list(input.shape)}",
    )
    helper = LayerHelper("trace", name=name)
    attrs = {"offset": offset, "dim1": dim1, "dim2": dim2}
    return append(helper, {"Input": [input]}, {"Out": input.dtype if out is None else out}, attrs)


@located
def reverse(x: Variable, axis: Any) -> Variable:
    """x reversed along `axis`, an integer or a list of them."""
    typed(x, "x", Variable, "reverse")
    typed(axis, "axis", (int, tuple, list), "reverse")
    axes = [axis] if isinstance(axis, int) else list(axis)
    return append(LayerHelper("reverse"), {"X": x}, {"Out": x.dtype}, {"axis": axes})


__all__ = [
    "arange", "argmax", "argmin", "argsort", "assign", "cast", "concat", "create_global_var", "create_parameter",
    "create_tensor", "diag", "diag_embed", "eye", "fill_constant", "fill_constant_batch_size_like", "full",
    "full_like", "has_inf", "has_nan", "isfinite", "kron", "linspace", "ones", "ones_like", "range", "reverse",
    "sums", "trace", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.layers.tensor", __all__, HINTS)
