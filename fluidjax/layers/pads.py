"""Padding and cropping."""

from __future__ import annotations

from typing import Any

from ..base.loc import located
from ..errors import FluidTypeError
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ._build import FLOATS, HALF, INTS, append, int_argument, require, typed, variable


@located
def pad(
    x: Variable, paddings: list[int], pad_value: float = 0.0, name: str | None = None
) -> Variable:
    """x with paddings[2i] elements of pad_value before dimension i and paddings[2i + 1] after it."""
    variable(x, "x", "pad", (*HALF, *INTS))
    helper = LayerHelper("pad", name=name)
    return append(
        helper,
        {"X": x},
        {"Out": x.dtype},
        {"paddings": list(paddings), "pad_value": float(pad_value)},
    )


@located
def pad2d(
    input: Variable,
    paddings: Any = (0, 0, 0, 0),
    mode: str = "constant",
    pad_value: float = 0.0,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """Images padded by [top, bottom, left, right] (integers, or a variable): with pad_value
    ("constant"), mirrored ("reflect") or with the border ("edge")."""
    variable(input, "input", "pad2d", (*HALF, *INTS))
    helper = LayerHelper("pad2d", name=name)
    attrs: dict[str, Any] = {"mode": mode, "pad_value": pad_value, "data_format": data_format}
    inputs = {"X": input}
    if isinstance(paddings, Variable):
        inputs["Paddings"] = paddings
        attrs["paddings"] = []
    else:
        attrs["paddings"] = list(typed(paddings, "paddings", (list, tuple, Variable), "pad2d"))
    return append(helper, inputs, {"Out": input.dtype}, attrs)


@located
def pad_constant_like(
    x: Variable, y: Variable, pad_value: float = 0.0, name: str | None = None
) -> Variable:
    """y padded with pad_value at the end of every dimension, to the shape of x."""
    typed(x, "x", Variable, "pad_constant_like")
    variable(y, "y", "pad_constant_like", (*FLOATS, *INTS))
    helper = LayerHelper("pad_constant_like", name=name)
    return append(helper, {"X": x, "Y": y}, {"Out": y.dtype}, {"pad_value": float(pad_value)})


@located
def crop(x: Variable, shape: Any = None, offsets: Any = None, name: str | None = None) -> Variable:
    """The part of x of this shape (integers, or a variable whose shape counts) that begins at
    `offsets`.
    """
    helper = LayerHelper("crop", name=name)
    variable(x, "x", "crop", ("float32",))
    typed(shape, "shape", (list, tuple, Variable), "crop")
    inputs, attrs = {"X": x}, {}
    if isinstance(shape, Variable):
        inputs["Y"] = shape
    else:
        attrs["shape"] = list(shape)
    if isinstance(offsets, Variable):
        inputs["Offsets"] = offsets
    else:
        attrs["offsets"] = [0] * x.ndim if offsets is None else list(offsets)
    return append(helper, inputs, {"Out": x.dtype}, attrs)


@located
def crop_tensor(
    x: Variable, shape: Any = None, offsets: Any = None, name: str | None = None
) -> Variable:
    """The part of x that begins at `offsets` and has this shape (-1: the rest). Both: a list of
    integers and variables, or a variable.
    """
    helper = LayerHelper("crop_tensor", name=name)
    variable(x, "x", "crop_tensor", (*FLOATS, *INTS))
    typed(shape, "shape", (list, tuple, Variable), "crop_tensor")
    typed(offsets, "offsets", (list, tuple, Variable, type(None)), "crop_tensor")
    out = helper.create_variable_for_type_inference(x.dtype)
    inputs: dict[str, Any] = {"X": x}
    attrs: dict[str, Any] = {}
    for n in offsets if isinstance(offsets, list | tuple) else ():
        typed(n, "offsets", (int, Variable), "crop_tensor")
    more, attr = int_argument(
        helper,
        [0] * x.ndim if offsets is None else offsets,
        "offsets",
        "offsets",
        "Offsets",
        "OffsetsTensor",
    )
    inputs |= more
    attrs |= attr or {"offsets": [-1] * x.ndim}
    for n in [] if isinstance(shape, Variable) else shape:
        if not isinstance(n, Variable) and not isinstance(n, int):
            raise FluidTypeError(f"crop_tensor's shape holds integers and variables, not {n!r}")
        require(
            isinstance(n, Variable) or n > 0 or n == -1,
            f"crop_tensor's shape holds positive integers or -1, not {n}",
        )
    more, attr = int_argument(helper, shape, "shape", "shape", "Shape", "ShapeTensor")
    if "ShapeTensor" in more:  # Fluid marks these dimensions by 0, because -1 means the rest
        attr = {"shape": [0 if isinstance(n, Variable) else n for n in shape]}
    return append(helper, inputs | more, {"Out": out}, attrs | attr)


__all__ = ["crop", "crop_tensor", "pad", "pad2d", "pad_constant_like"]
