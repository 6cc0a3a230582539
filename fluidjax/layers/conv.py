"""Convolutions and transposed convolutions over two and three dimensions."""

from __future__ import annotations

import math
from typing import Any

from ..base.loc import located
from ..graph.variable import Variable
from ..initializer import NormalInitializer
from ..layer_helper import LayerHelper
from ._build import HALF, append, one_of, require, shapes_fit, size_list, variable

FORMATS = {2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


def window_padding(
    padding: Any, n: int, channel_last: bool, layer: str, what: str = "padding"
) -> tuple[list[int], str]:
    """Attributes `paddings` and `padding_algorithm` from the padding argument of a layer over `n`
    dimensions:

    "SAME" or "VALID" (any case); one integer; n of them; 2n (before and after each dimension); or n
    + 2 pairs, one for each dimension of the input, with [0, 0] for batch and channels. Symmetric
    pairs become n integers.
    """
    if isinstance(padding, str):
        require(
            padding.upper() in ("SAME", "VALID"),
            f"{layer}'s {what} is 'SAME', 'VALID' or numbers, not {padding!r}",
        )
        return [0] * n, padding.upper()
    if (
        isinstance(padding, list | tuple)
        and len(padding) == n + 2
        and all(isinstance(p, list | tuple) for p in padding)
    ):
        pairs = [list(p) for p in padding]
        outer = (pairs[0], pairs[-1]) if channel_last else pairs[:2]
        require(
            all(p == [0, 0] for p in outer),
            f"{layer}'s {what} {padding} pads the batch or the channels; these pairs are [0, 0]",
        )
        padding = [v for p in (pairs[1:-1] if channel_last else pairs[2:]) for v in p]
    if isinstance(padding, list | tuple) and len(padding) == 2 * n:
        ends = size_list(padding, 2 * n, what, layer)
        return (ends[::2] if ends[::2] == ends[1::2] else ends), "EXPLICIT"
    return size_list(padding, n, what, layer), "EXPLICIT"


def _layout(
    layer: str, input: Variable, n: int, use_cudnn: Any, data_format: str
) -> tuple[bool, int]:
    """Whether channels come last, and their number."""
    require(isinstance(use_cudnn, bool), f"{layer}'s use_cudnn is True or False, not {use_cudnn!r}")
    one_of(data_format, "data_format", layer, FORMATS[n])
    shapes_fit(
        input.ndim == n + 2,
        f"{layer}'s input has {n + 2} dimensions, but {input.name!r} has shape {list(input.shape)}",
    )
    last = data_format == FORMATS[n][1]
    channels = input.shape[-1 if last else 1]
    require(
        channels >= 0,
        f"{layer} must know the number of channels, but {input.name!r} has shape"
        f" {list(input.shape)}",
    )
    return last, channels


def _finish(helper: LayerHelper, out: Variable, channel_last: bool, n: int) -> Variable:
    at = n + 1 if channel_last else 1
    return helper.append_activation(helper.append_bias_op(out, dim_start=at, dim_end=at + 1))


def _conv(
    n: int,
    input: Any,
    num_filters: int,
    filter_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int | None,
    use_cudnn: bool,
    data_format: str,
    **names: Any,
) -> Variable:
    layer = f"conv{n}d"
    variable(input, "input", layer, HALF)
    last, channels = _layout(layer, input, n, use_cudnn, data_format)
    require(names["param_attr"] is not False, f"{layer} needs its filter; param_attr is not False")
    if n == 2 and channels == groups and num_filters % channels == 0 and not use_cudnn:
        layer = "depthwise_conv2d"
    require(
        channels % (groups or 1) == 0,
        f"{layer}'s {channels} channels of {input.name!r} do not divide into {groups} groups",
    )
    helper = LayerHelper(layer, use_cudnn=use_cudnn, **names)
    window = size_list(filter_size, n, "filter_size", layer)
    strides, dilations = (
        size_list(stride, n, "stride", layer),
        size_list(dilation, n, "dilation", layer),
    )
    paddings, algorithm = window_padding(padding, n, last, layer)
    deviation = math.sqrt(2.0 / (math.prod(window) * channels))
    shape = [num_filters, channels // (groups or 1), *window]
    w = helper.create_parameter(
        helper.param_attr, shape, input.dtype, default_initializer=NormalInitializer(0.0, deviation)
    )
    attrs = {
        "strides": strides,
        "paddings": paddings,
        "dilations": dilations,
        "groups": groups,
        "use_cudnn": use_cudnn,
        "padding_algorithm": algorithm,
        "data_format": data_format,
    }
    out = append(helper, {"Input": input, "Filter": w}, {"Output": input.dtype}, attrs)
    return _finish(helper, out, last, n)


@located
def conv2d(
    input: Variable,
    num_filters: int,
    filter_size: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCHW",
) -> Variable:
    """act(convolution + bias): [N, C, H, W] gives [N, num_filters, H', W'] with a filter
    [num_filters, C / groups, kh, kw].

    filter_size, stride, dilation: an integer or a pair. padding: see window_padding. data_format
    "NHWC": channels last (the filter's layout stays). use_cudnn: False with groups == C selects a
    depthwise_conv2d op, otherwise it is ignored. Raises FluidTypeError for integers,
    FluidValueError for an argument that does not fit.
    """
    return _conv(2, input, num_filters, filter_size, stride, padding, dilation, groups, use_cudnn, data_format,
                 param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)  # fmt: skip


@located
def conv3d(
    input: Variable,
    num_filters: int,
    filter_size: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCDHW",
) -> Variable:
    """conv2d over three dimensions: [N, C, D, H, W], or "NDHWC". use_cudnn is ignored."""
    return _conv(3, input, num_filters, filter_size, stride, padding, dilation, groups, use_cudnn, data_format,
                 param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)  # fmt: skip


def _window_from_output(input: Variable, output: list[int], n: int, last: bool, stride: list[int], paddings: list[int],
                        algorithm: str, dilation: list[int]) -> list[int]:  # fmt: skip
    """The filter size that turns the input's size into `output`."""
    sizes = input.shape[1:-1] if last else input.shape[2:]
    if algorithm == "SAME":
        paddings = [0] * n
    total = (
        [2 * p for p in paddings]
        if len(paddings) == n
        else [paddings[2 * i] + paddings[2 * i + 1] for i in range(n)]
    )
    return [
        (output[i] - (sizes[i] - 1) * stride[i] + total[i] - 1) // dilation[i] + 1 for i in range(n)
    ]


def _conv_transpose(
    n: int,
    input: Any,
    num_filters: int,
    output_size: Any,
    filter_size: Any,
    padding: Any,
    stride: Any,
    dilation: Any,
    groups: int | None,
    use_cudnn: bool,
    data_format: str,
    **names: Any,
) -> Variable:
    layer = f"conv{n}d_transpose"
    variable(input, "input", layer, HALF)
    last, channels = _layout(layer, input, n, use_cudnn, data_format)
    require(names["param_attr"] is not False, f"{layer} needs its filter; param_attr is not False")
    require(
        not (output_size is None and filter_size is None),
        f"{layer} needs a filter_size or an output_size",
    )
    if n == 2 and channels == groups and num_filters == channels and not use_cudnn:
        layer = "depthwise_conv2d_transpose"
    helper = LayerHelper(layer, use_cudnn=use_cudnn, **names)
    strides, dilations = (
        size_list(stride, n, "stride", layer),
        size_list(dilation, n, "dilation", layer),
    )
    paddings, algorithm = window_padding(padding, n, last, layer)
    output = None if output_size is None else size_list(output_size, n, "output_size", layer)
    if filter_size is None:
        window = _window_from_output(
            input, output or [], n, last, strides, paddings, algorithm, dilations
        )
    else:
        window = size_list(filter_size, n, "filter_size", layer)
    w = helper.create_parameter(
        helper.param_attr, [channels, num_filters // (groups or 1), *window], input.dtype
    )
    attrs = {
        "output_size": output or [], "strides": strides, "paddings": paddings, "padding_algorithm": algorithm,
        "dilations": dilations, "groups": groups or 1, "use_cudnn": use_cudnn,
        "data_format": "NHWC" if last else "NCHW",  # Fluid's attribute, for three dimensions too
    }  # fmt: skip
    out = append(helper, {"Input": input, "Filter": w}, {"Output": input.dtype}, attrs)
    return _finish(helper, out, last, n)


@located
def conv2d_transpose(
    input: Variable,
    num_filters: int,
    output_size: Any = None,
    filter_size: Any = None,
    padding: Any = 0,
    stride: Any = 1,
    dilation: Any = 1,
    groups: int | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCHW",
) -> Variable:
    """The transpose of conv2d: H' = (H - 1) stride - padding + dilation (kh - 1) + 1; filter [C,
    num_filters / groups, kh, kw].

    output_size selects one of the sizes that a stride allows, and without filter_size decides the
    filter size. Other arguments as in conv2d. Raises FluidValueError without either size.
    """
    return _conv_transpose(
        2,
        input,
        num_filters,
        output_size,
        filter_size,
        padding,
        stride,
        dilation,
        groups,
        use_cudnn,
        data_format,
        param_attr=param_attr,
        bias_attr=bias_attr,
        act=act,
        name=name,
    )


@located
def conv3d_transpose(
    input: Variable,
    num_filters: int,
    output_size: Any = None,
    filter_size: Any = None,
    padding: Any = 0,
    stride: Any = 1,
    dilation: Any = 1,
    groups: int | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCDHW",
) -> Variable:
    """conv2d_transpose over three dimensions: [N, C, D, H, W], or "NDHWC"."""
    return _conv_transpose(
        3,
        input,
        num_filters,
        output_size,
        filter_size,
        padding,
        stride,
        dilation,
        groups,
        use_cudnn,
        data_format,
        param_attr=param_attr,
        bias_attr=bias_attr,
        act=act,
        name=name,
    )


__all__ = ["conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose"]
