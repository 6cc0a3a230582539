"""Rearranging: reshape, transpose, split, stack, slice, expand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.loc import located
from ..errors import OutOfRangeError
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ._build import (
    FLOATS,
    HALF,
    INTS,
    append,
    holds_variable,
    int_argument,
    known_ints,
    require,
    shapes_fit,
    tensors,
    typed,
    variable,
)


@located
def reshape(
    x: Variable,
    shape: Any,
    actual_shape: Variable | None = None,
    act: str | None = None,
    inplace: bool = False,
    name: str | None = None,
) -> Variable:
    """act(x in another shape). shape: integers (-1, once: inferred; 0: as in x) and variables, or a
    variable.

    actual_shape: a variable that overrides `shape` when the program runs. inplace: the result takes
    x's name. Raises FluidTypeError for another shape, FluidValueError for a shape with two -1 or a
    0 beyond x's dimensions.
    """
    variable(x, "x", "reshape", (*HALF, *INTS))
    typed(shape, "shape", (list, tuple, Variable), "reshape")
    typed(actual_shape, "actual_shape", (Variable, type(None)), "reshape")
    helper = LayerHelper("reshape2", act=act, name=name)
    if not isinstance(shape, Variable):
        _check_shape(x, shape)
    inputs, attrs = int_argument(helper, shape, "shape", "shape", "Shape", "ShapeTensor")
    if isinstance(actual_shape, Variable):
        actual_shape.stop_gradient = True
        inputs["Shape"] = actual_shape
    out, _ = append(
        helper, {"X": x, **inputs}, {"Out": x if inplace else x.dtype, "XShape": x.dtype}, attrs
    )
    return helper.append_activation(out)


def _check_shape(x: Variable, shape: Sequence[Any]) -> None:
    shapes_fit(len(shape) > 0, "reshape's shape has at least one dimension")
    known = known_ints(shape)
    for i, n in enumerate(known):
        if isinstance(shape[i], Variable):
            continue
        shapes_fit(n >= -1, f"reshape's shape {known} has a negative dimension other than -1")
        shapes_fit(
            n != 0 or i < x.ndim,
            f"reshape's shape {known} copies dimension {i} by 0, but {x.name!r} has shape"
            f" {list(x.shape)}",
        )
    unknown = [i for i, n in enumerate(known) if n == -1 and not isinstance(shape[i], Variable)]
    shapes_fit(len(unknown) <= 1, f"reshape's shape {known} has more than one -1")


@located
def transpose(x: Variable, perm: Sequence[int], name: str | None = None) -> Variable:
    """Dimension i of the result is dimension perm[i] of x."""
    variable(x, "x", "transpose", (*HALF, *INTS))
    typed(perm, "perm", list, "transpose")
    fits = len(perm) == x.ndim and all(n < x.ndim for n in perm)
    require(
        fits,
        f"transpose's perm {perm} is not a permutation of the dimensions of {x.name!r}, which has"
        f" shape {list(x.shape)}",
    )
    return append(
        LayerHelper("transpose", name=name),
        {"X": [x]},
        {"Out": x.dtype, "XShape": x.dtype},
        {"axis": perm},
        kind="transpose2",
    )[0]


@located
def t(input: Variable, name: str | None = None) -> Variable:
    """The transpose of a matrix; a vector is returned as it is."""
    variable(input, "input", "t", (*HALF, *INTS))
    require(
        input.ndim <= 2,
        f"t's input has at most two dimensions, but {input.name!r} has shape {list(input.shape)}",
    )
    if input.ndim < 2:
        return input
    helper = LayerHelper("t", name=name)
    return append(
        helper,
        {"X": [input]},
        {"Out": input.dtype, "XShape": input.dtype},
        {"axis": [1, 0]},
        kind="transpose2",
    )[0]


@located
def squeeze(input: Variable, axes: list[int], name: str | None = None) -> Variable:
    """input without these dimensions of size 1; without all of them for an empty list."""
    helper = LayerHelper("squeeze", name=name)
    variable(input, "input", "squeeze", (*HALF, "int8", *INTS))
    typed(axes, "axes", list, "squeeze")
    return append(
        helper,
        {"X": input},
        {"Out": input.dtype, "XShape": input.dtype},
        {"axes": axes},
        kind="squeeze2",
    )[0]


@located
def unsqueeze(input: Variable, axes: Any, name: str | None = None) -> Variable:
    """input with dimensions of size 1 inserted at these axes of the result; axes: an integer, a
    list, or variables.
    """
    typed(axes, "axes", (int, list, tuple, Variable), "unsqueeze")
    typed(input, "input", Variable, "unsqueeze")
    helper = LayerHelper("unsqueeze2", name=name)
    inputs, attrs = int_argument(
        helper,
        [axes] if isinstance(axes, int) else axes,
        "axes",
        "axes",
        "AxesTensor",
        "AxesTensorList",
    )
    if "AxesTensorList" in inputs:
        attrs = {}
    return append(
        helper, {"X": input, **inputs}, {"Out": input.dtype, "XShape": input.dtype}, attrs
    )[0]


@located
def flatten(x: Variable, axis: int = 1, name: str | None = None) -> Variable:
    """[prod(shape[:axis]), prod(shape[axis:])]. Raises FluidValueError for an axis outside [0,
    rank].
    """
    helper = LayerHelper("flatten", name=name)
    variable(x, "x", "flatten", (*FLOATS, "int8", *INTS))
    require(
        isinstance(axis, int) and 0 <= axis <= x.ndim,
        f"flatten's axis is an integer from 0 to {x.ndim}, not {axis!r}",
    )
    return append(
        helper, {"X": x}, {"Out": x.dtype, "XShape": x.dtype}, {"axis": axis}, kind="flatten2"
    )[0]


@located
def split(
    input: Variable, num_or_sections: Any, dim: Any = -1, name: str | None = None
) -> list[Variable]:
    """`input` split along `dim`: into this many equal pieces, or pieces of these sizes (-1: the
    rest; variables allowed).

    Raises FluidTypeError for other arguments, FluidValueError if the size is not divisible.
    """
    typed(num_or_sections, "num_or_sections", (int, list, tuple), "split")
    typed(dim, "dim", (int, Variable), "split")
    typed(input, "input", Variable, "split")
    helper = LayerHelper("split", name=name)
    inputs: dict[str, Any] = {"X": input}
    attrs: dict[str, Any] = {}
    size = -1
    if isinstance(dim, Variable):
        dim.stop_gradient = True
        inputs["AxisTensor"] = dim
    else:
        dim = dim + input.ndim if dim < 0 else dim
        shapes_fit(
            0 <= dim < input.ndim,
            f"split's dim is out of range for {input.name!r} of shape {list(input.shape)}",
        )
        attrs["axis"], size = dim, input.shape[dim]
    if isinstance(num_or_sections, int):
        count = num_or_sections
        shapes_fit(count > 1, f"split makes at least two pieces, not {count}")
        shapes_fit(
            size < 0 or size % count == 0,
            f"split cannot make {count} equal pieces of size {size} (variable {input.name!r})",
        )
        attrs["num"] = count
    else:
        count = len(num_or_sections)
        shapes_fit(
            size < 0 or count <= size,
            f"split cannot make {count} pieces of size {size} (variable {input.name!r})",
        )
        attrs["sections"] = known_ints(num_or_sections)
        if holds_variable(num_or_sections):
            inputs["SectionsTensorList"] = tensors(helper, num_or_sections)
    outs = [helper.create_variable_for_type_inference(input.dtype) for _ in range(count)]
    helper.append_op(type="split", inputs=inputs, outputs={"Out": outs}, attrs=attrs)
    return outs


@located
def stack(x: Any, axis: int = 0) -> Variable:
    """The variables of a list, all of one shape, stacked along a new dimension."""
    inputs = list(x) if isinstance(x, list | tuple) else [x]
    require(bool(inputs), "stack takes at least one variable, not an empty list", OutOfRangeError)
    for i, v in enumerate(inputs):
        typed(v, f"x[{i}]", Variable, "stack")
    return append(LayerHelper("stack"), {"X": inputs}, {"Y": inputs[0].dtype}, {"axis": axis or 0})


def _has_axis(x: Variable, axis: int, layer: str) -> None:
    require(
        -x.ndim <= axis < x.ndim,
        f"{layer}'s axis {axis} is out of range for {x.name!r} of shape {list(x.shape)}",
        OutOfRangeError,
    )


@located
def unstack(x: Variable, axis: int = 0, num: int | None = None) -> list[Variable]:
    """The slices along `axis`, without that dimension. num: their number, if the size is unknown."""
    typed(x, "x", Variable, "unstack")
    _has_axis(x, axis, "unstack")
    count = x.shape[axis] if num is None else num
    shapes_fit(
        count > 0,
        f"unstack needs `num`: dimension {axis} of {x.name!r} (shape {list(x.shape)}) has no known"
        " size",
    )
    helper = LayerHelper("unstack")
    outs = [helper.create_variable_for_type_inference(x.dtype) for _ in range(count)]
    helper.append_op(
        type="unstack", inputs={"X": [x]}, outputs={"Y": outs}, attrs={"axis": axis, "num": count}
    )
    return outs


@located
def unbind(input: Variable, axis: int = 0) -> list[Variable]:
    """The slices of input along `axis`, without that dimension. Raises FluidValueError if its size
    is unknown.
    """
    typed(input, "input", Variable, "unbind")
    _has_axis(input, axis, "unbind")
    count = input.shape[axis]
    shapes_fit(
        count > 0,
        f"unbind must know how many slices there are, but {input.name!r} has shape"
        f" {list(input.shape)}",
    )
    helper = LayerHelper("unbind")
    outs = [helper.create_variable_for_type_inference(input.dtype) for _ in range(count)]
    helper.append_op(
        type="unbind", inputs={"X": input}, outputs={"Out": outs}, attrs={"axis": axis}
    )
    return outs


def _bounds(
    layer: str, helper: LayerHelper, axes: Sequence[int], given: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], list[int]]:
    """Inputs, attributes and infer_flags (-1: known only when the program runs) of slices."""
    inputs: dict[str, Any] = {}
    attrs: dict[str, Any] = {}
    flags = [1] * len(axes)
    for what, value in given.items():
        slot = what.title()
        if isinstance(value, Variable):
            if layer == "slice":
                flags = [-1] * len(axes)
        elif holds_variable(value):
            flags = [
                -1 if isinstance(v, Variable) else flag
                for v, flag in zip(value, flags, strict=True)
            ]
        more, attr = int_argument(helper, value, what, what, f"{slot}Tensor", f"{slot}TensorList")
        inputs |= more
        attrs |= attr
    return inputs, attrs, flags


@located
def slice(input: Variable, axes: list[int], starts: Any, ends: Any) -> Variable:
    """input[starts[i]:ends[i]] along axes[i]; negative bounds count from the end, too large ones
    are clipped.

    starts, ends: integers and variables, or a variable.
    """
    typed(input, "input", Variable, "slice")
    for what, value in (("starts", starts), ("ends", ends)):
        require(
            isinstance(value, list | tuple | Variable),
            f"slice's {what} is a list or a variable, not {value!r}",
        )
    helper = LayerHelper("slice")
    inputs, attrs, flags = _bounds("slice", helper, axes, {"starts": starts, "ends": ends})
    return append(
        helper,
        {"Input": input, **inputs},
        {"Out": input.dtype},
        {"axes": axes, "infer_flags": flags, **attrs},
    )


@located
def strided_slice(input: Variable, axes: Any, starts: Any, ends: Any, strides: Any) -> Variable:
    """slice with a step, which may be negative: input[starts[i]:ends[i]:strides[i]] along axes[i]."""
    helper = LayerHelper("strided_slice")
    variable(input, "input", "strided_slice", (*FLOATS, *INTS))
    typed(axes, "axes", (list, tuple), "strided_slice")
    given = {"starts": starts, "ends": ends, "strides": strides}
    for what, value in given.items():
        for v in (
            typed(value, what, (list, tuple, Variable), "strided_slice")
            if not isinstance(value, Variable)
            else [value]
        ):
            typed(v, what, (int, Variable), "strided_slice")
            if isinstance(v, Variable):
                variable(v, what, "strided_slice", ("int32",))
    inputs, attrs, flags = _bounds("strided_slice", helper, axes, given)
    return append(
        helper,
        {"Input": input, **inputs},
        {"Out": input.dtype},
        {"axes": axes, "infer_flags": flags, **attrs},
    )


@located
def expand(x: Variable, expand_times: Any, name: str | None = None) -> Variable:
    """x repeated expand_times[i] times along dimension i; integers and variables, or a variable."""
    variable(x, "x", "expand", ("bool", *FLOATS, *INTS))
    typed(expand_times, "expand_times", (list, tuple, Variable), "expand")
    helper = LayerHelper("expand", name=name)
    inputs, attrs = int_argument(
        helper, expand_times, "expand_times", "expand_times", "ExpandTimes", "expand_times_tensor"
    )
    for n in expand_times if isinstance(expand_times, list | tuple) else []:
        shapes_fit(isinstance(n, Variable) or n > 0, f"expand's expand_times are positive, not {n}")
    return append(helper, {"X": x, **inputs}, {"Out": x.dtype}, attrs)


@located
def expand_as(x: Variable, target_tensor: Variable, name: str | None = None) -> Variable:
    """x repeated to the shape of target_tensor, whose sizes are multiples of x's."""
    variable(target_tensor, "target_tensor", "expand_as", ("bool", *FLOATS, *INTS))
    variable(x, "x", "expand_as", ("bool", *FLOATS, *INTS))
    helper = LayerHelper("expand_as", name=name)
    return append(helper, {"X": x, "target_tensor": target_tensor}, {"Out": x.dtype})


