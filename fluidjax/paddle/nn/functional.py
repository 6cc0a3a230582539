"""paddle.nn.functional: activations, losses and pools of Paddle 2.0 on static variables, over Fluid's layers."""

from __future__ import annotations

from typing import Any

from ... import layers
from ...errors import FluidValueError, UnsupportedError
from ...input import one_hot as _one_hot
from ...layers._build import size_list
from ...variable import Variable
from ..adapt import adapted, table

_ROWS = {
    **{n: (n, "x, name=None", "") for n in ("relu", "sigmoid", "tanh", "softsign")},
    "elu": ("elu", "x, alpha=1.0, name=None", ""),
    "gelu": ("gelu", "x, approximate=False, name=None", ""),
    "hardshrink": ("hard_shrink", "x, threshold=0.5, name=None", ""),
    "hardswish": ("hard_swish", "x, name=None", ""),
    "label_smooth": ("label_smooth", "label, prior_dist=None, epsilon=0.1, name=None", ""),
    "leaky_relu": ("leaky_relu", "x, negative_slope=0.01, name=None", "alpha=negative_slope"),
    "log_loss": ("log_loss", "input, label, epsilon=0.0001, name=None", ""),
    "log_sigmoid": ("logsigmoid", "x, name=None", ""),
    "log_softmax": ("log_softmax", "x, axis=-1, dtype=None, name=None", "input=x"),
    "maxout": ("maxout", "x, groups, axis=1, name=None", ""),
    "pixel_shuffle": ("pixel_shuffle", "x, upscale_factor, name=None", ""),
    "relu6": ("relu6", "x, name=None", ""),
    "selu": ("selu", "x, scale=1.0507009873554805, alpha=1.6732632423543772, name=None", ""),
    "softshrink": ("softshrink", "x, threshold=0.5, name=None", "alpha=threshold"),
    "softmax_with_cross_entropy": (
        "softmax_with_cross_entropy",
        "logits, label, soft_label=False, ignore_index=-100, numeric_stable_mode=True, return_softmax=False, axis=-1",
        "",
    ),
    "square_error_cost": ("square_error_cost", "input, label", ""),
    "swish": ("swish", "x, name=None", ""),
    "tanhshrink": ("tanh_shrink", "x, name=None", ""),
    "thresholded_relu": ("thresholded_relu", "x, threshold=1.0, name=None", ""),
    "unfold": (
        "unfold",
        "x, kernel_sizes, strides=1, paddings=0, dilations=1, name=None",
        "",
    ),
}
_FUNCTIONS = table(_ROWS, __name__)
_FUNCTIONS["one_hot"] = adapted("one_hot", _one_hot, "x, num_classes, name=None", "input=x depth=num_classes", __name__)
globals().update(_FUNCTIONS)


def softmax(x: Variable, axis: int = -1, dtype: Any = None, name: str | None = None) -> Variable:
    """exp(x) / sum(exp(x), axis); dtype casts x first."""
    return layers.softmax(x if dtype is None else layers.cast(x, dtype), axis=axis, name=name)


def _reduced(loss: Variable, reduction: str) -> Variable:
    """The loss, its mean or its sum. Raises FluidValueError for another reduction."""
    if reduction not in ("none", "mean", "sum"):
        raise FluidValueError(f"reduction is 'mean', 'sum' or 'none', not {reduction!r}")
    return loss if reduction == "none" else layers.reduce_mean(loss) if reduction == "mean" else layers.reduce_sum(loss)


def cross_entropy(
    input: Variable,
    label: Variable,
    weight: Variable | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    soft_label: bool = False,
    axis: int = -1,
    name: str | None = None,
) -> Variable:
    """softmax_with_cross_entropy of logits, reduced. reduction: "mean", "sum" or "none".

    Hard labels are of the logits' shape with size 1 along `axis`, or without that dimension. "mean" is over the labels
    that are not ignore_index. Raises UnsupportedError for class weights.
    """
    if weight is not None:
        raise UnsupportedError("cross_entropy's weight is not there; multiply the losses of reduction='none'")
    if not soft_label and label.ndim == input.ndim - 1:
        label = layers.unsqueeze(label, [axis if axis >= 0 else input.ndim + axis])
    loss = layers.softmax_with_cross_entropy(input, label, soft_label, ignore_index, axis=axis)
    if soft_label or reduction != "mean":
        return _reduced(loss, reduction)
    ignored = layers.fill_constant([1], label.dtype, ignore_index)
    kept = layers.reduce_sum(layers.cast(layers.not_equal(label, ignored), loss.dtype))
    one = layers.fill_constant([1], loss.dtype, 1.0)
    return layers.elementwise_div(layers.reduce_sum(loss), layers.elementwise_max(kept, one))


