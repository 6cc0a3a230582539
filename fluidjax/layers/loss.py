"""Losses: one value per row unless noted otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..base.absent import reporter
from ..base.loc import located
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ._build import FLOATS, HALF, append, one_of, require, typed, variable
from .missing import HINTS
from .sampled import hsigmoid, nce, sampled_softmax_with_cross_entropy

IGNORE = -100  # a label that no class has: its rows have loss 0


@located
def cross_entropy(
    input: Variable, label: Variable, soft_label: bool = False, ignore_index: int = IGNORE
) -> Variable:
    """-log(input[label]), or -sum(label * log(input)) with soft labels: [N, 1] from probabilities
    [N, C].

    label: int64 [N, 1], or a distribution [N, C] if soft_label. ignore_index: a hard label with
    loss 0. Raises FluidTypeError for integer probabilities.
    """
    if not soft_label:
        return _hard_cross_entropy(input, label, ignore_index)
    variable(input, "input", "cross_entropy", HALF)
    typed(label, "label", Variable, "cross_entropy")
    attrs = {"soft_label": soft_label, "ignore_index": ignore_index}
    return append(
        LayerHelper("cross_entropy"), {"X": [input], "Label": [label]}, {"Y": input.dtype}, attrs
    )


def _hard_cross_entropy(input: Variable, label: Variable, ignore_index: int) -> Variable:
    variable(input, "input", "cross_entropy", HALF)
    typed(label, "label", Variable, "cross_entropy")
    outs = {"Y": input.dtype, "XShape": input.dtype, "MatchX": input.dtype}
    attrs = {"ignore_index": ignore_index}
    return append(LayerHelper("cross_entropy2"), {"X": [input], "Label": [label]}, outs, attrs)[0]


@located
def square_error_cost(input: Variable, label: Variable) -> Variable:
    """(input - label) ** 2, element by element."""
    variable(input, "input", "square_error_cost", FLOATS)
    variable(label, "label", "square_error_cost", FLOATS)
    helper = LayerHelper("square_error_cost")
    difference = append(
        helper, {"X": [input], "Y": [label]}, {"Out": input.dtype}, kind="elementwise_sub"
    )
    return append(helper, {"X": [difference]}, {"Out": input.dtype}, kind="square")


@located
def softmax_with_cross_entropy(
    logits: Variable,
    label: Variable,
    soft_label: bool = False,
    ignore_index: int = IGNORE,
    numeric_stable_mode: bool = True,
    return_softmax: bool = False,
    axis: int = -1,
) -> Any:
    """cross_entropy(softmax(logits, axis), label) in one step: the loss, with the softmax if
    return_softmax.

    label: int64 with size 1 along `axis`, or a distribution of the logits' shape if soft_label.
    numeric_stable_mode: an attribute of the op; the maximum is always subtracted.
    """
    typed(logits, "logits", Variable, "softmax_with_cross_entropy")
    typed(label, "label", Variable, "softmax_with_cross_entropy")
    attrs = {
        "soft_label": soft_label,
        "ignore_index": ignore_index,
        "numeric_stable_mode": numeric_stable_mode,
        "axis": axis,
    }
    helper = LayerHelper("softmax_with_cross_entropy")
    softmax, loss = append(
        helper,
        {"Logits": logits, "Label": label},
        {"Softmax": logits.dtype, "Loss": logits.dtype},
        attrs,
    )
    return (loss, softmax) if return_softmax else loss


@located
def sigmoid_cross_entropy_with_logits(
    x: Variable,
    label: Variable,
    ignore_index: int = IGNORE,
    name: str | None = None,
    normalize: bool = False,
) -> Variable:
    """max(x, 0) - x * label + log(1 + exp(-|x|)), element by element; normalize: divide by the
    number of labels that are not ignored.
    """
    variable(x, "input", "sigmoid_cross_entropy_with_logits", HALF)
    typed(label, "label", Variable, "sigmoid_cross_entropy_with_logits")
    helper = LayerHelper("sigmoid_cross_entropy_with_logits", name=name)
    attrs = {"ignore_index": ignore_index, "normalize": normalize}
    return append(helper, {"X": x, "Label": label}, {"Out": x.dtype}, attrs)


@located
def huber_loss(input: Variable, label: Variable, delta: float) -> Variable:
    """0.5 r ** 2 where |r| <= delta, else delta * (|r| - 0.5 * delta), with r = label - input."""
    variable(input, "input", "huber_loss", FLOATS)
    variable(label, "label", "huber_loss", FLOATS)
    outs = {"Residual": input.dtype, "Out": input.dtype}
    return append(LayerHelper("huber_loss"), {"X": input, "Y": label}, outs, {"delta": delta})[1]


@located
def smooth_l1(
    x: Variable,
    y: Variable,
    inside_weight: Variable | None = None,
    outside_weight: Variable | None = None,
    sigma: float | None = None,
) -> Variable:
    """Row sums [N, 1] of 0.5 (sigma d) ** 2 where |d| < 1 / sigma ** 2, else |d| - 0.5 / sigma **
    2, d = x - y.

    inside_weight multiplies d, outside_weight the result. sigma None means 1.
    """
    variable(x, "X", "smooth_l1_loss", FLOATS)
    variable(y, "Y", "smooth_l1_loss", FLOATS)
    inputs = {"X": x, "Y": y, "InsideWeight": inside_weight, "OutsideWeight": outside_weight}
    attrs = {"sigma": 1.0 if sigma is None else sigma}
    return append(LayerHelper("smooth_l1_loss"), inputs, {"Diff": x.dtype, "Out": x.dtype}, attrs)[
        1
    ]


@located
def log_loss(
    input: Variable, label: Variable, epsilon: float = 0.0001, name: str | None = None
) -> Variable:
    """-label * log(input + epsilon) - (1 - label) * log(1 - input + epsilon), for probabilities [N,
    1] (float32).
    """
    variable(input, "input", "log_loss", ("float32",))
    variable(label, "label", "log_loss", ("float32",))
    helper = LayerHelper("log_loss", name=name)
    return append(
        helper,
        {"Predicted": [input], "Labels": [label]},
        {"Loss": input.dtype},
        {"epsilon": epsilon},
    )


@located
def kldiv_loss(
    x: Variable, target: Variable, reduction: str = "mean", name: str | None = None
) -> Variable:
    """target * (log(target) - x), 0 where target is 0; reduction: "mean", "sum", "batchmean" (sum /
    N) or "none".
    """
    variable(x, "x", "kldiv_loss", FLOATS)
    variable(target, "target", "kldiv_loss", FLOATS)
    one_of(reduction, "reduction", "kldiv_loss", ("mean", "sum", "batchmean", "none"))
    helper = LayerHelper("kldiv_loss", name=name)
    return append(helper, {"X": x, "Target": target}, {"Loss": x.dtype}, {"reduction": reduction})


@located
def bpr_loss(input: Variable, label: Variable, name: str | None = None) -> Variable:
    """Bayesian personalised ranking: mean over the other classes j of log(1 + exp(input[j] -
    input[label])), [N, 1].
    """
    variable(input, "input", "bpr_loss", HALF)
    typed(label, "label", Variable, "bpr_loss")
    return append(
        LayerHelper("bpr_loss", name=name), {"X": [input], "Label": [label]}, {"Y": input.dtype}
    )


@located
def rank_loss(
    label: Variable, left: Variable, right: Variable, name: str | None = None
) -> Variable:
    """RankNet: log(1 + exp(o)) - label * o with o = left - right, all [N, 1]; label 1 ranks left
    higher.
    """
    for what, v in (("label", label), ("left", left), ("right", right)):
        variable(v, what, "rank_loss", ("float32",))
    helper = LayerHelper("rank_loss", name=name)
    return append(helper, {"Label": label, "Left": left, "Right": right}, {"Out": "float32"})


@located
def margin_rank_loss(
    label: Variable, left: Variable, right: Variable, margin: float = 0.1, name: str | None = None
) -> Variable:
    """max(0, -label * (left - right) + margin), all [N, 1], label 1 or -1."""
    variable(label, "label", "margin_rank_loss", ("float32",))
    for what, v in (("left", left), ("right", right)):
        typed(v, what, Variable, "margin_rank_loss")
    helper = LayerHelper("margin_rank_loss", name=name)
    outs = {"Out": left.dtype, "Activated": left.dtype}
    return append(helper, {"Label": label, "X1": left, "X2": right}, outs, {"margin": margin})[0]


@located
def mse_loss(input: Variable, label: Variable) -> Variable:
    """mean((input - label) ** 2): shape [1]."""
    from .reduce import reduce_mean

    variable(input, "input", "mse_loss", FLOATS)
    variable(label, "label", "mse_loss", FLOATS)
    return reduce_mean(square_error_cost(input, label))


@located
def dice_loss(
    input: Variable, label: Variable, epsilon: float = 1e-05, name: str | None = None
) -> Variable:
    """mean(1 - 2 * intersection / (sizes + epsilon)) of probabilities [N, ..., C] and labels [N,
    ..., 1]: shape [1].

    name is ignored, as in Fluid 1.8.
    """
    from .nn_dense import one_hot
    from .reduce import reduce_mean, reduce_sum

    found: Any = input
    wanted = one_hot(label, depth=input.shape[-1])
    dims = list(range(1, input.ndim))
    inside = reduce_sum(found * wanted, dim=dims)
    both = reduce_sum(found, dim=dims) + reduce_sum(wanted, dim=dims)
    return reduce_mean(1 - inside * 2 / (both + epsilon))


@located
def npair_loss(
    anchor: Variable, positive: Variable, labels: Variable, l2_reg: float = 0.002
) -> Variable:
    """N-pair loss: soft cross entropy of anchor @ positive^T against the equality of labels, plus
    l2_reg on both: [1].

    anchor, positive: [N, D]; labels: [N] numbers, which become [N, 1] in place.
    """
    from .activation import square
    from .compare import equal
    from .manip import expand, reshape, transpose
    from .nn_dense import matmul
    from .reduce import reduce_mean, reduce_sum

    variable(anchor, "anchor", "npair_loss", FLOATS)
    variable(positive, "positive", "npair_loss", FLOATS)
    variable(labels, "labels", "npair_loss", (*FLOATS, "int64"))
    count = labels.shape[0]
    labels = reshape(labels, [count, 1], inplace=True)
    labels = expand(labels, [1, count])
    same = equal(labels, transpose(labels, [1, 0])).astype("float32")
    targets = same / reduce_sum(same, dim=1, keep_dim=True)
    size = reduce_mean(reduce_sum(square(anchor), 1)) + reduce_mean(reduce_sum(square(positive), 1))
    penalty = size * 0.25 * l2_reg
    similarity = matmul(anchor, positive, transpose_x=False, transpose_y=True)
    cost = softmax_with_cross_entropy(similarity, targets, soft_label=True)
    return penalty + reduce_mean(reduce_sum(targets * cost, 0))


@located
def teacher_student_sigmoid_loss(
    input: Variable,
    label: Variable,
    soft_max_up_bound: float = 15.0,
    soft_max_lower_bound: float = -15.0,
) -> Variable:
    """Distillation of a click model, [N, 1]: label < -1: not clicked, < 0: clicked, < 1: teacher's
    score, else teacher's score + 1 and clicked.

    The logit is clipped to the two bounds.
    """
    variable(input, "input", "teacher_student_sigmoid_loss", FLOATS)
    variable(label, "label", "teacher_student_sigmoid_loss", FLOATS)
    helper = LayerHelper("teacher_student_sigmoid_loss")
    out = helper.create_variable(dtype=input.dtype)
    attrs = {
        "soft_max_lower_bound": float(soft_max_lower_bound),
        "soft_max_up_bound": float(soft_max_up_bound),
    }
    return append(helper, {"X": [input], "Label": [label]}, {"Y": out}, attrs)


@located
def label_smooth(
    label: Variable,
    prior_dist: Variable | None = None,
    epsilon: float = 0.1,
    dtype: Any = "float32",
    name: str | None = None,
) -> Variable:
    """(1 - epsilon) * label + epsilon * prior, with a uniform prior over the classes by default.

    label gets no gradient, as in Paddle: its stop_gradient becomes True. Raises FluidValueError for
    an epsilon outside [0, 1].
    """
    require(0.0 <= epsilon <= 1.0, f"label_smooth's epsilon lies between 0 and 1, not {epsilon}")
    variable(label, "label", "label_smooth", FLOATS).stop_gradient = True
    helper = LayerHelper("label_smooth", name=name)
    return append(
        helper, {"X": label, "PriorDist": prior_dist}, {"Out": dtype}, {"epsilon": float(epsilon)}
    )


@located
def sigmoid_focal_loss(
    x: Variable, label: Variable, fg_num: Variable, gamma: float = 2.0, alpha: float = 0.25
) -> Variable:
    """Focal loss [N, C]: cross entropy weighted by alpha and (1 - p) ** gamma, over the number of
    foreground rows.

    label: int32 [N, 1], 0 the background, -1 ignored; fg_num: int32 [1].
    """
    variable(x, "x", "sigmoid_focal_loss", FLOATS)
    variable(label, "label", "sigmoid_focal_loss", ("int32",))
    variable(fg_num, "fg_num", "sigmoid_focal_loss", ("int32",))
    inputs = {"X": x, "Label": label, "FgNum": fg_num}
    return append(
        LayerHelper("sigmoid_focal_loss"),
        inputs,
        {"Out": x.dtype},
        {"gamma": gamma, "alpha": alpha},
    )


@located
def warpctc(
    input: Variable,
    label: Variable,
    blank: int = 0,
    norm_by_times: bool = False,
    input_length: Variable | None = None,
    label_length: Variable | None = None,
) -> Variable:
    """The CTC loss of each sequence, [N, 1]: -log of the probability of label given input.

    input: unscaled scores [rows, classes + 1] and label: int32 [rows, 1], one LoD level; or [T, N,
    classes + 1] and [N, L] with input_length and label_length [N], int64. norm_by_times: the
    gradient is divided by the number of steps. See the op warpctc.
    """
    variable(input, "input", "warpctc", ("float32",))
    variable(label, "label", "warpctc", ("int32",))
    helper = LayerHelper("warpctc", input=input)
    inputs = {"Logits": [input], "Label": [label]}
    if input_length is not None and label_length is not None:
        inputs["LogitsLength"] = [variable(input_length, "input_length", "warpctc", ("int64",))]
        inputs["LabelLength"] = [variable(label_length, "label_length", "warpctc", ("int64",))]
    loss = helper.create_variable_for_type_inference(input.dtype)
    grad = helper.create_variable_for_type_inference(input.dtype)
    append(
        helper,
        inputs,
        {"WarpCTCGrad": grad, "Loss": loss},
        {"blank": blank, "norm_by_times": norm_by_times},
    )
    return loss


@located
def edit_distance(
    input: Variable,
    label: Variable,
    normalized: bool = True,
    ignored_tokens: Sequence[int] | None = None,
    input_length: Variable | None = None,
    label_length: Variable | None = None,
) -> tuple[Variable, Variable]:
    """The edit distance of each sequence of input to that of label, [N, 1], over label's length if
    normalized; and N, [1].

    input, label: int64 [rows, 1], one LoD level; or [N, T] with their lengths [N]. ignored_tokens
    do not count.
    """
    variable(input, "input", "edit_distance", ("int64",))
    variable(label, "label", "edit_distance", ("int64",))
    helper = LayerHelper("edit_distance", input=input)
    if ignored_tokens is not None and len(ignored_tokens) > 0:
        erased = [helper.create_variable_for_type_inference("int64") for _ in range(2)]
        for given, out in zip((input, label), erased, strict=True):
            append(
                helper,
                {"X": [given]},
                {"Out": out},
                {"tokens": list(ignored_tokens)},
                kind="sequence_erase",
            )
        input, label = erased
    inputs = {"Hyps": [input], "Refs": [label]}
    if input_length is not None and label_length is not None:
        inputs.update(HypsLength=[input_length], RefsLength=[label_length])
    out, count = append(
        helper, inputs, {"Out": "int64", "SequenceNum": "int64"}, {"normalized": normalized}
    )
    return out, count


__all__ = [
    "bpr_loss",
    "cross_entropy",
    "dice_loss",
    "edit_distance",
    "hsigmoid",
    "huber_loss",
    "kldiv_loss",
    "label_smooth",
    "log_loss",
    "margin_rank_loss",
    "mse_loss",
    "nce",
    "npair_loss",
    "rank_loss",
    "sampled_softmax_with_cross_entropy",
    "sigmoid_cross_entropy_with_logits",
    "sigmoid_focal_loss",
    "smooth_l1",
    "softmax_with_cross_entropy",
    "square_error_cost",
    "teacher_student_sigmoid_loss",
    "warpctc",
]

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.layers.loss", __all__, HINTS)
