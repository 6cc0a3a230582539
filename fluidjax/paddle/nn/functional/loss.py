"""paddle.nn.functional: losses."""

from __future__ import annotations

from .... import layers
from ....errors import FluidValueError
from ....graph.variable import Variable
from ....input import one_hot as _one_hot
from ....layer_helper import LayerHelper
from ....layers import dice_loss, log_loss, softmax_with_cross_entropy, square_error_cost
from ....layers._build import append, require


def _reduced(loss: Variable, reduction: str) -> Variable:
    """The loss, its mean or its sum. Raises FluidValueError for another reduction."""
    if reduction not in ("none", "mean", "sum"):
        raise FluidValueError(f"reduction is 'mean', 'sum' or 'none', not {reduction!r}")
    return (
        loss
        if reduction == "none"
        else layers.reduce_mean(loss)
        if reduction == "mean"
        else layers.reduce_sum(loss)
    )


def mse_loss(
    input: Variable, label: Variable, reduction: str = "mean", name: str | None = None
) -> Variable:
    """(input - label) ** 2, reduced: "mean", "sum" or "none"."""
    return _reduced(layers.square_error_cost(input, label), reduction)


def l1_loss(
    input: Variable, label: Variable, reduction: str = "mean", name: str | None = None
) -> Variable:
    """|input - label|, reduced: "mean", "sum" or "none"."""
    return _reduced(layers.abs(layers.elementwise_sub(input, label)), reduction)


def kl_div(
    input: Variable, label: Variable, reduction: str = "mean", name: str | None = None
) -> Variable:
    """label * (log(label) - input); reduction: "mean", "batchmean", "sum" or "none"."""
    return layers.kldiv_loss(input, label, reduction, name)


def cross_entropy(
    input: Variable,
    label: Variable,
    weight: Variable | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    soft_label: bool = False,
    axis: int = -1,
    use_softmax: bool = True,
    label_smoothing: float = 0.0,
    name: str | None = None,
) -> Variable:
    """softmax_with_cross_entropy of logits, reduced. reduction: "mean", "sum" or "none".

    Hard labels have the logits' shape with size 1 along `axis`, or without that dimension. weight:
    a factor per class for its losses. "mean" with hard labels is weighted, over those that are not
    ignore_index. use_softmax: False if the input are probabilities. label_smoothing: the fraction
    of each label that is spread over all classes. Raises FluidValueError for a smoothing outside of
    [0, 1], and for weights unless `axis` is the last.
    """
    require(
        0 <= label_smoothing <= 1,
        f"cross_entropy's label_smoothing is between 0 and 1, not {label_smoothing}",
    )
    axis = axis if axis >= 0 else input.ndim + axis
    require(
        weight is None or axis == input.ndim - 1,
        f"cross_entropy's weight needs the classes along the last axis, not {axis}",
    )
    if not soft_label and label.ndim == input.ndim - 1:
        label = layers.unsqueeze(label, [axis])
    if label_smoothing > 0:
        if not soft_label:
            label = _one_hot(layers.squeeze(label, [axis]), input.shape[axis])
        label, soft_label = layers.label_smooth(label, epsilon=label_smoothing), True
    attrs = {
        "soft_label": soft_label,
        "ignore_index": ignore_index,
        "axis": axis - input.ndim,
        "use_softmax": use_softmax,
    }
    outs = {"Softmax": input.dtype, "Loss": input.dtype}
    _, loss = append(
        LayerHelper("softmax_with_cross_entropy", name=name),
        {"Logits": input, "Label": label},
        outs,
        attrs,
    )
    if soft_label:
        if weight is None:
            return _reduced(loss, reduction)
        each = layers.matmul(label, layers.reshape(weight, [-1, 1]))
        return _averaged(layers.elementwise_mul(loss, each), each, reduction)
    kept = layers.cast(
        layers.not_equal(label, layers.fill_constant([1], label.dtype, ignore_index)), loss.dtype
    )
    if weight is None:
        return _averaged(loss, kept, reduction)
    known = layers.elementwise_mul(label, layers.cast(kept, label.dtype))
    each = layers.reshape(layers.gather(weight, layers.reshape(known, [-1])), list(loss.shape))
    each = layers.elementwise_mul(each, kept)
    return _averaged(layers.elementwise_mul(loss, each), each, reduction)


