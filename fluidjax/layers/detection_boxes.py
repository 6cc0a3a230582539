"""Layers of detection: prior boxes, their codes, and the best of overlapping boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.loc import located
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ._build import FLOATS, append, require, typed, variable

VARIANCE = (0.1, 0.1, 0.2, 0.2)


def _floats(value: Any) -> list[float]:
    """Numbers from a list of them, or from one."""
    return [float(v) for v in (value if isinstance(value, list | tuple) else [value])]


def _pair(value: Any, what: str, layer: str) -> list[float]:
    require(
        isinstance(value, list | tuple) and len(value) == 2,
        f"{layer}'s {what} is a list of two, across and down, not {value!r}",
    )
    return [float(v) for v in value]


@located
def prior_box(
    input: Variable,
    image: Variable,
    min_sizes: Any,
    max_sizes: Any = None,
    aspect_ratios: Any = (1.0,),
    variance: Sequence[float] = VARIANCE,
    flip: bool = False,
    clip: bool = False,
    steps: Sequence[float] = (0.0, 0.0),
    offset: float = 0.5,
    name: str | None = None,
    min_max_aspect_ratios_order: bool = False,
) -> tuple[Variable, Variable]:
    """Boxes around each place of a feature map, [H, W, priors, 4] as parts of the image, and their
    variances; see the op prior_box.

    input, image: [N, C, H, W]. steps: pixels across and down between places; 0: from the sizes of
    image and map.
    """
    variable(input, "input", "prior_box", ("uint8", "int8", *FLOATS))
    across, down = _pair(steps, "steps", "prior_box")
    attrs = {
        "min_sizes": _floats(min_sizes), "aspect_ratios": _floats(aspect_ratios), "variances": list(variance), "flip": flip, "clip": clip,
        "step_w": across, "step_h": down, "offset": offset, "min_max_aspect_ratios_order": min_max_aspect_ratios_order,
    }  # fmt: skip
    if max_sizes is not None and len(max_sizes) > 0 and max_sizes[0] > 0:
        attrs["max_sizes"] = list(max_sizes)
    outs = {"Boxes": input.dtype, "Variances": input.dtype}
    boxes, variances = append(
        LayerHelper("prior_box", name=name), {"Input": input, "Image": image}, outs, attrs
    )
    boxes.stop_gradient = variances.stop_gradient = True
    return boxes, variances


@located
def density_prior_box(
    input: Variable,
    image: Variable,
    densities: Sequence[int] | None = None,
    fixed_sizes: Sequence[float] | None = None,
    fixed_ratios: Sequence[float] | None = None,
    variance: Sequence[float] = VARIANCE,
    clip: bool = False,
    steps: Sequence[float] = (0.0, 0.0),
    offset: float = 0.5,
    flatten_to_2d: bool = False,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Like prior_box, but size i with each ratio is at densities[i] ** 2 centres; [H * W * priors,
    4] if flatten_to_2d.
    """
    variable(input, "input", "density_prior_box", FLOATS)
    typed(densities, "densities", (list, tuple), "density_prior_box")
    typed(fixed_sizes, "fixed_sizes", (list, tuple), "density_prior_box")
    typed(fixed_ratios, "fixed_ratios", (list, tuple), "density_prior_box")
    assert densities is not None and fixed_sizes is not None
    message = (
        f"density_prior_box takes a size for each of {len(densities)} densities, not"
        f" {len(fixed_sizes)}"
    )
    require(len(densities) == len(fixed_sizes), message)
    across, down = _pair(steps, "steps", "density_prior_box")
    attrs = {
        "variances": list(variance), "clip": clip, "step_w": across, "step_h": down, "offset": offset,
        "densities": [int(d) for d in densities], "fixed_sizes": _floats(fixed_sizes), "fixed_ratios": _floats(fixed_ratios),
        "flatten_to_2d": flatten_to_2d,
    }  # fmt: skip
    outs = {"Boxes": input.dtype, "Variances": input.dtype}
    boxes, variances = append(
        LayerHelper("density_prior_box", name=name), {"Input": input, "Image": image}, outs, attrs
    )
    boxes.stop_gradient = variances.stop_gradient = True
    return boxes, variances


