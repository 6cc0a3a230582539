"""paddle.nn.functional: normalisation with given statistics, scales and biases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .... import layers
from ....graph.variable import Variable
from ....layer_helper import LayerHelper
from ....layers._build import append, one_of, require

_FIRST, _LAST = ("NC", "NCL", "NCHW", "NCDHW"), ("NLC", "NHWC", "NDHWC")


def batch_norm(
    x: Variable, running_mean: Variable, running_var: Variable, weight: Variable | None = None, bias: Variable | None = None,
    training: bool = False, momentum: float = 0.9, epsilon: float = 1e-05, data_format: str = "NCHW",
    use_global_stats: bool | None = None, name: str | None = None,
) -> Variable:  # fmt: skip
    """weight * (x - mean) / sqrt(variance + epsilon) + bias, per channel.

    training: uses the batch's statistics and updates the running ones: running = momentum * running
    + (1 - momentum) * batch. Otherwise, or with use_global_stats, uses the running ones. Raises
    FluidValueError for another data_format.
    """
    one_of(data_format, "data_format", "batch_norm", (*_FIRST, *_LAST))
    layout = "NCHW" if data_format in _FIRST else "NHWC"
    shape = [int(running_mean.shape[0])]
    inputs = {"X": x, "Scale": _given(weight, shape, 1.0, x), "Bias": _given(bias, shape, 0.0, x)}
    inputs |= {"Mean": running_mean, "Variance": running_var}
    attrs = {
        "momentum": momentum,
        "epsilon": epsilon,
        "data_layout": layout,
        "is_test": not training,
    }
    attrs |= {"use_global_stats": not training if use_global_stats is None else use_global_stats}
    if use_global_stats is not None:
        attrs["trainable_statistics"] = not use_global_stats
    outs = {
        "Y": x.dtype, "MeanOut": running_mean, "VarianceOut": running_var, "SavedMean": running_mean.dtype,
        "SavedVariance": running_mean.dtype,
    }  # fmt: skip
    return append(
        LayerHelper("batch_norm", name=name), inputs, outs, attrs, stop="SavedMean SavedVariance"
    )[0]


def _given(value: Variable | None, shape: list[int], fill: float, x: Variable) -> Variable:
    """The given variable, or this many equal numbers."""
    return layers.fill_constant(shape, x.dtype, fill) if value is None else value


def instance_norm(
    x: Variable, running_mean: Variable | None = None, running_var: Variable | None = None, weight: Variable | None = None,
    bias: Variable | None = None, use_input_stats: bool = True, momentum: float = 0.9, eps: float = 1e-05,
    data_format: str = "NCHW", name: str | None = None,
) -> Variable:  # fmt: skip
    """weight * (x - mean) / sqrt(variance + eps) + bias, with statistics per channel and sample.

    The running statistics and momentum are ignored, as in Paddle's static mode. Raises
    FluidValueError for channels last.
    """
    one_of(data_format, "data_format", "instance_norm", _FIRST[1:])
    shape = [int(x.shape[1])]
    inputs = {"X": x, "Scale": _given(weight, shape, 1.0, x), "Bias": _given(bias, shape, 0.0, x)}
    outs = {"Y": x.dtype, "SavedMean": x.dtype, "SavedVariance": x.dtype}
    return append(
        LayerHelper("instance_norm", name=name),
        inputs,
        outs,
        {"epsilon": eps},
        stop="SavedMean SavedVariance",
    )[0]


def layer_norm(
    x: Variable, normalized_shape: Any, weight: Variable | None = None, bias: Variable | None = None, epsilon: float = 1e-05,
    name: str | None = None,
) -> Variable:  # fmt: skip
    """weight * (x - mean) / sqrt(variance + epsilon) + bias, over the last dimensions, with the
    sizes normalized_shape.

    weight, bias: with as many elements as these dimensions. Raises FluidValueError if the sizes are
    not x's.
    """
    shape = (
        list(normalized_shape) if isinstance(normalized_shape, list | tuple) else [normalized_shape]
    )
    begin = x.ndim - len(shape)
    fits = begin >= 0 and list(x.shape[begin:]) == shape
    require(
        fits, f"layer_norm's normalized_shape {shape} is not how {x.name!r} {list(x.shape)} ends"
    )
    attrs = {"epsilon": epsilon, "begin_norm_axis": begin}
    outs = {"Y": x.dtype, "Mean": x.dtype, "Variance": x.dtype}
    return append(
        LayerHelper("layer_norm", name=name),
        {"X": x, "Scale": weight, "Bias": bias},
        outs,
        attrs,
        stop="Mean Variance",
    )[0]


def group_norm(
    x: Variable, num_groups: int, epsilon: float = 1e-05, weight: Variable | None = None, bias: Variable | None = None,
    data_format: str = "NCHW", name: str | None = None,
) -> Variable:  # fmt: skip
    """weight * (x - mean) / sqrt(variance + epsilon) + bias, over each sample's groups of channels.

    Raises FluidValueError for a data_format other than "NCHW" and "NHWC".
    """
    one_of(data_format, "data_format", "group_norm", ("NCHW", "NHWC"))
    attrs = {"groups": num_groups, "epsilon": epsilon, "data_layout": data_format}
    outs = {"Y": x.dtype, "Mean": x.dtype, "Variance": x.dtype}
    return append(
        LayerHelper("group_norm", name=name),
        {"X": x, "Scale": weight, "Bias": bias},
        outs,
        attrs,
        stop="Mean Variance",
    )[0]


def local_response_norm(
    x: Variable,
    size: int,
    alpha: float = 1e-4,
    beta: float = 0.75,
    k: float = 1.0,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """x / (k + alpha * mean of x ** 2 over `size` neighbouring channels) ** beta; channels beyond
    the first and last count as 0.

    Raises FluidValueError for another data_format, or less than three dimensions.
    """
    require(
        x.ndim >= 3,
        f"local_response_norm takes at least 3 dimensions, but {x.name!r} has shape"
        f" {list(x.shape)}",
    )
    one_of(
        data_format,
        "data_format",
        "local_response_norm",
        ("NCL", "NLC", "NCHW", "NHWC", "NCDHW", "NDHWC"),
    )
    axis = x.ndim - 1 if data_format.endswith("C") else 1
    around = [0] * 2 * axis + [size // 2, (size - 1) // 2] + [0] * 2 * (x.ndim - 1 - axis)
    squares = layers.pad(layers.square(x), around)
    channels = x.shape[axis]
    parts = [layers.slice(squares, [axis], [i], [i + channels]) for i in range(size)]
    div = layers.scale(layers.sums(parts), alpha / size, float(k))
    return layers.elementwise_div(x, layers.pow(div, float(beta)), name=name)


def rms_norm(
    input: Variable,
    normalized_shape: Sequence[int],
    weight: Variable | None = None,
    eps: float = 1e-05,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """(input * r * weight, r) with r = 1 / sqrt(mean of input ** 2 + eps) over the last axes, of
    normalized_shape.
    """
    attrs = {"normalized_shape": [int(n) for n in normalized_shape], "epsilon": float(eps)}
    wide = "float32" if input.desc.dtype == "float16" else input.dtype
    outs = {"y": input.dtype, "invvar": wide}
    return append(
        LayerHelper("rms_norm", name=name),
        {"x": input, "scale": weight},
        outs,
        attrs,
        stop="invvar",
    )


__all__ = [
    "batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "local_response_norm",
    "rms_norm",
]
