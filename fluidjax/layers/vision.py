"""Layers on images: rearranging pixels and channels."""

from __future__ import annotations

from typing import Any

from ..base.loc import located
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ._build import FLOATS, HALF, INTS, REAL, append, require, size_list, typed, variable


@located
def pixel_shuffle(x: Variable, upscale_factor: int) -> Variable:
    """[N, C * r * r, H, W] to [N, C, H * r, W * r]: channels become pixels."""
    variable(x, "x", "pixel_shuffle", FLOATS)
    typed(upscale_factor, "upscale_factor", int, "pixel_shuffle")
    return append(
        LayerHelper("pixel_shuffle"), {"X": x}, {"Out": x.dtype}, {"upscale_factor": upscale_factor}
    )


@located
def space_to_depth(x: Variable, blocksize: int, name: str | None = None) -> Variable:
    """[N, C, H, W] to [N, C * b * b, H / b, W / b]: blocks of pixels become channels."""
    variable(x, "x", "space_to_depth", (*HALF, *INTS))
    require(
        isinstance(blocksize, int) and blocksize >= 2,
        f"space_to_depth's blocksize is an integer of at least 2, not {blocksize!r}",
    )
    return append(
        LayerHelper("space_to_depth", name=name),
        {"X": x},
        {"Out": x.dtype},
        {"blocksize": blocksize},
    )


@located
def shuffle_channel(x: Variable, group: int, name: str | None = None) -> Variable:
    """Channels, seen as [group, C / group], transposed."""
    typed(x, "x", Variable, "shuffle_channel")
    typed(group, "group", int, "shuffle_channel")
    return append(
        LayerHelper("shuffle_channel", name=name), {"X": x}, {"Out": x.dtype}, {"group": group}
    )


@located
def temporal_shift(
    x: Variable, seg_num: int, shift_ratio: float = 0.25, name: str | None = None
) -> Variable:
    """[N * seg_num, C, H, W] with the first C * shift_ratio channels moved one step back in time,
    and as many next ones forward.
    """
    variable(x, "x", "temporal_shift", FLOATS)
    typed(seg_num, "seg_num", int, "temporal_shift")
    typed(shift_ratio, "shift_ratio", REAL, "temporal_shift")
    attrs = {"seg_num": seg_num, "shift_ratio": shift_ratio}
    return append(LayerHelper("temporal_shift", name=name), {"X": x}, {"Out": x.dtype}, attrs)


@located
def unfold(
    x: Variable,
    kernel_sizes: Any,
    strides: Any = 1,
    paddings: Any = 0,
    dilations: Any = 1,
    name: str | None = None,
) -> Variable:
    """Windows of [N, C, H, W] as columns: [N, C * kh * kw, number of windows]. paddings: one, [h,
    w], or [top, left, bottom, right].
    """
    variable(x, "x", "unfold", FLOATS)
    require(x.ndim == 4, f"unfold takes [N, C, H, W], but {x.name!r} has shape {list(x.shape)}")
    pads = (
        [paddings] * 4
        if isinstance(paddings, int)
        else list(paddings) * (2 if len(paddings) == 2 else 1)
    )
    require(
        len(pads) == 4, f"unfold's paddings is an integer or a list of 2 or 4, not {paddings!r}"
    )
    attrs = {
        "kernel_sizes": size_list(kernel_sizes, 2, "kernel_sizes", "unfold"),
        "strides": size_list(strides, 2, "strides", "unfold"),
        "paddings": pads,
        "dilations": size_list(dilations, 2, "dilations", "unfold"),
    }
    return append(LayerHelper("unfold", name=name), {"X": x}, {"Y": x.dtype}, attrs)


__all__ = [
    "pixel_shuffle",
    "shuffle_channel",
    "space_to_depth",
    "temporal_shift",
    "unfold",
]