def _averaged(loss: Variable, weights: Variable, reduction: str) -> Variable:
    """The loss, its sum, or its sum over that of the weights (1 if all are ignored)."""
    if reduction != "mean":
        return _reduced(loss, reduction)
    total = layers.reduce_sum(weights)
    nothing = layers.cast(
        layers.equal(total, layers.fill_constant([1], total.dtype, 0.0)), total.dtype
    )
    return layers.elementwise_div(layers.reduce_sum(loss), layers.elementwise_add(total, nothing))


def binary_cross_entropy(
    input: Variable,
    label: Variable,
    weight: Variable | None = None,
    reduction: str = "mean",
    name: str | None = None,
) -> Variable:
    """-(label * log(input) + (1 - label) * log(1 - input)) * weight, reduced; logarithms are at
    least -100.
    """
    loss = append(
        LayerHelper("bce_loss", name=name), {"X": input, "Label": label}, {"Out": input.dtype}
    )
    return _reduced(loss if weight is None else layers.elementwise_mul(loss, weight), reduction)


def binary_cross_entropy_with_logits(
    logit: Variable,
    label: Variable,
    weight: Variable | None = None,
    reduction: str = "mean",
    pos_weight: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """Cross entropy of sigmoid(logit) and label, reduced; pos_weight multiplies the losses of label
    1, weight all.
    """
    loss = layers.sigmoid_cross_entropy_with_logits(logit, label, name=name)
    if pos_weight is not None:
        more = layers.elementwise_mul(label, layers.scale(pos_weight, 1.0, -1.0))
        loss = layers.elementwise_mul(loss, layers.scale(more, 1.0, 1.0))
    return _reduced(loss if weight is None else layers.elementwise_mul(loss, weight), reduction)


def ctc_loss(
    log_probs: Variable,
    labels: Variable,
    input_lengths: Variable,
    label_lengths: Variable,
    blank: int = 0,
    reduction: str = "mean",
    norm_by_times: bool = False,
) -> Variable:
    """Connectionist temporal classification: warpctc of logits [time, N, classes + 1] and labels
    [N, most], int32.

    reduction: "mean" (of the losses, each over its number of labels), "sum" or "none" ([N]).
    """
    loss = layers.squeeze(
        layers.warpctc(log_probs, labels, blank, norm_by_times, input_lengths, label_lengths), [-1]
    )
    if reduction != "mean":
        return _reduced(loss, reduction)
    return layers.reduce_mean(layers.elementwise_div(loss, layers.cast(label_lengths, loss.dtype)))


def hsigmoid_loss(
    input: Variable,
    label: Variable,
    num_classes: int,
    weight: Variable,
    bias: Variable | None = None,
    path_table: Variable | None = None,
    path_code: Variable | None = None,
    is_sparse: bool = False,
    name: str | None = None,
) -> Variable:
    """Hierarchical sigmoid [N, 1] of input [N, D] and label [N, 1], by a complete binary tree or by
    given paths.

    weight: [num_classes - 1, D], bias: [num_classes - 1, 1].
    """
    inputs = {
        "X": input,
        "W": weight,
        "Bias": bias,
        "PathTable": path_table,
        "PathCode": path_code,
        "Label": label,
    }
    attrs = {"num_classes": num_classes, "is_sparse": is_sparse}
    outs = {"Out": input.dtype, "PreOut": input.dtype}
    return append(LayerHelper("hierarchical_sigmoid", name=name), inputs, outs, attrs)[0]


def margin_ranking_loss(
    input: Variable,
    other: Variable,
    label: Variable,
    margin: float = 0.0,
    reduction: str = "mean",
    name: str | None = None,
) -> Variable:
    """max(0, -label * (input - other) + margin), reduced; label is 1 or -1."""
    loss = layers.elementwise_mul(layers.elementwise_sub(other, input), label)
    if margin != 0.0:
        loss = layers.scale(loss, 1.0, float(margin))
    return _reduced(layers.relu(loss, name), reduction)


def nll_loss(
    input: Variable,
    label: Variable,
    weight: Variable | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    name: str | None = None,
) -> Variable:
    """-weight[label] * input[label] of log probabilities [N, C] or [N, C, d1, ...], label [N] or
    [N, d1, ...].

    reduction: "mean" (over the weights), "sum" or "none". Raises FluidValueError for another
    reduction or rank.
    """
    require(
        reduction in ("none", "mean", "sum"),
        f"reduction is 'mean', 'sum' or 'none', not {reduction!r}",
    )
    require(input.ndim >= 2 and label.ndim == input.ndim - 1,
            f"nll_loss's label has one dimension less than its input, not {list(label.shape)} for {list(input.shape)}")  # fmt: skip
    flat = input.ndim not in (2, 4)
    shape = [-1 if n < 0 else n for n in label.shape]
    if flat:
        input = layers.reshape(input, [0, 0, 1, -1])
        label = layers.reshape(label, [0, 1, -1])
    attrs = {"reduction": reduction, "ignore_index": ignore_index}
    outs = {"Out": input.dtype, "Total_weight": input.dtype}
    out = append(
        LayerHelper("nll_loss", name=name),
        {"X": input, "Label": label, "Weight": weight},
        outs,
        attrs,
    )[0]
    return layers.reshape(out, shape) if flat and reduction == "none" else out


def npair_loss(
    anchor: Variable, positive: Variable, labels: Variable, l2_reg: float = 0.002
) -> Variable:
    """Soft cross entropy of anchor @ positive^T against the equality of labels, plus l2_reg on
    both.

    anchor, positive: [N, D]; labels: [N] numbers.
    """
    # fluid's version reshapes its labels
    return layers.npair_loss(anchor, positive, layers.scale(labels, 1.0), l2_reg)


def sigmoid_focal_loss(
    logit: Variable,
    label: Variable,
    normalizer: Variable | None = None,
    alpha: float = 0.25,
    gamma: float = 2.0,
    reduction: str = "sum",
    name: str | None = None,
) -> Variable:
    """alpha_t * (1 - p_t) ** gamma * cross entropy, over `normalizer`, reduced; p_t is the
    probability of the right class.
    """
    ones = layers.ones_like(logit)
    loss = layers.sigmoid_cross_entropy_with_logits(logit, label, name=name)
    given = layers.sigmoid(logit)
    missed = layers.elementwise_sub(
        layers.elementwise_add(given, label),
        layers.scale(layers.elementwise_mul(given, label), 2.0),
    )
    share = layers.scale(label, 2.0 * alpha - 1.0, 1.0 - alpha)
    factor = layers.elementwise_pow(missed, layers.scale(ones, float(gamma)))
    loss = layers.elementwise_mul(layers.elementwise_mul(share, loss), factor)
    return _reduced(
        loss if normalizer is None else layers.elementwise_div(loss, normalizer), reduction
    )


def smooth_l1_loss(
    input: Variable,
    label: Variable,
    reduction: str = "mean",
    delta: float = 1.0,
    name: str | None = None,
) -> Variable:
    """0.5 * d ** 2 where |d| = |input - label| <= delta, else delta * (|d| - 0.5 * delta); reduced."""
    outs = {"Residual": input.dtype, "Out": input.dtype}
    _, out = append(
        LayerHelper("huber_loss", name=name),
        {"X": input, "Y": label},
        outs,
        {"delta": float(delta)},
    )
    return _reduced(out, reduction)


__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "ctc_loss", "dice_loss", "hsigmoid_loss", "kl_div",
    "l1_loss", "log_loss", "margin_ranking_loss", "mse_loss", "nll_loss", "npair_loss", "sigmoid_focal_loss", "smooth_l1_loss",
    "softmax_with_cross_entropy", "square_error_cost",
]  # fmt: skip
