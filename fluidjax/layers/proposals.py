"""Proposals of object detectors, and their training targets. Boxes are (x1, y1, x2, y2); LoDs
assign rows to images.
"""

from __future__ import annotations

from typing import Any

from ..base.loc import located
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ._build import FLOATS, append, require, typed, variable
from .index import gather
from .manip import reshape


def _flat(values: Variable, width: int) -> Variable:
    return reshape(values, (-1, width))


@located
def generate_proposals(
    scores: Variable, bbox_deltas: Variable, im_info: Variable, anchors: Variable, variances: Variable, pre_nms_top_n: int = 6000,
    post_nms_top_n: int = 1000, nms_thresh: float = 0.5, min_size: float = 0.1, eta: float = 1.0, name: str | None = None,
    return_rois_num: bool = False,
) -> Any:  # fmt: skip
    """The best boxes of each image [R, 4] and their probabilities [R, 1], with a LoD; with
    return_rois_num, also the end offsets [N].

    scores [N, A, H, W], bbox_deltas [N, 4 * A, H, W], im_info [N, 3] (height, width, scale),
    anchors and variances [H, W, A, 4]. pre_nms_top_n: boxes considered, post_nms_top_n: boxes kept;
    nms_thresh: the overlap that drops the worse of two boxes; eta shrinks it.
    """
    single = {
        "scores": scores,
        "bbox_deltas": bbox_deltas,
        "anchors": anchors,
        "variances": variances,
    }
    _boxes_checked("generate_proposals", ("float32",), **single)
    _boxes_checked("generate_proposals", FLOATS, im_info=im_info)
    given = {
        "Scores": scores,
        "BboxDeltas": bbox_deltas,
        "ImInfo": im_info,
        "Anchors": anchors,
        "Variances": variances,
    }
    attrs = {
        "pre_nms_topN": pre_nms_top_n, "post_nms_topN": post_nms_top_n, "nms_thresh": nms_thresh, "min_size": min_size, "eta": eta,
    }  # fmt: skip
    outs = {"RpnRois": bbox_deltas.dtype, "RpnRoiProbs": scores.dtype, "RpnRoisLod": "int32"}
    found = append(
        LayerHelper("generate_proposals", name=name),
        given,
        outs,
        attrs,
        stop="RpnRois RpnRoiProbs RpnRoisLod",
    )
    return found if return_rois_num else found[:2]


_TARGETS = {"LocationIndex": "int32", "ScoreIndex": "int32", "TargetLabel": "int32"}


def _assigned(
    kind: str, given: dict[str, Any], more: dict[str, Any], attrs: dict[str, Any]
) -> tuple[Variable, ...]:
    """Append the op: indices of locations and of scores, labels, targets, weights, and its other
    outputs.
    """
    dtype = given["Anchor"].dtype
    outs = {**_TARGETS, "TargetBBox": dtype, "BBoxInsideWeight": dtype, **more}
    return append(LayerHelper(kind), given, outs, attrs, stop=" ".join(outs))


def _boxes_checked(layer: str, dtypes: Any = (), **values: Any) -> None:
    for what, value in values.items():
        variable(value, what, layer, dtypes)


@located
def rpn_target_assign(
    bbox_pred: Variable, cls_logits: Variable, anchor_box: Variable, anchor_var: Variable, gt_boxes: Variable, is_crowd: Variable,
    im_info: Variable, rpn_batch_size_per_im: int = 256, rpn_straddle_thresh: float = 0.0, rpn_fg_fraction: float = 0.5,
    rpn_positive_overlap: float = 0.7, rpn_negative_overlap: float = 0.3, use_random: bool = True,
) -> tuple[Variable, ...]:  # fmt: skip
    """The training data of a region proposal network: scores and boxes of selected anchors, with
    labels, offsets and weights.

    Returns scores [S, 1] of cls_logits [N, A, 1], boxes [F, 4] of bbox_pred [N, A, 4], labels [S,
    1] (1: an object), the offsets of the objects' boxes [F, 4] and their weights [F, 4]. anchor_box
    [A, 4]; gt_boxes [G, 4] and is_crowd [G, 1] with a LoD of the images; im_info [N, 3].
    use_random: select the candidate anchors at random, instead of the first ones.
    """
    _boxes_checked(
        "rpn_target_assign", FLOATS, bbox_pred=bbox_pred, cls_logits=cls_logits, anchor_box=anchor_box, anchor_var=anchor_var,
        gt_boxes=gt_boxes, im_info=im_info,
    )  # fmt: skip
    _boxes_checked("rpn_target_assign", ("int32",), is_crowd=is_crowd)
    attrs = {
        "rpn_batch_size_per_im": rpn_batch_size_per_im, "rpn_straddle_thresh": rpn_straddle_thresh, "rpn_fg_fraction": rpn_fg_fraction,
        "rpn_positive_overlap": rpn_positive_overlap, "rpn_negative_overlap": rpn_negative_overlap, "use_random": use_random,
    }  # fmt: skip
    given = {"Anchor": anchor_box, "GtBoxes": gt_boxes, "IsCrowd": is_crowd, "ImInfo": im_info}
    location, score, label, target, weight = _assigned("rpn_target_assign", given, {}, attrs)
    logits, boxes = _flat(cls_logits, 1), _flat(bbox_pred, 4)
    return gather(logits, score), gather(boxes, location), label, target, weight


