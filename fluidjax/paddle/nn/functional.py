"""paddle.nn.functional: activations, losses and pools of Paddle 2.0 on static variables, over Fluid's layers."""

from __future__ import annotations

from typing import Any

from ... import layers
from ...errors import FluidValueError, UnsupportedError
from ...graph.variable import Variable
from ...input import one_hot as _one_hot
from ...layers import (
    elu,
    log_loss,
    relu,
    sigmoid,
    softmax_with_cross_entropy,
    softsign,
    square_error_cost,
    tanh,
    unfold,
)
from ...layers import logsigmoid as log_sigmoid
from ...layers import tanh_shrink as tanhshrink
from ...layers._build import size_list


def gelu(x: Variable, approximate: bool = False, name: str | None = None) -> Variable:
    """Element by element: x * Phi(x), Phi the normal distribution function; approximate: by tanh."""
    return layers.gelu(x, approximate)


def hardshrink(x: Variable, threshold: float = 0.5, name: str | None = None) -> Variable:
    """Element by element: x where |x| > threshold, else 0. x: float16 to float64."""
    return layers.hard_shrink(x, threshold)


def hardswish(x: Variable, name: str | None = None) -> Variable:
    """Element by element: x * min(max(x + 3, 0), 6) / 6. x: float16 to float64."""
    return layers.hard_swish(x, name=name)


def label_smooth(
    label: Variable, prior_dist: Variable | None = None, epsilon: float = 0.1, name: str | None = None
) -> Variable:
    """(1 - epsilon) * label + epsilon * prior, the prior being uniform over the classes where none is given.

    Raises FluidValueError for an epsilon outside [0, 1].
    """
    return layers.label_smooth(label, prior_dist, epsilon, name=name)


def leaky_relu(x: Variable, negative_slope: float = 0.01, name: str | None = None) -> Variable:
    """Element by element: max(x, negative_slope * x). x: float16 to float64."""
    return layers.leaky_relu(x, negative_slope, name)


def log_softmax(x: Variable, axis: int = -1, dtype: Any = None, name: str | None = None) -> Variable:
    """log(softmax(x, axis)); dtype casts x first."""
    return layers.log_softmax(x, axis, dtype, name)


def maxout(x: Variable, groups: int, axis: int = 1, name: str | None = None) -> Variable:
    """Maximum over each group of `groups` neighbouring channels: [N, C, H, W] gives [N, C / groups, H, W]; axis 1, 3 or
    -1.
    """
    return layers.maxout(x, groups, axis=axis, name=name)


def pixel_shuffle(x: Variable, upscale_factor: int, name: str | None = None) -> Variable:
    """[N, C * r * r, H, W] to [N, C, H * r, W * r]: channels become pixels."""
    return layers.pixel_shuffle(x, upscale_factor)


def relu6(x: Variable, name: str | None = None) -> Variable:
    """Element by element: min(max(x, 0), 6). x: float16 to float64."""
    return layers.relu6(x, name=name)


def selu(
    x: Variable, scale: float = 1.0507009873554805, alpha: float = 1.6732632423543772, name: str | None = None
) -> Variable:
    """scale * (x where x > 0, else alpha * (exp(x) - 1)); the defaults keep mean 0 and variance 1 through layers."""
    return layers.selu(x, scale, alpha, name)


def softshrink(x: Variable, threshold: float = 0.5, name: str | None = None) -> Variable:
    """Element by element: x - threshold above threshold, x + threshold below -threshold, else 0. x: float16 to float64."""
    return layers.softshrink(x, threshold)


def swish(x: Variable, name: str | None = None) -> Variable:
    """Element by element: x / (1 + exp(-x)). x: float16 to float64."""
    return layers.swish(x, name=name)


def thresholded_relu(x: Variable, threshold: float = 1.0, name: str | None = None) -> Variable:
    """Element by element: x where x > threshold, else 0. x: float16 to float64."""
    return layers.thresholded_relu(x, threshold)


def one_hot(x: Variable, num_classes: int, name: str | None = None) -> Variable:
    """Vectors of num_classes with a 1 where x says: the shape of x and one more dimension."""
    return _one_hot(x, num_classes)


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


__all__ = [
    "adaptive_avg_pool2d", "avg_pool2d", "binary_cross_entropy_with_logits", "cross_entropy", "dropout", "elu",
    "gelu", "hardshrink", "hardswish", "kl_div", "l1_loss", "label_smooth", "leaky_relu", "linear", "log_loss",
    "log_sigmoid", "log_softmax", "max_pool2d", "maxout", "mse_loss", "normalize", "one_hot", "pixel_shuffle",
    "relu", "relu6", "selu", "sigmoid", "softmax", "softmax_with_cross_entropy", "softshrink", "softsign",
    "square_error_cost", "swish", "tanh", "tanhshrink", "thresholded_relu", "unfold",
]  # fmt: skip
