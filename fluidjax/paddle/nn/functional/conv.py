"""paddle.nn.functional: convolutions and transposed convolutions with given filters."""

from __future__ import annotations

from typing import Any

from .... import layers
from ....graph.variable import Variable
from ....layer_helper import LayerHelper
from ....layers._build import append, one_of, require, size_list
from ....layers.conv import FORMATS, window_padding


def _checked(
    x: Variable,
    weight: Variable,
    n: int,
    groups: int,
    data_format: str,
    layer: str,
    formats: tuple[str, str],
) -> bool:
    """Whether channels come last."""
    one_of(data_format, "data_format", layer, formats)
    for what, v in (("x", x), ("weight", weight)):
        require(
            v.ndim == n + 2,
            f"{layer}'s {what} has {n + 2} dimensions, but {v.name!r} has shape {list(v.shape)}",
        )
    last = data_format == formats[1]
    channels = x.shape[-1 if last else 1]
    require(
        channels >= 0,
        f"{layer} must know the number of channels, but {x.name!r} has shape {list(x.shape)}",
    )
    require(
        groups > 0 and channels % groups == 0,
        f"{layer}'s {channels} channels of {x.name!r} do not divide into {groups} groups",
    )
    return last


def _with_bias(out: Variable, bias: Variable | None, last: bool) -> Variable:
    return (
        out if bias is None else layers.elementwise_add(out, bias, axis=out.ndim - 1 if last else 1)
    )


def _conv(
    n: int,
    x: Variable,
    weight: Variable,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    data_format: str,
    name: Any,
) -> Variable:
    layer = f"conv{n}d"
    last = _checked(x, weight, n, groups, data_format, layer, FORMATS[n])
    channels = x.shape[-1 if last else 1]
    paddings, algorithm = window_padding(padding, n, last, layer)
    attrs = {
        "strides": size_list(stride, n, "stride", layer), "paddings": paddings, "padding_algorithm": algorithm,
        "dilations": size_list(dilation, n, "dilation", layer), "groups": groups, "data_format": data_format,
    }  # fmt: skip
    depthwise = n == 2 and groups == channels != 1 and weight.shape[0] % channels == 0
    kind = "depthwise_conv2d" if depthwise else layer
    out = append(
        LayerHelper(layer, name=name),
        {"Input": x, "Filter": weight},
        {"Output": x.dtype},
        attrs,
        kind=kind,
    )
    return _with_bias(out, bias, last)


def conv1d(
    x: Variable, weight: Variable, bias: Variable | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1, data_format: str = "NCL", name: str | None = None,
) -> Variable:  # fmt: skip
    """Convolution over one dimension: [N, C, L] and weight [M, C / groups, k] give [N, M, L']; bias
    [M].

    padding: an integer, [one], [before, after], three pairs, "SAME" or "VALID". data_format "NLC":
    channels last. Raises FluidValueError for an argument that does not fit.
    """
    _checked(x, weight, 1, groups, data_format, "conv1d", ("NCL", "NLC"))
    at = -2 if data_format == "NLC" else -1
    image = layers.unsqueeze(x, [x.ndim - 1 if at == -2 else x.ndim])
    out = _conv(2, image, layers.unsqueeze(weight, [weight.ndim]), bias, [*size_list(stride, 1, "stride", "conv1d"), 1],
                _padding1d(padding, data_format), [*size_list(dilation, 1, "dilation", "conv1d"), 1], groups,
                "NHWC" if at == -2 else "NCHW", name)  # fmt: skip
    return layers.squeeze(out, [at])


def _padding1d(padding: Any, data_format: str) -> Any:
    """The padding of an image with the row as its one column."""
    if isinstance(padding, str):
        return padding
    ends, _ = window_padding(padding, 1, data_format == "NLC", "conv1d")
    return [*(ends * 2 if len(ends) == 1 else ends), 0, 0]


def conv2d(
    x: Variable, weight: Variable, bias: Variable | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1, data_format: str = "NCHW", name: str | None = None,
) -> Variable:  # fmt: skip
    """Convolution: [N, C, H, W] and weight [M, C / groups, kh, kw] give [N, M, H', W']; bias [M].

    padding: as in fluid.layers.conv2d. data_format "NHWC": channels last. With as many groups as
    channels: depthwise_conv2d. Raises FluidValueError for an argument that does not fit.
    """
    return _conv(2, x, weight, bias, stride, padding, dilation, groups, data_format, name)