@located
def retinanet_target_assign(
    bbox_pred: Variable, cls_logits: Variable, anchor_box: Variable, anchor_var: Variable, gt_boxes: Variable, gt_labels: Variable,
    is_crowd: Variable, im_info: Variable, num_classes: int = 1, positive_overlap: float = 0.5, negative_overlap: float = 0.4,
) -> tuple[Variable, ...]:  # fmt: skip
    """rpn_target_assign for all anchors, with classes: labels are gt_labels [G, 1] (int32, from 1)
    or 0.

    cls_logits [N, A, num_classes]. Returns scores [S, num_classes], boxes [F, 4], labels [S, 1],
    offsets [F, 4], weights [F, 4] and 1 + the number of objects' anchors of each image, [N, 1].
    """
    _boxes_checked(
        "retinanet_target_assign", FLOATS, bbox_pred=bbox_pred, cls_logits=cls_logits, anchor_box=anchor_box, anchor_var=anchor_var,
        gt_boxes=gt_boxes, im_info=im_info,
    )  # fmt: skip
    _boxes_checked("retinanet_target_assign", ("int32",), gt_labels=gt_labels, is_crowd=is_crowd)
    attrs = {"positive_overlap": positive_overlap, "negative_overlap": negative_overlap}
    given = {
        "Anchor": anchor_box,
        "GtBoxes": gt_boxes,
        "GtLabels": gt_labels,
        "IsCrowd": is_crowd,
        "ImInfo": im_info,
    }
    found = _assigned("retinanet_target_assign", given, {"ForegroundNumber": "int32"}, attrs)
    location, score, label, target, weight, number = found
    logits, boxes = _flat(cls_logits, num_classes), _flat(bbox_pred, 4)
    return gather(logits, score), gather(boxes, location), label, target, weight, number


@located
def generate_proposal_labels(
    rpn_rois: Variable, gt_classes: Variable, is_crowd: Variable, gt_boxes: Variable, im_info: Variable, batch_size_per_im: int = 256,
    fg_fraction: float = 0.25, fg_thresh: float = 0.25, bg_thresh_hi: float = 0.5, bg_thresh_lo: float = 0.0,
    bbox_reg_weights: Any = (0.1, 0.1, 0.2, 0.2), class_nums: int | None = None, use_random: bool = True, is_cls_agnostic: bool = False,
    is_cascade_rcnn: bool = False,
) -> tuple[Variable, ...]:  # fmt: skip
    """The training data of the second stage: rois [S, 4], labels [S, 1] (int32), box targets,
    inside and outside weights [S, 4 * class_nums].

    All but im_info [N, 3] have a LoD of the images; gt_classes and is_crowd are int32 [G, 1]. Each
    image gives batch_size_per_im rois: a share of fg_fraction overlaps an object (by fg_thresh),
    the others are background (bg_thresh_lo to bg_thresh_hi).
    """
    layer = "generate_proposal_labels"
    variable(rpn_rois, "rpn_rois", layer, FLOATS)
    variable(gt_classes, "gt_classes", layer, ("int32",))
    variable(is_crowd, "is_crowd", layer, ("int32",))
    require(class_nums is not None, f"{layer}'s class_nums is an integer, not None")
    attrs = {
        "batch_size_per_im": batch_size_per_im, "fg_fraction": fg_fraction, "fg_thresh": fg_thresh, "bg_thresh_hi": bg_thresh_hi,
        "bg_thresh_lo": bg_thresh_lo, "bbox_reg_weights": list(bbox_reg_weights), "class_nums": class_nums, "use_random": use_random,
        "is_cls_agnostic": is_cls_agnostic, "is_cascade_rcnn": is_cascade_rcnn,
    }  # fmt: skip
    given = {
        "RpnRois": rpn_rois,
        "GtClasses": gt_classes,
        "IsCrowd": is_crowd,
        "GtBoxes": gt_boxes,
        "ImInfo": im_info,
    }
    kind = rpn_rois.dtype
    outs = {
        "Rois": kind,
        "LabelsInt32": gt_classes.dtype,
        "BboxTargets": kind,
        "BboxInsideWeights": kind,
        "BboxOutsideWeights": kind,
    }
    return append(LayerHelper(layer), given, outs, attrs, stop=" ".join(outs))


