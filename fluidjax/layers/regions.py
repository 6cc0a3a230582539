"""Pools over regions of interest: rois [R, 4] with a LoD of the images (or their offsets in another
variable).
"""

from __future__ import annotations

from typing import Any

from ..base.loc import located
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ._build import FLOATS, append, require, size_list, typed, variable


def _checked(layer: str, input: Variable, rois: Variable, **ints: Any) -> None:
    variable(input, "input", layer, FLOATS)
    variable(rois, "rois", layer, FLOATS)
    for name, value in ints.items():
        typed(value, name, int, layer)


@located
def roi_pool(
    input: Variable,
    rois: Variable,
    pooled_height: int = 1,
    pooled_width: int = 1,
    spatial_scale: float = 1.0,
    rois_lod: Variable | None = None,
) -> Variable:
    """The greatest values of each region's bins: [R, C, pooled_height, pooled_width] from [N, C, H,
    W].

    spatial_scale: the factor from rois (x1, y1, x2, y2) to pixels of the input. rois_lod: int64 [N
    + 1], the offsets of each image's regions.
    """
    _checked("roi_pool", input, rois, pooled_height=pooled_height, pooled_width=pooled_width)
    attrs = {
        "pooled_height": pooled_height,
        "pooled_width": pooled_width,
        "spatial_scale": spatial_scale,
    }
    given = {"X": input, "ROIs": rois, "RoisLod": rois_lod}
    return append(LayerHelper("roi_pool"), given, {"Out": input.dtype, "Argmax": "int32"}, attrs)[0]


@located
def roi_align(
    input: Variable, rois: Variable, pooled_height: int = 1, pooled_width: int = 1, spatial_scale: float = 1.0, sampling_ratio: int = -1,
    name: str | None = None, rois_lod: Variable | None = None,
) -> Variable:  # fmt: skip
    """The means of interpolated samples in each region's bins: [R, C, pooled_height, pooled_width]
    from [N, C, H, W].

    sampling_ratio: samples along each side of a bin; if not positive, its number of pixels. Other
    arguments as in roi_pool.
    """
    _checked(
        "roi_align",
        input,
        rois,
        pooled_height=pooled_height,
        pooled_width=pooled_width,
        sampling_ratio=sampling_ratio,
    )
    attrs = {
        "pooled_height": pooled_height, "pooled_width": pooled_width, "spatial_scale": spatial_scale, "sampling_ratio": sampling_ratio,
    }  # fmt: skip
    return append(
        LayerHelper("roi_align", name=name),
        {"X": input, "ROIs": rois, "RoisLod": rois_lod},
        {"Out": input.dtype},
        attrs,
    )


@located
def psroi_pool(
    input: Variable,
    rois: Variable,
    output_channels: int,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    name: str | None = None,
) -> Variable:
    """The means of each region's bins, each from its own channel: [R, output_channels,
    pooled_height, pooled_width] from [N, output_channels * pooled_height * pooled_width, H, W].
    """
    variable(input, "input", "psroi_pool")
    variable(rois, "rois", "psroi_pool")
    for what, value in (
        ("output_channels", output_channels),
        ("pooled_height", pooled_height),
        ("pooled_width", pooled_width),
    ):
        typed(value, what, int, "psroi_pool")
    typed(spatial_scale, "spatial_scale", float, "psroi_pool")
    attrs = {
        "output_channels": output_channels, "spatial_scale": spatial_scale, "pooled_height": pooled_height, "pooled_width": pooled_width,
    }  # fmt: skip
    return append(
        LayerHelper("psroi_pool", name=name),
        {"X": input, "ROIs": rois},
        {"Out": input.dtype},
        attrs,
    )


