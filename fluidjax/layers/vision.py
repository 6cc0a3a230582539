"""Layers on images: resizing, rearranging pixels and channels."""

from __future__ import annotations

from typing import Any

from ..layer_helper import LayerHelper
from ..variable import Variable
from ._build import FLOATS, HALF, INTS, append, holds_variable, known_ints, require, size_list, tensors, typed, variable

_METHODS = {"BILINEAR": ("bilinear", 2), "NEAREST": ("nearest", 2), "TRILINEAR": ("trilinear", 3)}
_SIZES = {2: ("out_h", "out_w"), 3: ("out_d", "out_h", "out_w")}


def image_resize(
    input: Variable,
    out_shape: Any = None,
    scale: Any = None,
    name: str | None = None,
    resample: str = "BILINEAR",
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    align_mode: int = 1,
    data_format: str = "NCHW",
) -> Variable:
    """Images of another size: "BILINEAR" or "NEAREST" for [N, C, H, W], "TRILINEAR" for [N, C, D, H, W] (or channels
    last).

    out_shape: the sizes (integers and variables, or a variable), else scale: a factor or a variable of one.
    actual_shape:
    a variable that overrides both when the program runs. align_corners: corner pixels keep their places; otherwise
    align_mode 0 aligns pixel centres and 1 their upper left corners. Raises FluidValueError for what does not fit.
    """
    typed(input, "input", Variable, "image_resize")
    method = resample.upper() if isinstance(resample, str) else resample
    require(method in _METHODS, f"image_resize's resample is {' or '.join(_METHODS)}, not {resample!r}")
    word, n = _METHODS[method]
    require(
        input.ndim == n + 2, f"{method} resizes {n + 2} dimensions, but {input.name!r} has shape {list(input.shape)}"
    )
    formats = ("NCHW", "NHWC") if n == 2 else ("NCDHW", "NDHWC")
    require(data_format in formats, f"image_resize's data_format is {' or '.join(formats)}, not {data_format!r}")
    require(align_mode in (0, 1), f"image_resize's align_mode is 0 or 1, not {align_mode!r}")
    require(isinstance(align_corners, bool), f"image_resize's align_corners is True or False, not {align_corners!r}")
    require(out_shape is not None or scale is not None, "image_resize needs an out_shape or a scale")
    helper = LayerHelper(f"{word}_interp", name=name)
    attrs = {
        "out_d": -1,
        "out_h": -1,
        "out_w": -1,
        "interp_method": word,
        "align_corners": align_corners,
        "align_mode": align_mode,
        "data_layout": "NHWC" if data_format.endswith("C") else "NCHW",
    }
    inputs: dict[str, Any] = {"X": input}
    if out_shape is not None:
        _out_shape(helper, out_shape, n, inputs, attrs)
    elif isinstance(scale, Variable):
        scale.stop_gradient = True
        inputs["Scale"] = scale
    else:
        require(
            isinstance(scale, int | float) and scale > 0,
            f"image_resize's scale is a positive number or a variable, not {scale!r}",
        )
        attrs["scale"] = float(scale)
    if actual_shape is not None:
        typed(actual_shape, "actual_shape", Variable, "image_resize").stop_gradient = True
        inputs["OutSize"] = actual_shape
    return append(helper, inputs, {"Out": input.dtype}, attrs)


def _out_shape(helper: LayerHelper, out_shape: Any, n: int, inputs: dict[str, Any], attrs: dict[str, Any]) -> None:
    if isinstance(out_shape, Variable):
        out_shape.stop_gradient = True
        inputs["OutSize"] = out_shape
        return
    fits = isinstance(out_shape, list | tuple) and len(out_shape) == n
    require(fits, f"image_resize's out_shape is a variable or a list of {n}, not {out_shape!r}")
    if holds_variable(out_shape):
        inputs["SizeTensor"] = tensors(helper, out_shape)
    attrs |= zip(_SIZES[n], known_ints(out_shape), strict=True)


interpolate = image_resize


def resize_bilinear(
    input: Variable,
    out_shape: Any = None,
    scale: Any = None,
    name: str | None = None,
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    align_mode: int = 1,
    data_format: str = "NCHW",
) -> Variable:
    """image_resize with "BILINEAR"."""
    return image_resize(input, out_shape, scale, name, "BILINEAR", actual_shape, align_corners, align_mode, data_format)


def resize_nearest(
    input: Variable,
    out_shape: Any = None,
    scale: Any = None,
    name: str | None = None,
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    data_format: str = "NCHW",
) -> Variable:
    """image_resize with "NEAREST"."""
    return image_resize(input, out_shape, scale, name, "NEAREST", actual_shape, align_corners, 1, data_format)


