"""Layers on the rows of sequences: convolutions, slices, windows."""

from __future__ import annotations

from typing import Any

from ..base.loc import located
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ._build import FLOATS, INTS, append, size_list, variable

NUMBERS = (*FLOATS, *INTS)


@located
def sequence_conv(
    input: Variable,
    num_filters: int,
    filter_size: int = 3,
    filter_stride: int = 1,
    padding: bool = True,
    padding_start: int | None = None,
    bias_attr: Any = None,
    param_attr: Any = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """A convolution along each sequence: [rows, num_filters] from input [rows, D], 0 beyond the
    ends of a sequence.

    A window has filter_size rows and begins padding_start rows away (default -(filter_size / 2));
    filter_stride is 1. padding is ignored, as in 1.8.5. See the op sequence_conv.
    """
    variable(input, "input", "sequence_conv", FLOATS)
    helper = LayerHelper(
        "sequence_conv", input=input, bias_attr=bias_attr, param_attr=param_attr, act=act, name=name
    )
    dtype = helper.input_dtype()
    weight = helper.create_parameter(
        helper.param_attr, [filter_size * input.shape[1], num_filters], dtype
    )
    start = -int(filter_size // 2) if padding_start is None else padding_start
    attrs = {"contextStride": filter_stride, "contextStart": start, "contextLength": filter_size}
    out = append(helper, {"X": [input], "Filter": [weight]}, {"Out": dtype}, attrs)
    return helper.append_activation(helper.append_bias_op(out))


@located
def row_conv(
    input: Variable, future_context_size: int, param_attr: Any = None, act: str | None = None
) -> Variable:
    """Out[t] = the sum of input[t + j] * w[j], j <= future_context_size, up to the end of the
    sequence. input [rows, D] or [N, T, D].
    """
    variable(input, "input", "row_conv", ("float32",))
    helper = LayerHelper("row_conv", input=input, param_attr=param_attr, act=act)
    dtype = helper.input_dtype()
    weight = helper.create_parameter(
        helper.param_attr, [future_context_size + 1, input.shape[-1]], dtype
    )
    return helper.append_activation(
        append(helper, {"X": [input], "Filter": [weight]}, {"Out": dtype})
    )


@located
def sequence_slice(
    input: Variable, offset: Variable, length: Variable, name: str | None = None
) -> Variable:
    """length[n] rows of sequence n, from offset[n] on. input one LoD level; offset, length [N, 1]
    integers.
    """
    variable(input, "input", "sequence_slice", NUMBERS)
    variable(offset, "offset", "sequence_slice", INTS)
    variable(length, "length", "sequence_slice", INTS)
    helper = LayerHelper("sequence_slice", input=input, name=name)
    offset.stop_gradient = True
    length.stop_gradient = True
    return append(
        helper, {"X": input, "Offset": offset, "Length": length}, {"Out": helper.input_dtype()}
    )


@located
def sequence_unpad(x: Variable, length: Variable, name: str | None = None) -> Variable:
    """The first length[n] rows of each x[n] as sequences: [rows, ...] with a LoD from x [N,
    longest, ...] and length [N], int64.
    """
    variable(x, "x", "sequence_unpad", NUMBERS)
    variable(length, "length", "sequence_unpad", ("int64",))
    helper = LayerHelper("sequence_unpad", name=name)
    length.stop_gradient = True
    return append(helper, {"X": x, "Length": length}, {"Out": x.dtype})


@located
def sequence_reshape(input: Variable, new_dim: int) -> Variable:
    """The numbers of each sequence in rows of new_dim. input [rows, D], one LoD level."""
    variable(input, "input", "sequence_reshape", NUMBERS)
    helper = LayerHelper("sequence_reshape", input=input)
    return append(helper, {"X": [input]}, {"Out": helper.input_dtype()}, {"new_dim": new_dim})


@located
def sequence_scatter(
    input: Variable, index: Variable, updates: Variable, name: str | None = None
) -> Variable:
    """input [N, D] with updates[r] added to input[n, index[r]], for every row r of sequence n of
    index and updates.
    """
    variable(input, "input", "sequence_scatter", NUMBERS)
    variable(index, "index", "sequence_scatter", INTS)
    variable(updates, "updates", "sequence_scatter", NUMBERS)
    helper = LayerHelper("sequence_scatter", input=input, name=name)
    return append(
        helper, {"X": input, "Ids": index, "Updates": updates}, {"Out": helper.input_dtype()}
    )


@located
def sequence_enumerate(
    input: Variable, win_size: int, pad_value: int = 0, name: str | None = None
) -> Variable:
    """The win_size ids that begin at each row, [rows, win_size]; pad_value beyond the end of a
    sequence. input [rows, 1] integers.
    """
    variable(input, "input", "sequence_enumerate", INTS)
    helper = LayerHelper("sequence_enumerate", input=input, name=name)
    attrs = {"win_size": win_size, "pad_value": pad_value}
    return append(helper, {"X": input}, {"Out": helper.input_dtype()}, attrs, stop="Out")


@located
def im2sequence(
    input: Variable,
    filter_size: Any = 1,
    stride: Any = 1,
    padding: Any = 0,
    input_image_size: Variable | None = None,
    out_stride: Any = 1,
    name: str | None = None,
) -> Variable:
    """The windows of each image, one per row, as a sequence: [N * windows, C * filter] from input
    [N, C, H, W].

    padding: one number, two (vertical, horizontal) or four (up, left, down, right).
    input_image_size [N, 2]: real sizes of the images, out_stride times those in input. See the op
    im2sequence.
    """
    variable(input, "input", "im2sequence", ("float32",))
    kernels, strides = (
        size_list(filter_size, 2, "filter_size", "im2sequence"),
        size_list(stride, 2, "stride", "im2sequence"),
    )
    four = isinstance(padding, list | tuple) and len(padding) == 4
    paddings = list(padding) if four else size_list(padding, 2, "padding", "im2sequence") * 2
    inputs, attrs = {"X": input}, {"kernels": kernels, "strides": strides, "paddings": paddings}
    if input_image_size is not None:
        inputs["Y"] = input_image_size
        attrs["out_stride"] = size_list(out_stride, 2, "out_stride", "im2sequence")
    helper = LayerHelper("im2sequence", input=input, name=name)
    return append(helper, inputs, {"Out": helper.input_dtype()}, attrs)


@located
def add_position_encoding(
    input: Variable, alpha: float, beta: float, name: str | None = None
) -> Variable:
    """alpha * input + beta * the sines and cosines of each row's position in its sequence; [N, T,
    D], or rows with a LoD.
    """
    variable(input, "input", "add_position_encoding", FLOATS)
    helper = LayerHelper("add_position_encoding", input=input, name=name)
    return append(
        helper, {"X": [input]}, {"Out": helper.input_dtype()}, {"alpha": alpha, "beta": beta}
    )


@located
def filter_by_instag(
    ins: Variable, ins_tag: Variable, filter_tag: Variable, is_lod: bool, out_val_if_empty: int = 0
) -> list[Variable]:
    """The instances of ins that have a tag of filter_tag, and a weight [n, 1] for the loss of each:
    1, or 0 if there is no such instance.

    ins [rows, D]; with is_lod an instance is a sequence of it, else a row. ins_tag: a sequence of
    tags for each instance, int64; filter_tag int64 [k]. If no instance has one, the first result is
    a row of out_val_if_empty. See the op filter_by_instag.
    """
    helper = LayerHelper("filter_by_instag")
    inputs = {"Ins": ins, "Ins_tag": ins_tag, "Filter_tag": filter_tag}
    outs = {"Out": ins.dtype, "LossWeight": "float64", "IndexMap": ins_tag.dtype}
    attrs = {"is_lod": is_lod, "out_val_if_empty": out_val_if_empty}
    out, weight, _ = append(helper, inputs, outs, attrs)
    return [out, weight]


__all__ = [
    "add_position_encoding", "filter_by_instag", "im2sequence", "row_conv", "sequence_conv", "sequence_enumerate", "sequence_reshape",
    "sequence_scatter", "sequence_slice", "sequence_unpad",
]  # fmt: skip
