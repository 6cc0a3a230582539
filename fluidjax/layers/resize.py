"""Layers that resize images and volumes."""

from __future__ import annotations

import numbers
from typing import Any

from ..base.loc import located
from ..errors import FluidTypeError
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ._build import append, int_argument, one_of, require, typed, variable
from .conv import FORMATS

_METHODS = {
    "BILINEAR": ("bilinear", 2),
    "NEAREST": ("nearest", 2),
    "BICUBIC": ("bicubic", 2),
    "TRILINEAR": ("trilinear", 3),
}
_SIDES = ("out_d", "out_h", "out_w")


def _out_shape(
    helper: LayerHelper, out_shape: Any, axes: int, layer: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The op's inputs and attributes for a size: integers, integers and variables, or one variable."""
    inputs, attrs = int_argument(helper, out_shape, "out_shape", "sizes", "OutSize", "SizeTensor")
    if isinstance(out_shape, Variable):
        return inputs, attrs
    require(len(out_shape) == axes, f"{layer}'s out_shape has {axes} sizes, not {len(out_shape)}")
    fixed = [n for n in out_shape if not isinstance(n, Variable)]
    require(all(n > 0 for n in fixed), f"{layer}'s out_shape holds positive sizes, not {fixed}")
    return inputs, dict(zip(_SIDES[3 - axes :], attrs["sizes"], strict=True))


def _scale(scale: Any, layer: str) -> tuple[dict[str, Any], dict[str, Any]]:
    if isinstance(scale, Variable):
        scale.stop_gradient = True
        return {"Scale": scale}, {}
    typed(scale, "scale", (numbers.Real, Variable), layer)
    require(scale > 0, f"{layer}'s scale is positive, not {scale!r}")
    return {}, {"scale": float(scale)}


def _resize(
    layer: str, methods: tuple[str, ...], input: Any, out_shape: Any, scale: Any, name: str | None, resample: str,
    actual_shape: Any, align_corners: bool, align_mode: int, data_format: str,
) -> Variable:  # fmt: skip
    variable(input, "input", layer)
    one_of(resample, "resample", layer, methods)
    method, axes = _METHODS[resample]
    require(
        input.ndim == axes + 2,
        f"{layer} with {resample!r} takes {axes + 2} dimensions, not {list(input.shape)}",
    )
    typed(align_corners, "align_corners", bool, layer)
    one_of(align_mode, "align_mode", layer, (0, 1))
    require(out_shape is not None or scale is not None, f"{layer} needs an out_shape or a scale")
    one_of(data_format, "data_format", layer, FORMATS[axes])
    helper = LayerHelper(f"{method}_interp", name=name)
    inputs, sizes = (
        _scale(scale, layer) if out_shape is None else _out_shape(helper, out_shape, axes, layer)
    )
    if actual_shape is not None:
        if not isinstance(actual_shape, Variable):
            raise FluidTypeError(
                f"{layer}'s actual_shape is a Variable or None, not {actual_shape!r}"
            )
        actual_shape.stop_gradient = True
        inputs["OutSize"] = actual_shape
    attrs = {
        **dict.fromkeys(_SIDES, -1),
        "interp_method": method,
        "align_corners": align_corners,
        "align_mode": align_mode,
        "data_layout": "NHWC" if data_format == FORMATS[axes][1] else "NCHW",
        **sizes,
    }
    return append(helper, {"X": input, **inputs}, {"Out": input.dtype}, attrs)


@located
def image_resize(
    input: Variable, out_shape: Any = None, scale: Any = None, name: str | None = None, resample: str = "BILINEAR",
    actual_shape: Variable | None = None, align_corners: bool = True, align_mode: int = 1, data_format: str = "NCHW",
) -> Variable:  # fmt: skip
    """Resize images [N, C, H, W] ("BILINEAR", "NEAREST") or volumes [N, C, D, H, W] ("TRILINEAR").

    out_shape: [H', W'] or [D', H', W'], of integers and Variables, or one Variable; else scale: a
    factor for every side, a number or a Variable. Variables must hold values known while a step is
    traced: constants, shapes, arithmetic on them. actual_shape: a Variable that overrides
    out_shape. align_corners: the middles of the corner cells stay; else align_mode 0 counts from
    the middles of the cells and 1 from their edges. Raises FluidValueError for sizes, a method or a
    layout that do not fit, FluidTypeError for arguments of another type.
    """
    return _resize("image_resize", ("BILINEAR", "TRILINEAR", "NEAREST"), input, out_shape, scale, name, resample, actual_shape,
                   align_corners, align_mode, data_format)  # fmt: skip


@located
def interpolate(
    input: Variable, out_shape: Any = None, scale: Any = None, name: str | None = None, resample: str = "BILINEAR",
    actual_shape: Variable | None = None, align_corners: bool = True, align_mode: int = 1, data_format: str = "NCHW",
) -> Variable:  # fmt: skip
    """image_resize, with "BICUBIC" too."""
    return _resize("interpolate", tuple(_METHODS), input, out_shape, scale, name, resample, actual_shape, align_corners,
                   align_mode, data_format)  # fmt: skip


@located
def resize_bilinear(
    input: Variable, out_shape: Any = None, scale: Any = None, name: str | None = None, actual_shape: Variable | None = None,
    align_corners: bool = True, align_mode: int = 1, data_format: str = "NCHW",
) -> Variable:  # fmt: skip
    """image_resize by bilinear interpolation."""
    return image_resize(
        input,
        out_shape,
        scale,
        name,
        "BILINEAR",
        actual_shape,
        align_corners,
        align_mode,
        data_format,
    )


@located
def resize_trilinear(
    input: Variable, out_shape: Any = None, scale: Any = None, name: str | None = None, actual_shape: Variable | None = None,
    align_corners: bool = True, align_mode: int = 1, data_format: str = "NCDHW",
) -> Variable:  # fmt: skip
    """image_resize of volumes by trilinear interpolation."""
    return image_resize(
        input,
        out_shape,
        scale,
        name,
        "TRILINEAR",
        actual_shape,
        align_corners,
        align_mode,
        data_format,
    )


@located
def resize_nearest(
    input: Variable, out_shape: Any = None, scale: Any = None, name: str | None = None, actual_shape: Variable | None = None,
    align_corners: bool = True, data_format: str = "NCHW",
) -> Variable:  # fmt: skip
    """image_resize to the nearest cell (align_corners rounds its position, else it is rounded
    down).
    """
    return image_resize(
        input, out_shape, scale, name, "NEAREST", actual_shape, align_corners, 1, data_format
    )


@located
def image_resize_short(input: Variable, out_short_len: int, resample: str = "BILINEAR") -> Variable:
    """Resize [N, C, H, W] so that the shorter side becomes `out_short_len`, with the other in
    proportion, rounded.

    Raises FluidValueError if H or W is unknown.
    """
    variable(input, "input", "image_resize_short")
    require(input.ndim == 4, f"image_resize_short takes [N, C, H, W], not {list(input.shape)}")
    sides = list(input.shape[2:])
    require(
        min(sides) > 0,
        f"image_resize_short must know H and W, but {input.name!r} has shape {list(input.shape)}",
    )
    ratio = float(out_short_len) / float(min(sides))
    short = sides.index(min(sides))
    out = [
        out_short_len if i == short else int(float(n) * ratio + 0.5) for i, n in enumerate(sides)
    ]
    return image_resize(input, out_shape=out, resample=resample)


__all__ = [
    "image_resize",
    "image_resize_short",
    "interpolate",
    "resize_bilinear",
    "resize_nearest",
    "resize_trilinear",
]