def resize_trilinear(
    input: Variable,
    out_shape: Any = None,
    scale: Any = None,
    name: str | None = None,
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    align_mode: int = 1,
    data_format: str = "NCDHW",
) -> Variable:
    """image_resize with "TRILINEAR"."""
    return image_resize(
        input, out_shape, scale, name, "TRILINEAR", actual_shape, align_corners, align_mode, data_format
    )


def image_resize_short(input: Variable, out_short_len: int, resample: str = "BILINEAR") -> Variable:
    """image_resize to a shorter side of out_short_len, the other in proportion; needs known sizes [N, C, H, W]."""
    typed(input, "input", Variable, "image_resize_short")
    require(input.ndim == 4, f"image_resize_short takes [N, C, H, W], but {input.name!r} has shape {list(input.shape)}")
    sides = list(input.shape[2:4])
    require(min(sides) > 0, f"image_resize_short needs known sizes, but {input.name!r} has shape {list(input.shape)}")
    short = sides.index(min(sides))
    out = [int(side * (out_short_len / sides[short]) + 0.5) for side in sides]
    out[short] = out_short_len
    return image_resize(input, out_shape=out, resample=resample)


def pixel_shuffle(x: Variable, upscale_factor: int) -> Variable:
    """[N, C * r * r, H, W] to [N, C, H * r, W * r]: channels become pixels."""
    variable(x, "x", "pixel_shuffle", FLOATS)
    typed(upscale_factor, "upscale_factor", int, "pixel_shuffle")
    return append(LayerHelper("pixel_shuffle"), {"X": x}, {"Out": x.dtype}, {"upscale_factor": upscale_factor})


def space_to_depth(x: Variable, blocksize: int, name: str | None = None) -> Variable:
    """[N, C, H, W] to [N, C * b * b, H / b, W / b]: blocks of pixels become channels."""
    variable(x, "x", "space_to_depth", (*HALF, *INTS))
    require(
        isinstance(blocksize, int) and blocksize >= 2,
        f"space_to_depth's blocksize is an integer of at least 2, not {blocksize!r}",
    )
    return append(LayerHelper("space_to_depth", name=name), {"X": x}, {"Out": x.dtype}, {"blocksize": blocksize})


def shuffle_channel(x: Variable, group: int, name: str | None = None) -> Variable:
    """Channels, seen as [group, C / group], transposed."""
    typed(x, "x", Variable, "shuffle_channel")
    typed(group, "group", int, "shuffle_channel")
    return append(LayerHelper("shuffle_channel", name=name), {"X": x}, {"Out": x.dtype}, {"group": group})


def temporal_shift(x: Variable, seg_num: int, shift_ratio: float = 0.25, name: str | None = None) -> Variable:
    """Of [N * seg_num, C, H, W], the first C * shift_ratio channels move one step back in time, as many next ones
    forward.
    """
    variable(x, "x", "temporal_shift", FLOATS)
    typed(seg_num, "seg_num", int, "temporal_shift")
    attrs = {"seg_num": seg_num, "shift_ratio": shift_ratio}
    return append(LayerHelper("temporal_shift", name=name), {"X": x}, {"Out": x.dtype}, attrs)


def unfold(
    x: Variable, kernel_sizes: Any, strides: Any = 1, paddings: Any = 0, dilations: Any = 1, name: str | None = None
) -> Variable:
    """Windows of [N, C, H, W] as columns: [N, C * kh * kw, number of windows]. paddings: one, [h, w], or [top, left,
    bottom, right].
    """
    variable(x, "x", "unfold", FLOATS)
    require(x.ndim == 4, f"unfold takes [N, C, H, W], but {x.name!r} has shape {list(x.shape)}")
    pads = [paddings] * 4 if isinstance(paddings, int) else list(paddings) * (2 if len(paddings) == 2 else 1)
    require(len(pads) == 4, f"unfold's paddings is an integer or a list of 2 or 4, not {paddings!r}")
    attrs = {
        "kernel_sizes": size_list(kernel_sizes, 2, "kernel_sizes", "unfold"),
        "strides": size_list(strides, 2, "strides", "unfold"),
        "paddings": pads,
        "dilations": size_list(dilations, 2, "dilations", "unfold"),
    }
    return append(LayerHelper("unfold", name=name), {"X": x}, {"Y": x.dtype}, attrs)


__all__ = [
    "image_resize",
    "image_resize_short",
    "interpolate",
    "pixel_shuffle",
    "resize_bilinear",
    "resize_nearest",
    "resize_trilinear",
    "shuffle_channel",
    "space_to_depth",
    "temporal_shift",
    "unfold",
]
