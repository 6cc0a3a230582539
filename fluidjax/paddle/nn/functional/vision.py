"""paddle.nn.functional: images as grids of points."""

from __future__ import annotations

from typing import Any

from .... import layers
from ....graph.variable import Variable
from ....layer_helper import LayerHelper
from ....layers._build import append, one_of


def pixel_shuffle(
    x: Variable, upscale_factor: int, data_format: str = "NCHW", name: str | None = None
) -> Variable:
    """[N, C * r * r, H, W] to [N, C, H * r, W * r]: channels become pixels. Raises FluidValueError
    for another data_format.
    """
    one_of(data_format, "data_format", "pixel_shuffle", ("NCHW", "NHWC"))
    attrs = {
        "upscale_factor": upscale_factor,
        **({"data_format": data_format} if data_format != "NCHW" else {}),
    }
    return append(LayerHelper("pixel_shuffle", name=name), {"X": x}, {"Out": x.dtype}, attrs)


def affine_grid(
    theta: Variable, out_shape: Any, align_corners: bool = True, name: str | None = None
) -> Variable:
    """The points [N, H, W, 2] of an image of out_shape [N, C, H, W], mapped by theta [N, 2, 3].

    Raises UnsupportedError for align_corners=False if the op lacks it.
    """
    if align_corners:
        return layers.affine_grid(theta, out_shape, name)
    attrs = {"output_shape": [int(n) for n in out_shape], "align_corners": False}
    return append(
        LayerHelper("affine_grid", name=name), {"Theta": theta}, {"Output": theta.dtype}, attrs
    )


def grid_sample(
    x: Variable,
    grid: Variable,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = True,
    name: str | None = None,
) -> Variable:
    """x [N, C, H, W] at the points of grid [N, H', W', 2], interpolated between four pixels; 0
    outside.

    Raises FluidValueError for an unknown mode, UnsupportedError for one that the op lacks.
    """
    one_of(mode, "mode", "grid_sample", ("bilinear", "nearest"))
    one_of(padding_mode, "padding_mode", "grid_sample", ("zeros", "border", "reflection"))
    given = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    usual = {"mode": "bilinear", "padding_mode": "zeros", "align_corners": True}
    attrs = {n: v for n, v in given.items() if v != usual[n]}
    return append(
        LayerHelper("grid_sampler", name=name), {"X": x, "Grid": grid}, {"Output": x.dtype}, attrs
    )


def temporal_shift(
    x: Variable,
    seg_num: int,
    shift_ratio: float = 0.25,
    name: str | None = None,
    data_format: str = "NCHW",
) -> Variable:
    """Channels of [N * seg_num, C, H, W] moved by a frame: the first fraction shift_ratio from the
    next frame, as many from the previous one.

    Raises FluidValueError for another data_format.
    """
    one_of(data_format, "data_format", "temporal_shift", ("NCHW", "NHWC"))
    attrs = {
        "seg_num": seg_num,
        "shift_ratio": shift_ratio,
        **({"data_format": data_format} if data_format != "NCHW" else {}),
    }
    return append(LayerHelper("temporal_shift", name=name), {"X": x}, {"Out": x.dtype}, attrs)


def pixel_unshuffle(
    x: Variable, downscale_factor: int, data_format: str = "NCHW", name: str | None = None
) -> Variable:
    """[N, C, H, W] to [N, C * r * r, H / r, W / r], r the factor: pixels become channels;
    the inverse of pixel_shuffle.

    Raises FluidValueError for another data_format, ShapeError if r does not divide the sides.
    """
    one_of(data_format, "data_format", "pixel_unshuffle", ("NCHW", "NHWC"))
    attrs = {"downscale_factor": downscale_factor, "data_format": data_format}
    return append(LayerHelper("pixel_unshuffle", name=name), {"X": x}, {"Out": x.dtype}, attrs)


def channel_shuffle(
    x: Variable, groups: int, data_format: str = "NCHW", name: str | None = None
) -> Variable:
    """[N, groups * C, H, W] with the groups' channels interleaved: the first of each group, then
    the second, ... Raises the errors of pixel_unshuffle.
    """
    one_of(data_format, "data_format", "channel_shuffle", ("NCHW", "NHWC"))
    attrs = {"groups": groups, "data_format": data_format}
    return append(LayerHelper("channel_shuffle", name=name), {"X": x}, {"Out": x.dtype}, attrs)


__all__ = [
    "affine_grid",
    "channel_shuffle",
    "grid_sample",
    "pixel_shuffle",
    "pixel_unshuffle",
    "temporal_shift",
]
