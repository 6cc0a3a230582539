"""Layers that read images at computed positions, or compare them: spatial transformers, deformable
convolutions, distillation.
"""

from __future__ import annotations

import math
from typing import Any

from ..base.loc import located
from ..graph.variable import Variable
from ..initializer import ConstantInitializer, NormalInitializer
from ..layer_helper import LayerHelper
from ._build import FLOATS, append, require, size_list, typed, variable


@located
def affine_grid(theta: Variable, out_shape: Any, name: str | None = None) -> Variable:
    """Positions [N, H, W, 2] for grid_sampler: theta [N, 2, 3] times (x, y, 1) of every pixel of an
    image of out_shape, N, C, H, W.

    out_shape: a list, a tuple or an int32 variable; x and y go from -1 to 1. name is ignored, as in
    1.8.5.
    """
    variable(theta, "theta", "affine_grid", FLOATS)
    typed(out_shape, "out_shape", (list, tuple, Variable), "affine_grid")
    helper = LayerHelper("affine_grid")
    if isinstance(out_shape, Variable):
        variable(out_shape, "out_shape", "affine_grid", ("int32",))
        return append(helper, {"Theta": theta, "OutputShape": out_shape}, {"Output": theta.dtype})
    return append(
        helper, {"Theta": theta}, {"Output": theta.dtype}, {"output_shape": list(out_shape)}
    )


@located
def grid_sampler(x: Variable, grid: Variable, name: str | None = None) -> Variable:
    """x [N, C, H, W] interpolated at the positions grid [N, H, W, 2] (x, then y, from -1 to 1); 0
    outside.
    """
    variable(x, "x", "grid_sampler", FLOATS)
    variable(grid, "grid", "grid_sampler", FLOATS)
    return append(
        LayerHelper("grid_sampler", name=name), {"X": x, "Grid": grid}, {"Output": x.dtype}
    )


@located
def similarity_focus(input: Variable, axis: int, indexes: Any, name: str | None = None) -> Variable:
    """A mask of input [N, A, B, C]: 1 in the rows and columns where a slice at `indexes` of `axis`
    is greatest, each row and column once.
    """
    variable(input, "input", "similarity_focus", FLOATS)
    typed(axis, "axis", int, "similarity_focus")
    typed(indexes, "indexes", list, "similarity_focus")
    require(axis in (1, 2, 3), f"similarity_focus's axis is 1, 2 or 3, not {axis}")
    require(len(indexes) > 0, "similarity_focus's indexes are at least one")
    attrs = {"axis": axis, "indexes": indexes}
    return append(
        LayerHelper("similarity_focus", name=name), {"X": input}, {"Out": input.dtype}, attrs
    )


@located
def fsp_matrix(x: Variable, y: Variable) -> Variable:
    """The means over the plane of the products of channels of x [N, C, H, W] and y [N, D, H, W]:
    [N, C, D].
    """
    variable(x, "x", "fsp_matrix", FLOATS)
    variable(y, "y", "fsp_matrix", FLOATS)
    return append(LayerHelper("fsp_matrix"), {"X": x, "Y": y}, {"Out": x.dtype}, kind="fsp")


@located
def center_loss(
    input: Variable,
    label: Variable,
    num_classes: int,
    alpha: Any,
    param_attr: Any,
    update_center: bool = True,
) -> Variable:
    """Half the squared distance of input [N, D] from the centre of its class: [N, 1]. label: int64
    [N, 1].

    The centres are a parameter [num_classes, D] that no optimizer trains: with update_center each
    step moves them toward their samples by alpha, a number or a variable of one element.
    """
    variable(input, "input", "center_loss")
    variable(label, "label", "center_loss")
    helper = LayerHelper("center_loss", param_attr=param_attr)
    centers = helper.create_parameter(helper.param_attr, [num_classes, input.shape[1]], input.dtype)
    centers.stop_gradient = True
    rate = alpha if isinstance(alpha, Variable) else _rate(helper, alpha)
    given = {"X": input, "Label": label, "Centers": centers, "CenterUpdateRate": rate}
    outs = {"SampleCenterDiff": input.dtype, "Loss": input.dtype, "CentersOut": centers}
    return append(helper, given, outs, {"cluster_num": num_classes, "need_update": update_center})[
        1
    ]


def _rate(helper: LayerHelper, alpha: float) -> Variable:
    """A variable that holds the update rate of the centres."""
    rate = helper.create_variable(
        name="centerloss_alpha", shape=[1], dtype="float32", persistable=True, stop_gradient=True
    )
    ConstantInitializer(alpha)(rate, rate.block)
    return rate


@located
def deformable_conv(
    input: Variable, offset: Variable, mask: Variable | None, num_filters: int, filter_size: Any, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int | None = None, deformable_groups: int | None = None, im2col_step: int | None = None,
    param_attr: Any = None, bias_attr: Any = None, modulated: bool = True, name: str | None = None,
) -> Variable:  # fmt: skip
    """A convolution of input [N, C, H, W] whose taps are moved by `offset` and, if modulated,
    multiplied by `mask`.

    offset [N, 2 * deformable_groups * kh * kw, H', W'], mask [N, deformable_groups * kh * kw, H',
    W'] (None unless modulated); the filter is [num_filters, C / groups, kh, kw], the result [N,
    num_filters, H', W'].
    """
    layer = "deformable_conv"
    variable(input, "input", layer, FLOATS)
    variable(offset, "offset", layer, FLOATS)
    typed(mask, "mask", (Variable, type(None)), layer)
    require(
        mask is not None or not modulated, f"{layer}'s mask is a variable unless modulated=False"
    )
    channels = input.shape[1]
    require(
        channels % (groups or 1) == 0,
        f"{layer}'s groups={groups} does not divide the input's {channels} channels",
    )
    helper = LayerHelper(layer, param_attr=param_attr, bias_attr=bias_attr, name=name)
    window = size_list(filter_size, 2, "filter_size", layer)
    shape = [num_filters, channels // (groups or 1), *window]
    deviation = math.sqrt(2.0 / (window[0] * window[1] * channels))
    w = helper.create_parameter(
        helper.param_attr, shape, input.dtype, default_initializer=NormalInitializer(0.0, deviation)
    )
    attrs = {
        "strides": size_list(stride, 2, "stride", layer), "paddings": size_list(padding, 2, "padding", layer),
        "dilations": size_list(dilation, 2, "dilation", layer), "groups": groups or 1, "deformable_groups": deformable_groups or 1,
        "im2col_step": im2col_step or 64,
    }  # fmt: skip
    given = {"Input": input, "Filter": w, "Offset": offset, "Mask": mask if modulated else None}
    out = append(
        helper,
        given,
        {"Output": input.dtype},
        attrs,
        kind=layer if modulated else "deformable_conv_v1",
    )
    return helper.append_bias_op(out, dim_start=1, dim_end=2)


__all__ = [
    "affine_grid",
    "center_loss",
    "deformable_conv",
    "fsp_matrix",
    "grid_sampler",
    "similarity_focus",
]