@located
def generate_mask_labels(
    im_info: Variable, gt_classes: Variable, is_crowd: Variable, gt_segms: Variable, rois: Variable, labels_int32: Variable,
    num_classes: int, resolution: int,
) -> tuple[Variable, Variable, Variable]:  # fmt: skip
    """The training data of a mask branch: regions with an object [F, 4], their index in the image's
    rois [F, 1], and masks (int32).

    gt_segms [points, 2] with three LoD levels: images, objects, polygons. Masks [F, num_classes *
    resolution * resolution] hold -1 outside the columns of their class.
    """
    layer = "generate_mask_labels"
    _boxes_checked(
        layer,
        im_info=im_info,
        gt_classes=gt_classes,
        is_crowd=is_crowd,
        gt_segms=gt_segms,
        rois=rois,
        labels=labels_int32,
    )
    given = {
        "ImInfo": im_info, "GtClasses": gt_classes, "IsCrowd": is_crowd, "GtSegms": gt_segms, "Rois": rois, "LabelsInt32": labels_int32,
    }  # fmt: skip
    outs = {
        "MaskRois": rois.dtype,
        "RoiHasMaskInt32": gt_classes.dtype,
        "MaskInt32": gt_classes.dtype,
    }
    attrs = {"num_classes": num_classes, "resolution": resolution}
    return append(LayerHelper(layer), given, outs, attrs, stop=" ".join(outs))


@located
def collect_fpn_proposals(
    multi_rois: Any,
    multi_scores: Any,
    min_level: int,
    max_level: int,
    post_nms_top_n: int,
    name: str | None = None,
) -> Variable:
    """The post_nms_top_n regions [R, 4] with the greatest scores of all levels from min_level to
    max_level, ordered by image.
    """
    layer = "collect_fpn_proposals"
    levels = max_level - min_level + 1
    for what, value in (("multi_rois", multi_rois), ("multi_scores", multi_scores)):
        typed(value, what, (list, tuple), layer)
        require(
            len(value) >= levels,
            f"{layer}'s {what} has a variable for each of {levels} levels, not {len(value)}",
        )
    rois, scores = list(multi_rois[:levels]), list(multi_scores[:levels])
    for value in (*rois, *scores):
        variable(value, "multi_rois and multi_scores", layer, FLOATS)
    helper = LayerHelper(layer, name=name)
    given = {"MultiLevelRois": rois, "MultiLevelScores": scores}
    return append(
        helper, given, {"FpnRois": rois[0].dtype}, {"post_nms_topN": post_nms_top_n}, stop="FpnRois"
    )


@located
def distribute_fpn_proposals(
    fpn_rois: Variable,
    min_level: int,
    max_level: int,
    refer_level: int,
    refer_scale: int,
    name: str | None = None,
) -> tuple[list[Variable], Variable]:
    """A list of the regions of each level from min_level to max_level, and the new row of each
    region in the concatenated list, [R, 1] (int32).

    A region with sqrt(area) = refer_scale belongs to refer_level, one twice as large to the next.
    """
    layer = "distribute_fpn_proposals"
    variable(fpn_rois, "fpn_rois", layer, FLOATS)
    require(
        min_level <= max_level,
        f"{layer}'s max_level is at least min_level, not {max_level} for {min_level}",
    )
    helper = LayerHelper(layer, name=name)
    rois = [
        helper.create_variable_for_type_inference(fpn_rois.dtype)
        for _ in range(max_level - min_level + 1)
    ]
    restore = helper.create_variable_for_type_inference("int32")
    attrs = {
        "min_level": min_level,
        "max_level": max_level,
        "refer_level": refer_level,
        "refer_scale": refer_scale,
    }
    helper.append_op(
        type=layer,
        inputs={"FpnRois": fpn_rois},
        outputs={"MultiFpnRois": rois, "RestoreIndex": restore},
        attrs=attrs,
    )
    return rois, restore


__all__ = [
    "collect_fpn_proposals",
    "distribute_fpn_proposals",
    "generate_mask_labels",
    "generate_proposal_labels",
    "generate_proposals",
    "retinanet_target_assign",
    "rpn_target_assign",
]
