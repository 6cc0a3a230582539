"""Normalisation layers."""

from __future__ import annotations

import math
from typing import Any

from ..base.loc import located
from ..graph.variable import Variable
from ..initializer import ConstantInitializer, NormalInitializer
from ..layer_helper import LayerHelper
from ..param_attr import ParamAttr
from ._build import FLOATS, HALF, append, one_of, require, typed, variable, whole


@located
def batch_norm(
    input: Variable,
    act: str | None = None,
    is_test: bool = False,
    momentum: Any = 0.9,
    epsilon: float = 1e-05,
    param_attr: Any = None,
    bias_attr: Any = None,
    data_layout: str = "NCHW",
    in_place: bool = False,
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    do_model_average_for_mean_and_var: bool = True,
    use_global_stats: bool = False,
) -> Variable:
    """act(scale * (x - mean) / sqrt(variance + epsilon) + bias), per channel.

    Training normalises by the batch and updates the running statistics: moving = momentum * moving
    + (1 - momentum) * batch; is_test or use_global_stats normalises by the moving ones. momentum
    may be a variable of one element. in_place: the result takes the input's name. moving_*_name:
    names of the (persistable, untrained) statistics; do_model_average_for_mean_and_var: whether
    ModelAverage averages them. float16 inputs keep float32 statistics. Raises FluidTypeError for
    integers, FluidValueError if param_attr or bias_attr is False.
    """
    helper = LayerHelper(
        "batch_norm", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name
    )
    out = _batch_norm(
        helper, input, HALF, in_place, data_layout, (moving_mean_name, moving_variance_name),
        do_model_average_for_mean_and_var, momentum, epsilon=epsilon, is_test=is_test, use_global_stats=use_global_stats,
    )  # fmt: skip
    return helper.append_activation(out)


@located
def inplace_abn(
    input: Variable,
    act: str | None = None,
    is_test: bool = False,
    momentum: Any = 0.9,
    epsilon: float = 1e-05,
    param_attr: Any = None,
    bias_attr: Any = None,
    data_layout: str = "NCHW",
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    do_model_average_for_mean_and_var: bool = True,
    use_global_stats: bool = False,
    act_alpha: float = 1.0,
) -> Variable:
    """batch_norm with its activation in one op; the result takes the input's name.

    act: None, "identity", "leaky_relu" or "elu", the last two with act_alpha. Other arguments as in
    batch_norm.
    """
    known = (None, "identity", "leaky_relu", "elu")
    require(act in known, f"inplace_abn's act is {' or '.join(map(repr, known))}, not {act!r}")
    helper = LayerHelper("inplace_abn", param_attr=param_attr, bias_attr=bias_attr, name=name)
    return _batch_norm(
        helper, input, FLOATS, True, data_layout, (moving_mean_name, moving_variance_name),
        do_model_average_for_mean_and_var, momentum, epsilon=epsilon, is_test=is_test, use_global_stats=use_global_stats,
        activation=act, alpha=act_alpha,
    )  # fmt: skip


def _batch_norm(
    helper: LayerHelper, input: Variable, dtypes: tuple[str, ...], in_place: bool, data_layout: str,
    moving_names: tuple[str | None, str | None], average: bool, momentum: Any, **attrs: Any,
) -> Variable:  # fmt: skip
    """Parameters, statistics and op of batch_norm and inplace_abn."""
    layer = helper.layer_type
    variable(input, "input", layer, dtypes)
    one_of(data_layout, "data_layout", layer, ("NCHW", "NHWC"))
    wanted = helper.param_attr is not False and helper.bias_attr is not False
    require(wanted, f"{layer} needs scale and bias; param_attr and bias_attr are not False")
    dtype = "float32" if input.desc.dtype == "float16" else input.desc.dtype
    shape = [input.shape[1 if data_layout == "NCHW" else -1]]
    scale = helper.create_parameter(
        helper.param_attr, shape, dtype, default_initializer=ConstantInitializer(1.0)
    )
    bias = helper.create_parameter(helper.bias_attr, shape, dtype, is_bias=True)
    attributes = [
        ParamAttr(name, ConstantInitializer(start), trainable=False, do_model_average=average)
        for name, start in zip(moving_names, (0.0, 1.0), strict=True)
    ]
    mean, variance = (helper.create_parameter(attribute, shape, dtype) for attribute in attributes)
    mean.stop_gradient = variance.stop_gradient = True
    inputs = {"X": input, "Scale": scale, "Bias": bias, "Mean": mean, "Variance": variance}
    if isinstance(momentum, Variable):
        inputs["MomentumTensor"] = momentum
    else:
        attrs["momentum"] = momentum
    saved = [helper.create_variable_for_type_inference(dtype, stop_gradient=True) for _ in range(2)]
    out = input if in_place else helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        type=layer,
        inputs=inputs,
        outputs={
            "Y": out,
            "MeanOut": mean,
            "VarianceOut": variance,
            "SavedMean": saved[0],
            "SavedVariance": saved[1],
        },
        attrs={**attrs, "data_layout": data_layout},
    )
    return out


