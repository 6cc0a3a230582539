"""paddle.static.nn: layers with parameters, under the names and arguments of Paddle 2.0."""

from __future__ import annotations

from typing import Any

from ... import layers
from ...graph.variable import Variable
from ...input import embedding as embedding
from ...layers import batch_norm as batch_norm
from ...layers import bilinear_tensor_product as bilinear_tensor_product
from ...layers import branches
from ...layers import conv2d as conv2d
from ...layers import conv2d_transpose as conv2d_transpose
from ...layers import conv3d as conv3d
from ...layers import conv3d_transpose as conv3d_transpose
from ...layers import create_parameter as create_parameter
from ...layers import data_norm as data_norm
from ...layers import group_norm as group_norm
from ...layers import instance_norm as instance_norm
from ...layers import layer_norm as layer_norm
from ...layers import nce as nce
from ...layers import py_func as py_func
from ...layers import row_conv as row_conv
from ...layers import sequence_concat as sequence_concat
from ...layers import sequence_conv as sequence_conv
from ...layers import sequence_enumerate as sequence_enumerate
from ...layers import sequence_expand as sequence_expand
from ...layers import sequence_expand_as as sequence_expand_as
from ...layers import sequence_first_step as sequence_first_step
from ...layers import sequence_last_step as sequence_last_step
from ...layers import sequence_pad as sequence_pad
from ...layers import sequence_pool as sequence_pool
from ...layers import sequence_reshape as sequence_reshape
from ...layers import sequence_reverse as sequence_reverse
from ...layers import sequence_scatter as sequence_scatter
from ...layers import sequence_slice as sequence_slice
from ...layers import sequence_softmax as sequence_softmax
from ...layers import sequence_unpad as sequence_unpad
from ...layers import spectral_norm as spectral_norm
from ...layers._build import one_of
from ...layers.branches import case as case
from ...layers.branches import switch_case as switch_case
from ...layers.loops import while_loop as while_loop


def fc(
    x: Any,
    size: int,
    num_flatten_dims: int = 1,
    weight_attr: Any = None,
    bias_attr: Any = None,
    activation: str | None = None,
    name: str | None = None,
) -> Variable:
    """activation(sum_i flatten(x_i) @ w_i + b): fluid's layers.fc.

    x: a variable or a list of them; the first num_flatten_dims dimensions stay, the others are
    merged.
    """
    return layers.fc(x, size, num_flatten_dims, weight_attr, bias_attr, activation, name)


def cond(
    pred: Variable,
    true_fn: Any = None,
    false_fn: Any = None,
    name: str | None = None,
    return_names: Any = None,
) -> Any:
    """The result of true_fn() if pred is true, else of false_fn(): fluid's layers.cond.
    return_names is ignored.
    """
    return branches.cond(pred, true_fn, false_fn, name)


def prelu(
    x: Variable,
    mode: str,
    param_attr: Any = None,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """x where x > 0, else a * x: a is trained: one number ("all"), one per channel ("channel") or
    one per element of a sample ("element").

    data_format: "NHWC" if the channels come last. Raises FluidValueError for another mode or
    format.
    """
    one_of(
        data_format, "data_format", "prelu", ("NC", "NCL", "NCHW", "NCDHW", "NLC", "NHWC", "NDHWC")
    )
    if data_format[-1] != "C" or data_format == "NC" or mode != "channel":
        return layers.prelu(x, mode, param_attr, name)
    moved = layers.transpose(x, [0, x.ndim - 1, *range(1, x.ndim - 1)])
    out = layers.prelu(moved, mode, param_attr, name)
    return layers.transpose(out, [0, *range(2, x.ndim), 1])


def deform_conv2d(
    x: Variable, offset: Variable, mask: Variable | None, num_filters: int, filter_size: Any, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1, deformable_groups: int = 1, im2col_step: int = 1, weight_attr: Any = None, bias_attr: Any = None,
    name: str | None = None,
) -> Variable:  # fmt: skip
    """A convolution whose taps are moved by `offset` and weighted by `mask` (None: version 1):
    fluid's layers.deformable_conv.
    """
    return layers.deformable_conv(
        x, offset, mask, num_filters, filter_size, stride, padding, dilation, groups, deformable_groups, im2col_step, weight_attr,
        bias_attr, mask is not None, name,
    )  # fmt: skip


__all__ = [
    "batch_norm", "bilinear_tensor_product", "case", "cond", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose",
    "create_parameter", "data_norm", "deform_conv2d", "embedding", "fc", "group_norm", "instance_norm", "layer_norm", "nce",
    "prelu", "py_func", "row_conv", "sequence_concat", "sequence_conv", "sequence_enumerate", "sequence_expand",
    "sequence_expand_as", "sequence_first_step", "sequence_last_step", "sequence_pad", "sequence_pool", "sequence_reshape",
    "sequence_reverse", "sequence_scatter", "sequence_slice", "sequence_softmax", "sequence_unpad", "spectral_norm",
    "switch_case", "while_loop",
]  # fmt: skip