@located
def prroi_pool(
    input: Variable, rois: Variable, spatial_scale: float = 1.0, pooled_height: int = 1, pooled_width: int = 1,
    batch_roi_nums: Variable | None = None, name: str | None = None,
) -> Variable:  # fmt: skip
    """The exact means of each region's bins between pixels, with a gradient for rois too: [R, C,
    pooled_height, pooled_width].

    batch_roi_nums: int64 [N], the number of regions per image, if rois has no LoD.
    """
    _checked("prroi_pool", input, rois, pooled_height=pooled_height, pooled_width=pooled_width)
    typed(spatial_scale, "spatial_scale", float, "prroi_pool")
    attrs = {
        "spatial_scale": spatial_scale,
        "pooled_height": pooled_height,
        "pooled_width": pooled_width,
    }
    given = {"X": input, "ROIs": rois, "BatchRoINums": batch_roi_nums}
    return append(LayerHelper("prroi_pool", name=name), given, {"Out": input.dtype}, attrs)


@located
def deformable_roi_pooling(
    input: Variable, rois: Variable, trans: Variable, no_trans: bool = False, spatial_scale: float = 1.0, group_size: Any = (1, 1),
    pooled_height: int = 1, pooled_width: int = 1, part_size: Any = None, sample_per_part: int = 1, trans_std: float = 0.1,
    position_sensitive: bool = False, name: str | None = None,
) -> Variable:  # fmt: skip
    """The means of sample_per_part^2 samples in each region's bins, each part moved by trans [R, 2,
    *part_size].

    trans is in units of trans_std times the region's size; no_trans: no offsets. part_size:
    pooled_height and pooled_width if None. position_sensitive: each bin reads the channels of its
    own group (group_size) of the input, else group_size is [1, 1].
    """
    layer = "deformable_roi_pooling"
    _checked(
        layer,
        input,
        rois,
        pooled_height=pooled_height,
        pooled_width=pooled_width,
        sample_per_part=sample_per_part,
    )
    variable(trans, "trans", layer, FLOATS)
    part = (
        [pooled_height, pooled_width]
        if part_size is None
        else size_list(part_size, 2, "part_size", layer)
    )
    channels = input.shape[1]
    attrs = {
        "no_trans": no_trans, "spatial_scale": spatial_scale, "group_size": size_list(group_size, 2, "group_size", layer),
        "output_dim": channels // pooled_height // pooled_width if position_sensitive else channels, "pooled_height": pooled_height,
        "pooled_width": pooled_width, "part_size": part, "sample_per_part": sample_per_part, "trans_std": trans_std,
    }  # fmt: skip
    helper = LayerHelper("deformable_psroi_pooling", name=name)
    given = {"Input": input, "ROIs": rois, "Trans": trans}
    outs = {"Output": input.dtype, "TopCount": "int32"}
    return append(helper, given, outs, attrs)[0]


@located
def roi_perspective_transform(
    input: Variable,
    rois: Variable,
    transformed_height: int,
    transformed_width: int,
    spatial_scale: float = 1.0,
    name: str | None = None,
) -> tuple[Variable, Variable, Variable]:
    """Quadrilaterals rois [R, 8] of [N, C, H, W], drawn as rectangles [R, C, transformed_height,
    transformed_width].

    Returns them, a mask (int32, [R, 1, ...]: 1 where a pixel lies in the quadrilateral), and the
    projective maps [R, 9].
    """
    layer = "roi_perspective_transform"
    _checked(
        layer,
        input,
        rois,
        transformed_height=transformed_height,
        transformed_width=transformed_width,
    )
    typed(spatial_scale, "spatial_scale", float, layer)
    require(
        len(rois.shape) == 2 and rois.shape[1] in (8, -1),
        f"{layer}'s rois have the shape [R, 8], not {list(rois.shape)}",
    )
    attrs = {
        "transformed_height": transformed_height,
        "transformed_width": transformed_width,
        "spatial_scale": spatial_scale,
    }
    outs = {
        "Out": input.dtype,
        "Mask": "int32",
        "TransformMatrix": input.dtype,
        "Out2InIdx": "int32",
        "Out2InWeights": input.dtype,
    }
    return append(LayerHelper(layer, name=name), {"X": input, "ROIs": rois}, outs, attrs)[:3]


__all__ = [
    "deformable_roi_pooling",
    "prroi_pool",
    "psroi_pool",
    "roi_align",
    "roi_perspective_transform",
    "roi_pool",
]