@located
def instance_norm(
    input: Variable,
    epsilon: float = 1e-05,
    param_attr: Any = None,
    bias_attr: Any = None,
    name: str | None = None,
) -> Variable:
    """scale * (x - mean) / sqrt(variance + epsilon) + bias, with statistics over [H, W] of each
    image and channel.

    Raises FluidTypeError for dtypes other than float32 and float64, FluidValueError if param_attr
    or bias_attr is False.
    """
    variable(input, "input", "instance_norm", FLOATS)
    require(
        param_attr is not False and bias_attr is not False,
        "instance_norm needs scale and bias; param_attr and bias_attr are not False",
    )
    helper = LayerHelper("instance_norm", param_attr=param_attr, bias_attr=bias_attr, name=name)
    shape, dtype = [input.shape[1]], input.dtype
    scale = helper.create_parameter(
        helper.param_attr, shape, dtype, default_initializer=ConstantInitializer(1.0)
    )
    bias = helper.create_parameter(
        helper.bias_attr, shape, dtype, is_bias=True, default_initializer=ConstantInitializer(0.0)
    )
    inputs = {"X": input, "Scale": scale, "Bias": bias}
    outs = {"SavedMean": dtype, "SavedVariance": dtype, "Y": dtype}
    return append(helper, inputs, outs, {"epsilon": epsilon}, stop="SavedMean SavedVariance")[2]


