"""Layers of single-shot detection: heads, matches, the loss and the output."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..base.loc import located
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ._build import append, require, typed
from .activation import softmax
from .conv import conv2d
from .detection_boxes import VARIANCE, box_coder, iou_similarity, prior_box
from .index import shape
from .loss import smooth_l1, softmax_with_cross_entropy
from .manip import flatten, reshape, slice, transpose
from .reduce import reduce_sum
from .tensor import cast, concat


@located
def bipartite_match(
    dist_matrix: Variable,
    match_type: str | None = None,
    dist_threshold: float | None = None,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """The row that each column of dist_matrix [boxes, M] matches, [N, M] int32, -1 for none; and
    the values. See the op.
    """
    typed(dist_matrix, "dist_matrix", Variable, "bipartite_match")
    helper = LayerHelper("bipartite_match", name=name)
    outs = {"ColToRowMatchIndices": "int32", "ColToRowMatchDist": dist_matrix.dtype}
    attrs = {"match_type": match_type, "dist_threshold": dist_threshold}
    found, distance = append(
        helper, {"DistMat": dist_matrix}, outs, {n: v for n, v in attrs.items() if v is not None}
    )
    return found, distance


@located
def target_assign(
    input: Variable,
    matched_indices: Variable,
    negative_indices: Variable | None = None,
    mismatch_value: int | None = None,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """The target of each prior, [N, M, K], and its weight, [N, M, 1]; see the op target_assign."""
    typed(input, "input", Variable, "target_assign")
    helper = LayerHelper("target_assign", name=name)
    inputs = {"X": input, "MatchIndices": matched_indices, "NegIndices": negative_indices}
    attrs = {} if mismatch_value is None else {"mismatch_value": mismatch_value}
    out, weight = append(helper, inputs, {"Out": input.dtype, "OutWeight": "float32"}, attrs)
    return out, weight


@located
def detection_output(
    loc: Variable,
    scores: Variable,
    prior_box: Variable,
    prior_box_var: Any,
    background_label: int = 0,
    nms_threshold: float = 0.3,
    nms_top_k: int = 400,
    keep_top_k: int = 200,
    score_threshold: float = 0.01,
    nms_eta: float = 1.0,
    return_index: bool = False,
) -> Any:
    """Rows (label, score, x1, y1, x2, y2) of the detections, a sequence per image: box_coder,
    softmax, multiclass_nms.

    loc [N, M, 4], scores [N, M, classes] before softmax, prior_box [M, 4]. return_index: also the
    rows of the boxes, int32 [rows, 1]. As in 1.8.5, class 0 is the background and eta is 1,
    whatever the arguments.
    """
    helper = LayerHelper("detection_output")
    boxes = box_coder(
        prior_box=prior_box,
        prior_box_var=prior_box_var,
        target_box=loc,
        code_type="decode_center_size",
    )
    scores = transpose(softmax(input=scores), perm=[0, 2, 1])
    scores.stop_gradient = True
    attrs = {
        "background_label": 0, "nms_threshold": nms_threshold, "nms_top_k": nms_top_k, "keep_top_k": keep_top_k,
        "score_threshold": score_threshold, "nms_eta": 1.0,
    }  # fmt: skip
    inputs = {"Scores": scores, "BBoxes": boxes}
    if not return_index:
        return append(
            helper, inputs, {"Out": boxes.dtype}, attrs, kind="multiclass_nms", stop="Out"
        )
    return append(
        helper,
        inputs,
        {"Out": boxes.dtype, "Index": "int32"},
        attrs,
        kind="multiclass_nms2",
        stop="Out Index",
    )


@located
def ssd_loss(
    location: Variable,
    confidence: Variable,
    gt_box: Variable,
    gt_label: Variable,
    prior_box: Variable,
    prior_box_var: Any = None,
    background_label: int = 0,
    overlap_threshold: float = 0.5,
    neg_pos_ratio: float = 3.0,
    neg_overlap: float = 0.5,
    loc_loss_weight: float = 1.0,
    conf_loss_weight: float = 1.0,
    match_type: str = "per_prediction",
    mining_type: str = "max_negative",
    normalize: bool = True,
    sample_size: int | None = None,
) -> Variable:
    """The loss of a single-shot detector, [N, 1]: for the classes of matched priors and of hard
    background ones, and for matched locations.

    location [N, M, 4], confidence [N, M, classes]; gt_box [boxes, 4] and gt_label [boxes, 1] with a
    LoD; prior_box [M, 4]. normalize: divide by the number of matched priors of all images. Raises
    FluidValueError for a mining_type other than max_negative.
    """
    helper = LayerHelper("ssd_loss")
    require(
        mining_type == "max_negative",
        f"ssd_loss has the mining_type 'max_negative' alone, not {mining_type!r}",
    )
    require(
        len(confidence.shape) == 3,
        f"ssd_loss takes confidence [N, M, classes], but {confidence.name!r} has"
        f" {list(confidence.shape)}",
    )
    sizes = shape(confidence)
    matches, distance = bipartite_match(
        iou_similarity(x=gt_box, y=prior_box), match_type, overlap_threshold
    )
    gt_label = reshape(x=gt_label, shape=(0,) * (len(gt_label.shape) - 1) + (-1, 1))
    gt_label.stop_gradient = True
    label, _ = target_assign(gt_label, matches, mismatch_value=background_label)
    confidence = flatten(x=confidence, axis=2)
    label = flatten(x=cast(x=label, dtype="int64"), axis=2)
    label.stop_gradient = True
    cost = softmax_with_cross_entropy(confidence, label)
    actual = slice(sizes, axes=[0], starts=[0], ends=[2])
    actual.stop_gradient = True
    cost = reshape(x=cost, shape=(-1, 0), actual_shape=actual)
    cost.stop_gradient = True
    attrs = {
        "neg_pos_ratio": neg_pos_ratio,
        "neg_dist_threshold": neg_overlap,
        "mining_type": mining_type,
        "sample_size": sample_size,
    }
    negatives, matches = append(
        helper, {"ClsLoss": cost, "MatchIndices": matches, "MatchDist": distance},
        {"NegIndices": "int32", "UpdatedMatchIndices": matches.dtype}, {n: v for n, v in attrs.items() if v is not None},
        kind="mine_hard_examples",
    )  # fmt: skip
    codes = box_coder(
        prior_box=prior_box,
        prior_box_var=prior_box_var,
        target_box=gt_box,
        code_type="encode_center_size",
    )
    places, place_weight = target_assign(codes, matches, mismatch_value=background_label)
    label, class_weight = target_assign(
        gt_label, matches, negative_indices=negatives, mismatch_value=background_label
    )
    label = cast(x=flatten(x=label, axis=2), dtype="int64")
    class_cost = softmax_with_cross_entropy(confidence, label)
    class_weight = flatten(x=class_weight, axis=2)
    class_cost = class_cost * class_weight
    label.stop_gradient = class_weight.stop_gradient = True
    location, places = flatten(x=location, axis=2), flatten(x=places, axis=2)
    place_cost = smooth_l1(location, places)
    place_weight = flatten(x=place_weight, axis=2)
    place_cost = place_cost * place_weight
    places.stop_gradient = place_weight.stop_gradient = True
    loss = conf_loss_weight * class_cost + loc_loss_weight * place_cost
    loss = reduce_sum(reshape(x=loss, shape=(-1, 0), actual_shape=actual), dim=1, keep_dim=True)
    return loss / reduce_sum(place_weight) if normalize else loss


@located
def detection_map(
    detect_res: Variable,
    label: Variable,
    class_num: int,
    background_label: int = 0,
    overlap_threshold: float = 0.3,
    evaluate_difficult: bool = True,
    has_state: Variable | None = None,
    input_states: Sequence[Variable] | None = None,
    out_states: Sequence[Variable] | None = None,
    ap_version: str = "integral",
) -> Variable:
    """The mean average precision of a batch, [1]; see the op detection_map. As in 1.8.5
    background_label is not passed on.

    has_state [1] int32: if it is not 0, input_states are out_states of earlier batches (counts,
    true and false positives), and the mean is over all batches.
    """
    helper = LayerHelper("detection_map")
    mean = helper.create_variable_for_type_inference("float32")
    kept = dict(zip(("PosCount", "TruePos", "FalsePos"), input_states or (None,) * 3, strict=True))
    kinds = ("int32", "float32", "float32")
    states = (
        out_states
        if out_states is not None
        else [helper.create_variable_for_type_inference(k) for k in kinds]
    )
    outs = {
        "MAP": mean,
        **dict(zip(("AccumPosCount", "AccumTruePos", "AccumFalsePos"), states, strict=True)),
    }
    attrs = {
        "overlap_threshold": overlap_threshold, "evaluate_difficult": evaluate_difficult, "ap_type": ap_version, "class_num": class_num,
    }  # fmt: skip
    append(
        helper,
        {"Label": label, "DetectRes": detect_res, "HasState": has_state, **kept},
        outs,
        attrs,
    )
    return mean


@located
def yolov3_loss(
    x: Variable,
    gt_box: Variable,
    gt_label: Variable,
    anchors: Sequence[int],
    anchor_mask: Sequence[int],
    class_num: int,
    ignore_thresh: float,
    downsample_ratio: int,
    gt_score: Variable | None = None,
    use_label_smooth: bool = True,
    name: str | None = None,
    scale_x_y: float = 1.0,
) -> Variable:
    """The loss of a YOLO head x [N, masks * (5 + classes), H, H], [N]; gt_box [N, B, 4], gt_label,
    gt_score [N, B]. See the op.
    """
    for value, what in ((x, "x"), (gt_box, "gt_box"), (gt_label, "gt_label")):
        typed(value, what, Variable, "yolov3_loss")
    typed(gt_score, "gt_score", (Variable, type(None)), "yolov3_loss")
    typed(anchors, "anchors", (list, tuple), "yolov3_loss")
    typed(anchor_mask, "anchor_mask", (list, tuple), "yolov3_loss")
    typed(class_num, "class_num", int, "yolov3_loss")
    typed(ignore_thresh, "ignore_thresh", float, "yolov3_loss")
    typed(use_label_smooth, "use_label_smooth", bool, "yolov3_loss")
    helper = LayerHelper("yolov3_loss", name=name)
    attrs = {
        "anchors": list(anchors), "anchor_mask": list(anchor_mask), "class_num": class_num, "ignore_thresh": ignore_thresh,
        "downsample_ratio": downsample_ratio, "use_label_smooth": use_label_smooth, "scale_x_y": scale_x_y,
    }  # fmt: skip
    inputs = {"X": x, "GTBox": gt_box, "GTLabel": gt_label, "GTScore": gt_score}
    return append(
        helper, inputs, {"Loss": x.dtype, "ObjectnessMask": "int32", "GTMatchMask": "int32"}, attrs
    )[0]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _sizes(
    count: int, base: float, low: int | None, high: int | None
) -> tuple[list[float], list[float]]:
    """min_sizes and max_sizes of maps, from the shares of the image (percent) of the second and the
    last but one.
    """
    require(
        low is not None and high is not None,
        "multi_box_head takes min_sizes and max_sizes, or min_ratio and max_ratio",
    )
    assert low is not None and high is not None
    step = math.floor((high - low) / (count - 2))
    shares = range(low, high + 1, step)
    return [base * 0.10, *(base * s / 100.0 for s in shares)], [
        base * 0.20,
        *(base * (s + step) / 100.0 for s in shares),
    ]


def _each_map(value: Any, what: str, count: int) -> None:
    typed(value, what, (list, tuple), "multi_box_head")
    require(
        len(value) == count,
        f"multi_box_head's {what} is a list with an entry for each of {count} inputs, not"
        f" {value!r}",
    )


def _head(input: Variable, filters: int, size: Any, pad: Any, stride: Any) -> Variable:
    """A convolution, flattened with channels last: [N, H * W * filters]."""
    out = conv2d(input=input, num_filters=filters, filter_size=size, padding=pad, stride=stride)
    return flatten(transpose(out, perm=[0, 2, 3, 1]), axis=1)


@located
def multi_box_head(
    inputs: Sequence[Variable],
    image: Variable,
    base_size: float,
    num_classes: int,
    aspect_ratios: Sequence[Any],
    min_ratio: int | None = None,
    max_ratio: int | None = None,
    min_sizes: Sequence[Any] | None = None,
    max_sizes: Sequence[Any] | None = None,
    steps: Sequence[float] | None = None,
    step_w: Sequence[float] | None = None,
    step_h: Sequence[float] | None = None,
    offset: float = 0.5,
    variance: Sequence[float] = VARIANCE,
    flip: bool = True,
    clip: bool = False,
    kernel_size: Any = 1,
    pad: Any = 0,
    stride: Any = 1,
    name: str | None = None,
    min_max_aspect_ratios_order: bool = False,
) -> tuple[Variable, ...]:
    """Heads of a single-shot detector on several feature maps: locations [N, M, 4], classes [N, M,
    num_classes], priors and variances.

    Each map gets a prior_box and two convolutions; the default min_sizes and max_sizes increase in
    equal steps from min_ratio to max_ratio percent of base_size. steps: pixels between places, for
    each map; or step_w and step_h.
    """
    require(isinstance(inputs, list | tuple), "multi_box_head's inputs are a list of variables")
    count = len(inputs)
    if count > 2 and min_sizes is None and max_sizes is None:
        min_sizes, max_sizes = _sizes(count, base_size, min_ratio, max_ratio)
    _each_map(min_sizes, "min_sizes", count)
    _each_map(max_sizes, "max_sizes", count)
    assert min_sizes is not None and max_sizes is not None
    for value, what in (
        (aspect_ratios or None, "aspect_ratios"),
        (step_h, "step_h"),
        (step_w, "step_w"),
        (steps, "steps"),
    ):
        if value is not None:
            _each_map(value, what, count)
    step_w, step_h = (steps, steps) if steps is not None else (step_w, step_h)
    found: list[list[Variable]] = [[], [], [], []]
    for i, input in enumerate(inputs):
        step = [step_w[i] if step_w else 0.0, step_h[i] if step_w and step_h else 0.0]
        ratios = _listed(aspect_ratios[i]) if aspect_ratios is not None else []
        box, var = prior_box(
            input, image, _listed(min_sizes[i]), _listed(max_sizes[i]), ratios, variance, flip, clip, step, offset, None,
            min_max_aspect_ratios_order,
        )  # fmt: skip
        each = box.shape[2]
        place = _head(input, each * 4, kernel_size, pad, stride)
        made = place, _head(input, each * num_classes, kernel_size, pad, stride), box, var
        for values, one in zip(found, made, strict=True):
            values.append(one)
    places, classes, boxes, variances = found
    if count == 1:
        box, var, place, kind = boxes[0], variances[0], places[0], classes[0]
    else:
        flat = [
            (flatten(x=b, axis=3), flatten(x=v, axis=3))
            for b, v in zip(boxes, variances, strict=True)
        ]
        box, var = concat([b for b, _ in flat]), concat([v for _, v in flat])
        place = reshape(concat(places, axis=1), shape=[0, -1, 4])
        kind = reshape(concat(classes, axis=1), shape=[0, -1, num_classes])
    box.stop_gradient = var.stop_gradient = True
    return place, kind, box, var


__all__ = [
    "bipartite_match",
    "detection_output",
    "multi_box_head",
    "ssd_loss",
    "target_assign",
    "yolov3_loss",
]