def mse_loss(input: Variable, label: Variable, reduction: str = "mean", name: str | None = None) -> Variable:
    """(input - label) ** 2, reduced: "mean", "sum" or "none"."""
    return _reduced(layers.square_error_cost(input, label), reduction)


def l1_loss(input: Variable, label: Variable, reduction: str = "mean", name: str | None = None) -> Variable:
    """|input - label|, reduced: "mean", "sum" or "none"."""
    return _reduced(layers.abs(layers.elementwise_sub(input, label)), reduction)


def kl_div(input: Variable, label: Variable, reduction: str = "mean", name: str | None = None) -> Variable:
    """label * (log(label) - input); reduction: "mean", "batchmean", "sum" or "none"."""
    return layers.kldiv_loss(input, label, reduction, name)


def binary_cross_entropy_with_logits(
    logit: Variable,
    label: Variable,
    weight: Variable | None = None,
    reduction: str = "mean",
    pos_weight: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """Cross entropy of sigmoid(logit) and label, reduced. Raises UnsupportedError for pos_weight."""
    if pos_weight is not None:
        raise UnsupportedError(
            "binary_cross_entropy_with_logits' pos_weight is not there; give a weight for each element"
        )
    loss = layers.sigmoid_cross_entropy_with_logits(logit, label, name=name)
    return _reduced(loss if weight is None else layers.elementwise_mul(loss, weight), reduction)


def dropout(
    x: Variable,
    p: float = 0.5,
    axis: Any = None,
    training: bool = True,
    mode: str = "upscale_in_train",
    name: str | None = None,
) -> Variable:
    """x with each element zero with probability p; mode "upscale_in_train" (kept ones grow) or "downscale_in_infer".

    Raises UnsupportedError for an axis.
    """
    if axis is not None:
        raise UnsupportedError("dropout along an axis is not there; multiply by a dropped vector of ones")
    kind = {"downscale_in_infer": "downgrade_in_infer"}.get(mode, mode)
    return layers.dropout(x, p, is_test=not training, dropout_implementation=kind, name=name)


def linear(x: Variable, weight: Variable, bias: Variable | None = None, name: str | None = None) -> Variable:
    """x @ weight + bias."""
    out = layers.matmul(x, weight, name=name)
    return out if bias is None else layers.elementwise_add(out, bias, axis=x.ndim - 1)


def _pool(
    x: Variable, kind: str, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, data_format: str, **more: Any
) -> Variable:
    kernel = size_list(kernel_size, 2, "kernel_size", f"{kind}_pool2d")
    return layers.pool2d(
        x,
        kernel,
        kind,
        kernel if stride is None else stride,
        padding,
        ceil_mode=ceil_mode,
        data_format=data_format,
        **more,
    )


def max_pool2d(
    x: Variable,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """Maxima over windows. stride: default the kernel's size. Raises UnsupportedError for return_mask."""
    if return_mask:
        raise UnsupportedError(
            "max_pool2d's return_mask is not there; see fluid.layers.adaptive_pool2d(require_index=True)"
        )
    return _pool(x, "max", kernel_size, stride, padding, ceil_mode, data_format, name=name)


def avg_pool2d(
    x: Variable,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    exclusive: bool = True,
    divisor_override: int | None = None,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """Means over windows; exclusive: padding does not count. Raises UnsupportedError for divisor_override."""
    if divisor_override is not None:
        raise UnsupportedError("avg_pool2d's divisor_override is not there; scale the result")
    return _pool(x, "avg", kernel_size, stride, padding, ceil_mode, data_format, name=name, exclusive=exclusive)


def adaptive_avg_pool2d(x: Variable, output_size: Any, data_format: str = "NCHW", name: str | None = None) -> Variable:
    """Means over output_size[0] x output_size[1] regions. Raises UnsupportedError for NHWC."""
    if data_format != "NCHW":
        raise UnsupportedError("adaptive_avg_pool2d takes NCHW; transpose x first")
    return layers.adaptive_pool2d(x, output_size, "avg", name=name)


def normalize(x: Variable, p: float = 2, axis: int = 1, epsilon: float = 1e-12, name: str | None = None) -> Variable:
    """x divided by its Euclidean norm along `axis`. Raises UnsupportedError for another p."""
    if p != 2:
        raise UnsupportedError(f"normalize takes the Euclidean norm (p=2), not p={p}")
    return layers.l2_normalize(x, axis, epsilon, name)


_OWN = (
    "adaptive_avg_pool2d avg_pool2d binary_cross_entropy_with_logits cross_entropy dropout kl_div l1_loss linear max_pool2d mse_loss "
    "normalize softmax"
)
__all__ = sorted([*_FUNCTIONS, *_OWN.split()])