def conv3d(
    x: Variable, weight: Variable, bias: Variable | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1, data_format: str = "NCDHW", name: str | None = None,
) -> Variable:  # fmt: skip
    """conv2d over three dimensions: [N, C, D, H, W], or "NDHWC"."""
    return _conv(3, x, weight, bias, stride, padding, dilation, groups, data_format, name)


def _transposed(
    n: int, x: Variable, weight: Variable, bias: Any, stride: Any, padding: Any, output_padding: Any, groups: int, dilation: Any,
    output_size: Any, data_format: str, name: Any,
) -> Variable:  # fmt: skip
    layer = f"conv{n}d_transpose"
    last = _checked(x, weight, n, groups, data_format, layer, FORMATS[n])
    channels = x.shape[-1 if last else 1]
    paddings, algorithm = window_padding(padding, n, last, layer)
    more = size_list(output_padding, n, "output_padding", layer)
    require(
        output_size is None or not any(more), f"{layer} takes one of output_size and output_padding"
    )
    attrs = {
        "strides": size_list(stride, n, "stride", layer), "paddings": paddings, "padding_algorithm": algorithm,
        "dilations": size_list(dilation, n, "dilation", layer), "groups": groups, "data_format": data_format,
    }  # fmt: skip
    if output_size is not None:
        attrs["output_size"] = size_list(output_size, n, "output_size", layer)
    if any(more):
        attrs["output_padding"] = more
    depthwise = n == 2 and groups == channels != 1 and weight.shape[1] == 1
    kind = "depthwise_conv2d_transpose" if depthwise else layer
    out = append(
        LayerHelper(layer, name=name),
        {"Input": x, "Filter": weight},
        {"Output": x.dtype},
        attrs,
        kind=kind,
    )
    return _with_bias(out, bias, last)


def conv1d_transpose(
    x: Variable, weight: Variable, bias: Variable | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    groups: int = 1, dilation: Any = 1, output_size: Any = None, data_format: str = "NCL", name: str | None = None,
) -> Variable:  # fmt: skip
    """The transpose of conv1d: weight [C, M / groups, k].

    L' = (L - 1) * stride - padding + dilation * (k - 1) + 1 + output_padding, or output_size.
    Raises FluidValueError for an argument that does not fit.
    """
    _checked(x, weight, 1, groups, data_format, "conv1d_transpose", ("NCL", "NLC"))
    at = -2 if data_format == "NLC" else -1
    one = (
        [*size_list(output_size, 1, "output_size", "conv1d_transpose"), 1]
        if output_size is not None
        else None
    )
    image = layers.unsqueeze(x, [x.ndim - 1 if at == -2 else x.ndim])
    out = _transposed(2, image, layers.unsqueeze(weight, [weight.ndim]), bias, [*size_list(stride, 1, "stride", "conv1d_transpose"), 1],
                      _padding1d(padding, data_format), [*size_list(output_padding, 1, "output_padding", "conv1d_transpose"), 0],
                      groups, [*size_list(dilation, 1, "dilation", "conv1d_transpose"), 1], one,
                      "NHWC" if at == -2 else "NCHW", name)  # fmt: skip
    return layers.squeeze(out, [at])


def conv2d_transpose(
    x: Variable, weight: Variable, bias: Variable | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    dilation: Any = 1, groups: int = 1, output_size: Any = None, data_format: str = "NCHW", name: str | None = None,
) -> Variable:  # fmt: skip
    """The transpose of conv2d: weight [C, M / groups, kh, kw].

    H' = (H - 1) * stride - padding + dilation * (kh - 1) + 1 + output_padding, or output_size.
    Raises FluidValueError for an argument that does not fit.
    """
    return _transposed(
        2,
        x,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
        output_size,
        data_format,
        name,
    )


def conv3d_transpose(
    x: Variable, weight: Variable, bias: Variable | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    groups: int = 1, dilation: Any = 1, output_size: Any = None, data_format: str = "NCDHW", name: str | None = None,
) -> Variable:  # fmt: skip
    """conv2d_transpose over three dimensions: [N, C, D, H, W], or "NDHWC"."""
    return _transposed(
        3,
        x,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
        output_size,
        data_format,
        name,
    )


__all__ = ["conv1d", "conv1d_transpose", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose"]