@located
def anchor_generator(
    input: Variable,
    anchor_sizes: Any = None,
    aspect_ratios: Any = None,
    variance: Sequence[float] = VARIANCE,
    stride: Sequence[float] | None = None,
    offset: float = 0.5,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Anchors in pixels around each place of a feature map [N, C, H, W]: [H, W, anchors, 4], and
    their variances.

    stride: the distance of places, across and down. See the op anchor_generator.
    """
    attrs = {
        "anchor_sizes": _floats(anchor_sizes), "aspect_ratios": _floats(aspect_ratios), "variances": list(variance),
        "stride": _pair(stride, "stride", "anchor_generator"), "offset": offset,
    }  # fmt: skip
    typed(input, "input", Variable, "anchor_generator")
    outs = {"Anchors": input.dtype, "Variances": input.dtype}
    anchors, variances = append(
        LayerHelper("anchor_generator", name=name), {"Input": input}, outs, attrs
    )
    anchors.stop_gradient = variances.stop_gradient = True
    return anchors, variances


@located
def iou_similarity(
    x: Variable, y: Variable, box_normalized: bool = True, name: str | None = None
) -> Variable:
    """Intersection over union of every box of x [N, 4] with every one of y [M, 4]: [N, M]."""
    typed(x, "x", Variable, "iou_similarity")
    helper = LayerHelper("iou_similarity", name=name)
    return append(helper, {"X": x, "Y": y}, {"Out": x.dtype}, {"box_normalized": box_normalized})


@located
def box_coder(
    prior_box: Variable,
    prior_box_var: Any,
    target_box: Variable,
    code_type: str = "encode_center_size",
    box_normalized: bool = True,
    name: str | None = None,
    axis: int = 0,
) -> Variable:
    """Boxes encoded as differences from priors, or decoded (decode_center_size); see the op
    box_coder.

    prior_box_var: a variable [priors, 4], or a list of four numbers.
    """
    helper = LayerHelper("box_coder", name=name)
    inputs = {"PriorBox": prior_box, "TargetBox": target_box}
    attrs: dict[str, Any] = {"code_type": code_type, "box_normalized": box_normalized, "axis": axis}
    if isinstance(typed(prior_box_var, "prior_box_var", (Variable, list), "box_coder"), Variable):
        inputs["PriorBoxVar"] = prior_box_var
    else:
        attrs["variance"] = prior_box_var
    return append(helper, inputs, {"OutputBox": prior_box.dtype}, attrs)


@located
def polygon_box_transform(input: Variable, name: str | None = None) -> Variable:
    """Corners from their shifts: 4 * place - input, for input [N, 2 * corners, H, W]."""
    variable(input, "input", "polygon_box_transform", FLOATS)
    return append(
        LayerHelper("polygon_box_transform", name=name), {"Input": input}, {"Output": input.dtype}
    )


@located
def yolo_box(
    x: Variable,
    img_size: Variable,
    anchors: Sequence[int],
    class_num: int,
    conf_thresh: float,
    downsample_ratio: int,
    clip_bbox: bool = True,
    name: str | None = None,
    scale_x_y: float = 1.0,
) -> tuple[Variable, Variable]:
    """Boxes [N, M, 4] and scores [N, M, classes] of a YOLO head x [N, anchors * (5 + classes), H,
    W]; see the op yolo_box.
    """
    typed(x, "x", Variable, "yolo_box")
    typed(img_size, "img_size", Variable, "yolo_box")
    typed(anchors, "anchors", (list, tuple), "yolo_box")
    typed(class_num, "class_num", int, "yolo_box")
    typed(conf_thresh, "conf_thresh", float, "yolo_box")
    attrs = {
        "anchors": list(anchors), "class_num": class_num, "conf_thresh": conf_thresh, "downsample_ratio": downsample_ratio,
        "clip_bbox": clip_bbox, "scale_x_y": scale_x_y,
    }  # fmt: skip
    helper = LayerHelper("yolo_box", name=name)
    boxes, scores = append(
        helper, {"X": x, "ImgSize": img_size}, {"Boxes": x.dtype, "Scores": x.dtype}, attrs
    )
    return boxes, scores


@located
def box_clip(input: Variable, im_info: Variable, name: str | None = None) -> Variable:
    """The boxes cut to their image; im_info [N, 3]: height, width, scale. See the op box_clip."""
    variable(input, "input", "box_clip", FLOATS)
    variable(im_info, "im_info", "box_clip", FLOATS)
    return append(
        LayerHelper("box_clip", name=name),
        {"Input": input, "ImInfo": im_info},
        {"Output": input.dtype},
    )


@located
def box_decoder_and_assign(
    prior_box: Variable,
    prior_box_var: Variable,
    target_box: Variable,
    box_score: Variable,
    box_clip: float,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """The decoded boxes of all classes, and that of the best class; see the op
    box_decoder_and_assign.
    """
    inputs = {
        "PriorBox": prior_box,
        "PriorBoxVar": prior_box_var,
        "TargetBox": target_box,
        "BoxScore": box_score,
    }
    outs = {"DecodeBox": prior_box.dtype, "OutputAssignBox": prior_box.dtype}
    decoded, assigned = append(
        LayerHelper("box_decoder_and_assign", name=name), inputs, outs, {"box_clip": box_clip}
    )
    return decoded, assigned


def _limits(layer: str, **given: Any) -> None:
    """Raises FluidTypeError for arguments of types that 1.8.5 does not accept."""
    kinds = {
        "normalized": bool,
        "use_gaussian": bool,
        "nms_top_k": int,
        "keep_top_k": int,
        "background_label": int,
    }
    for name, value in given.items():
        typed(value, name, kinds.get(name, float), layer)


@located
def multiclass_nms(
    bboxes: Variable,
    scores: Variable,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    nms_threshold: float = 0.3,
    normalized: bool = True,
    nms_eta: float = 1.0,
    background_label: int = 0,
    name: str | None = None,
) -> Variable:
    """Rows (label, score, x1, y1, x2, y2) of the kept boxes, a sequence per image; [[-1]] if there
    are none.

    bboxes [N, M, 4] and scores [N, C, M], or [M, C, 4] and [M, C] with a LoD. See the op
    multiclass_nms.
    """
    variable(bboxes, "bboxes", "multiclass_nms", FLOATS)
    variable(scores, "scores", "multiclass_nms", FLOATS)
    attrs = {
        "background_label": background_label, "score_threshold": score_threshold, "nms_top_k": nms_top_k, "nms_threshold": nms_threshold,
        "nms_eta": nms_eta, "keep_top_k": keep_top_k, "normalized": normalized,
    }  # fmt: skip
    _limits("multiclass_nms", **attrs)
    out = append(
        LayerHelper("multiclass_nms", name=name),
        {"BBoxes": bboxes, "Scores": scores},
        {"Out": bboxes.dtype},
        attrs,
    )
    out.stop_gradient = True
    return out


@located
def locality_aware_nms(
    bboxes: Variable,
    scores: Variable,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    nms_threshold: float = 0.3,
    normalized: bool = True,
    nms_eta: float = 1.0,
    background_label: int = -1,
    name: str | None = None,
) -> Variable:
    """multiclass_nms for one class, scores [N, 1, M], after merging consecutive boxes that overlap;
    see the op locality_aware_nms.
    """
    variable(bboxes, "bboxes", "locality_aware_nms", FLOATS)
    variable(scores, "scores", "locality_aware_nms", FLOATS)
    attrs = {
        "background_label": background_label, "score_threshold": score_threshold, "nms_top_k": nms_top_k, "nms_threshold": nms_threshold,
        "nms_eta": nms_eta, "keep_top_k": keep_top_k, "normalized": normalized,
    }  # fmt: skip
    _limits("locality_aware_nms", **attrs)
    shape = list(scores.shape)
    require(
        len(shape) == 3 and shape[1] == 1,
        f"locality_aware_nms takes scores [N, 1, M], but {scores.name!r} has {shape}",
    )
    helper = LayerHelper("locality_aware_nms", name=name)
    return append(
        helper, {"BBoxes": bboxes, "Scores": scores}, {"Out": bboxes.dtype}, attrs, stop="Out"
    )


@located
def matrix_nms(
    bboxes: Variable,
    scores: Variable,
    score_threshold: float,
    post_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    use_gaussian: bool = False,
    gaussian_sigma: float = 2.0,
    background_label: int = 0,
    normalized: bool = True,
    return_index: bool = False,
    name: str | None = None,
) -> Any:
    """Rows (label, decayed score, x1, y1, x2, y2) by descending scores, a sequence per image; see
    the op matrix_nms.

    return_index: also the rows of the boxes in bboxes [N * M, 4], int32 [rows, 1].
    """
    variable(bboxes, "bboxes", "matrix_nms", FLOATS)
    variable(scores, "scores", "matrix_nms", FLOATS)
    attrs = {
        "background_label": background_label, "score_threshold": score_threshold, "post_threshold": post_threshold,
        "nms_top_k": nms_top_k, "gaussian_sigma": gaussian_sigma, "use_gaussian": use_gaussian, "keep_top_k": keep_top_k,
        "normalized": normalized,
    }  # fmt: skip
    _limits("matrix_nms", **attrs)
    helper = LayerHelper("matrix_nms", name=name)
    out, index = append(
        helper,
        {"BBoxes": bboxes, "Scores": scores},
        {"Out": bboxes.dtype, "Index": "int32"},
        attrs,
        stop="Out",
    )
    return (out, index) if return_index else out


@located
def retinanet_detection_output(
    bboxes: list[Variable],
    scores: list[Variable],
    anchors: list[Variable],
    im_info: Variable,
    score_threshold: float = 0.05,
    nms_top_k: int = 1000,
    keep_top_k: int = 100,
    nms_threshold: float = 0.3,
    nms_eta: float = 1.0,
) -> Variable:
    """Rows (label, score, x1, y1, x2, y2) of the detections of all levels, a sequence per image;
    see the op retinanet_detection_output.

    As in 1.8.5, nms_eta is ignored and eta is 1.
    """
    given = {"bboxes": bboxes, "scores": scores, "anchors": anchors}
    for what, values in given.items():
        for each in typed(values, what, list, "retinanet_detection_output"):
            variable(each, what, "retinanet_detection_output", FLOATS)
    variable(im_info, "im_info", "retinanet_detection_output", FLOATS)
    attrs = {
        "score_threshold": score_threshold, "nms_top_k": nms_top_k, "nms_threshold": nms_threshold, "keep_top_k": keep_top_k,
        "nms_eta": 1.0,
    }  # fmt: skip
    inputs = {"BBoxes": bboxes, "Scores": scores, "Anchors": anchors, "ImInfo": im_info}
    return append(
        LayerHelper("retinanet_detection_output"),
        inputs,
        {"Out": scores[0].dtype},
        attrs,
        stop="Out",
    )


__all__ = [
    "anchor_generator", "box_clip", "box_coder", "box_decoder_and_assign", "density_prior_box", "iou_similarity", "locality_aware_nms",
    "matrix_nms", "multiclass_nms", "polygon_box_transform", "prior_box", "retinanet_detection_output", "yolo_box",
]  # fmt: skip