@located
def layer_norm(
    input: Variable,
    scale: bool = True,
    shift: bool = True,
    begin_norm_axis: int = 1,
    epsilon: float = 1e-05,
    param_attr: Any = None,
    bias_attr: Any = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """act(scale * (x - mean) / sqrt(variance + epsilon) + shift), with statistics over dimensions
    begin_norm_axis and on.

    scale, shift: whether to learn a factor and an addend, each of prod(shape[begin_norm_axis:])
    elements. Raises FluidTypeError for dtypes other than float32 and float64, FluidValueError if
    param_attr or bias_attr is False although scale or shift is True.
    """
    variable(input, "input", "layer_norm", FLOATS)
    require(
        not (scale and param_attr is False),
        "layer_norm's param_attr is not False where scale is True",
    )
    require(
        not (shift and bias_attr is False),
        "layer_norm's bias_attr is not False where shift is True",
    )
    helper = LayerHelper(
        "layer_norm", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name
    )
    dtype, shape = input.dtype, [math.prod(input.shape[begin_norm_axis:])]
    inputs = {"X": input}
    if scale:
        inputs["Scale"] = helper.create_parameter(
            helper.param_attr, shape, dtype, default_initializer=ConstantInitializer(1.0)
        )
    if shift:
        inputs["Bias"] = helper.create_parameter(helper.bias_attr, shape, dtype, is_bias=True)
    attrs = {"epsilon": epsilon, "begin_norm_axis": begin_norm_axis}
    outs = {"Mean": dtype, "Variance": dtype, "Y": dtype}
    return helper.append_activation(append(helper, inputs, outs, attrs, stop="Mean Variance")[2])


@located
def group_norm(
    input: Variable,
    groups: int,
    epsilon: float = 1e-05,
    param_attr: Any = None,
    bias_attr: Any = None,
    act: str | None = None,
    data_layout: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """act(scale * (x - mean) / sqrt(variance + epsilon) + bias), with statistics over each group of
    channels of each image.

    scale and bias exist only if param_attr or bias_attr is given (as in Fluid 1.8, None omits
    them).
    """
    variable(input, "input", "group_norm", FLOATS)
    one_of(data_layout, "data_layout", "group_norm", ("NCHW", "NHWC"))
    helper = LayerHelper(
        "group_norm", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name
    )
    dtype, shape = input.dtype, [input.shape[1 if data_layout == "NCHW" else -1]]
    inputs = {"X": input}
    if param_attr:
        inputs["Scale"] = helper.create_parameter(
            helper.param_attr, shape, dtype, default_initializer=ConstantInitializer(1.0)
        )
    if bias_attr:
        inputs["Bias"] = helper.create_parameter(helper.bias_attr, shape, dtype, is_bias=True)
    mean, variance = (helper.create_variable(dtype=dtype, stop_gradient=True) for _ in range(2))
    out = helper.create_variable(dtype=dtype)
    attrs = {"epsilon": epsilon, "groups": groups, "data_layout": data_layout}
    helper.append_op(
        type="group_norm",
        inputs=inputs,
        outputs={"Y": out, "Mean": mean, "Variance": variance},
        attrs=attrs,
    )
    return helper.append_activation(out)


@located
def data_norm(
    input: Variable,
    act: str | None = None,
    epsilon: float = 1e-05,
    param_attr: Any = None,
    data_layout: str = "NCHW",
    in_place: bool = False,
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    do_model_average_for_mean_and_var: bool = True,
    slot_dim: int = -1,
    sync_stats: bool = False,
    summary_decay_rate: float = 0.9999999,
    enable_scale_and_shift: bool = False,
) -> Variable:
    """(x - batch_sum / batch_size) * sqrt(batch_size / batch_square_sum), with learned statistics
    per column.

    param_attr: a dict of start values ``batch_size``, ``batch_sum``, ``batch_square``, and
    ``scale_w``, ``bias`` for enable_scale_and_shift. The statistics' names start with `name`, or
    ``dn``. slot_dim, sync_stats, summary_decay_rate: attributes of the op. moving_mean_name,
    moving_variance_name and do_model_average_for_mean_and_var are ignored, as in Fluid 1.8.
    """
    helper = LayerHelper("data_norm", act=act, name=name)
    variable(input, "input", "data_norm")
    one_of(data_layout, "data_layout", "data_norm", ("NCHW", "NHWC"))
    dtype, shape = input.dtype, [input.shape[1 if data_layout == "NCHW" else -1]]
    start = {"batch_size": 1e4, "batch_sum": 0.0, "batch_square": 1e4, "scale_w": 1.0, "bias": 0.0}
    start |= (
        {k: v for k, v in (param_attr or {}).items() if k in start}
        if isinstance(param_attr, dict)
        else {}
    )
    stem = "dn" if name is None else name

    def statistic(key: str, suffix: str) -> Any:
        attr = ParamAttr(f"{stem}.{suffix}", ConstantInitializer(float(start[key])))
        return helper.create_parameter(attr, shape, dtype)

    inputs = {"X": input}
    attrs = {
        "epsilon": epsilon, "slot_dim": slot_dim, "sync_stats": sync_stats, "summary_decay_rate": summary_decay_rate,
        "data_layout": data_layout,
    }  # fmt: skip
    if enable_scale_and_shift:
        inputs |= {"scale_w": statistic("scale_w", "scale_w"), "bias": statistic("bias", "bias")}
        attrs["enable_scale_and_shift"] = True
    inputs["BatchSize"] = statistic("batch_size", "batch_size")
    inputs["BatchSum"] = statistic("batch_sum", "batch_sum")
    inputs["BatchSquareSum"] = statistic("batch_square", "batch_square_sum")
    means, scales = (helper.create_variable(dtype=dtype, stop_gradient=True) for _ in range(2))
    out = input if in_place else helper.create_variable(dtype=dtype)
    outputs = {"Y": out, "Means": means, "Scales": scales}
    helper.append_op(type="data_norm", inputs=inputs, outputs=outputs, attrs=attrs)
    return helper.append_activation(out)


@located
def spectral_norm(
    weight: Variable,
    dim: int = 0,
    power_iters: int = 1,
    eps: float = 1e-12,
    name: str | None = None,
) -> Variable:
    """weight / sigma, where sigma is the largest singular value of the weight flattened to
    [shape[dim], rest].

    sigma comes from `power_iters` steps of the power method on two persistent vectors.
    """
    helper = LayerHelper("spectral_norm", name=name)
    variable(weight, "weight", "spectral_norm", FLOATS)
    dim, power_iters = (
        whole(dim, "dim", "spectral_norm"),
        whole(power_iters, "power_iters", "spectral_norm"),
    )
    require(
        -weight.ndim <= dim < weight.ndim,
        f"spectral_norm's dim {dim} is out of range for shape {list(weight.shape)}",
    )
    height = weight.shape[dim]
    vectors = [
        helper.create_parameter(
            None, [n], weight.dtype, default_initializer=NormalInitializer(0.0, 1.0)
        )
        for n in (height, math.prod(weight.shape) // height)
    ]
    for vector in vectors:
        vector.stop_gradient = True
    out = helper.create_variable(dtype=weight.dtype)
    inputs = {"Weight": weight, "U": vectors[0], "V": vectors[1]}
    return append(
        helper, inputs, {"Out": out}, {"dim": dim, "power_iters": power_iters, "eps": eps}
    )


@located
def l2_normalize(
    x: Variable, axis: int, epsilon: float = 1e-12, name: str | None = None
) -> Variable:
    """x / sqrt(sum(x ** 2, axis) + epsilon). axis None means 1; a vector has only axis 0."""
    variable(x, "x", "l2_normalize", FLOATS)
    axis = 0 if x.ndim == 1 else 1 if axis is None else axis
    helper = LayerHelper("l2_normalize", name=name)
    out, _ = append(
        helper,
        {"X": x},
        {"Out": x.dtype, "Norm": x.dtype},
        {"axis": axis, "epsilon": epsilon},
        kind="norm",
    )
    return out


@located
def lrn(
    input: Variable,
    n: int = 5,
    k: float = 1.0,
    alpha: float = 0.0001,
    beta: float = 0.75,
    name: str | None = None,
    data_format: str = "NCHW",
) -> Variable:
    """x / (k + alpha * sum of x ** 2 over the n channels around) ** beta, for four dimensions
    (float32).
    """
    helper = LayerHelper("lrn", name=name)
    variable(input, "input", "lrn", ("float32",))
    require(
        input.ndim == 4,
        f"lrn's input has four dimensions, but {input.name!r} has shape {list(input.shape)}",
    )
    one_of(data_format, "data_format", "lrn", ("NCHW", "NHWC"))
    attrs = {"n": n, "k": k, "alpha": alpha, "beta": beta, "data_format": data_format}
    return append(
        helper, {"X": input}, {"MidOut": input.dtype, "Out": input.dtype}, attrs, stop="MidOut"
    )[1]


@located
def affine_channel(
    x: Variable,
    scale: Any = None,
    bias: Any = None,
    data_layout: str = "NCHW",
    name: str | None = None,
    act: str | None = None,
) -> Variable:
    """act(x * scale + bias) per channel; scale and bias are variables of shape [C]."""
    helper = LayerHelper("affine_channel", act=act, name=name)
    variable(x, "x", "affine_channel", FLOATS)
    typed(scale, "scale", (Variable, type(None)), "affine_channel")
    typed(bias, "bias", (Variable, type(None)), "affine_channel")
    out = append(
        helper,
        {"X": x, "Scale": scale, "Bias": bias},
        {"Out": x.dtype},
        {"data_layout": data_layout},
    )
    return helper.append_activation(out)


__all__ = [
    "affine_channel",
    "batch_norm",
    "data_norm",
    "group_norm",
    "inplace_abn",
    "instance_norm",
    "l2_normalize",
    "layer_norm",
    "lrn",
    "spectral_norm",
]