@located
def flip(input: Variable, dims: Any, name: str | None = None) -> Variable:
    """input reversed along these dimensions."""
    helper = LayerHelper("flip", name=name)
    typed(input, "input", Variable, "flip")
    typed(dims, "dims", (int, list, tuple), "flip")
    dims = [dims] if isinstance(dims, int) else list(dims)
    return append(helper, {"X": input}, {"Out": input.dtype}, {"dims": dims})


@located
def roll(input: Variable, shifts: Any, dims: Any = None) -> Variable:
    """input with each dimension of `dims` rotated by `shifts`; dims None: the flattened input."""
    helper = LayerHelper("roll")
    typed(input, "input", Variable, "roll")
    typed(shifts, "shifts", (int, list, tuple), "roll")
    typed(dims, "dims", (int, list, tuple, type(None)), "roll")
    shape = list(input.shape)
    shifts = [shifts] if isinstance(shifts, int) else list(shifts)
    dims = [dims] if isinstance(dims, int) else dims
    require(
        dims is None or len(dims) == len(shifts),
        f"roll needs as many dims as shifts, not {dims} and {shifts}",
    )
    x = reshape(input, [-1, 1]) if dims is None else input
    out = append(
        helper,
        {"X": x},
        {"Out": input.dtype},
        {"dims": [0] if dims is None else list(dims), "shifts": shifts},
    )
    return reshape(out, shape, inplace=True)


@located
def meshgrid(input: Any, name: str | None = None) -> list[Variable]:
    """Tensors [n1, n2, ...], one for each vector of lengths n1, n2, ...; the i-th varies along
    dimension i.
    """
    helper = LayerHelper("meshgrid", name=name)
    typed(input, "input", (list, tuple), "meshgrid")
    for i, v in enumerate(input):
        variable(v, f"input[{i}]", "meshgrid", (*HALF, *INTS))
    outs = [helper.create_variable_for_type_inference(v.dtype) for v in input]
    helper.append_op(type="meshgrid", inputs={"X": list(input)}, outputs={"Out": outs})
    return outs


__all__ = [
    "expand",
    "expand_as",
    "flatten",
    "flip",
    "meshgrid",
    "reshape",
    "roll",
    "slice",
    "split",
    "squeeze",
    "stack",
    "strided_slice",
    "t",
    "transpose",
    "unbind",
    "unsqueeze",
    "unstack",
]
