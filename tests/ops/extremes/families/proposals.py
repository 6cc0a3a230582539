"""Proposals and targets: equal scores, equal boxes, no boxes left, anchors outside, crowds alone,
one number for all.
"""

import numpy as np

from ..case import Extreme

BOXES = np.array(
    [[0, 0, 7, 7], [8, 8, 15, 15], [0, 0, 7, 7], [2, 2, 5, 5], [9, 1, 14, 6], [-4, -4, 3, 3]],
    "float32",
)
INFO = np.array([[16, 16, 1]], "float32")
CASES = []


def generated(label, scores, deltas, nms=0.5, **attrs):
    inputs = {
        "Scores": np.array(scores, "float32").reshape(1, 6, 1, 1),
        "BboxDeltas": np.array(deltas, "float32").reshape(1, 24, 1, 1),
        "ImInfo": INFO,
        "Anchors": BOXES.reshape(1, 1, 6, 4),
        "Variances": np.ones((1, 1, 6, 4), "float32"),
    }
    attrs = dict(
        {"pre_nms_topN": 6, "post_nms_topN": 6, "nms_thresh": nms, "min_size": 1.0, "eta": 1.0},
        **attrs,
    )
    return Extreme(label, "generate_proposals", inputs, attrs, ["RpnRois", "RpnRoiProbs"])


def targets(op, label, gts, crowd, attrs, **more):
    outputs = ["LocationIndex", "ScoreIndex", "TargetBBox", "TargetLabel", "BBoxInsideWeight"]
    inputs = dict(
        {
            "Anchor": BOXES,
            "GtBoxes": np.array(gts, "float32"),
            "IsCrowd": np.array(crowd, "int32").reshape(-1, 1),
            "ImInfo": INFO,
        },
        **more,
    )
    lod = {slot: [[len(gts)]] for slot in inputs if slot not in ("Anchor", "ImInfo")}
    return Extreme(label, op, inputs, attrs, outputs, lod=lod)


ZERO = np.zeros(24)
CASES += [
    generated("equal scores", np.ones(6), ZERO),
    generated("equal scores, few", np.ones(6), ZERO, pre_nms_topN=3),
    generated("overlap at the bound", [6, 5, 4, 3, 2, 1], ZERO, nms=0.25),
    generated("growth beyond the bound", [6, 5, 4, 3, 2, 1], np.full(24, 50.0)),
    generated("infinite scores", [np.inf, 1, -np.inf, 2, np.inf, 0], ZERO),
]
RPN = {
    "rpn_batch_size_per_im": 4,
    "rpn_straddle_thresh": 0.0,
    "rpn_fg_fraction": 0.5,
    "rpn_positive_overlap": 0.5,
    "rpn_negative_overlap": 0.3,
    "use_random": False,
}
for label, gts, crowd in (
    ("equal anchors", [[0, 0, 7, 7], [8, 8, 15, 15]], [0, 0]),
    ("all overlap a little", [[0, 0, 15, 15]], [0]),
    ("overlap at the bound", [[0, 0, 7, 15]], [0]),
):
    CASES.append(targets("rpn_target_assign", label, gts, crowd, RPN))
    CASES.append(
        targets(
            "retinanet_target_assign",
            label,
            gts,
            crowd,
            {},
            GtLabels=np.arange(1, len(gts) + 1, dtype="int32").reshape(-1, 1),
        )
    )
CASES.append(
    targets(
        "rpn_target_assign",
        "anchors that find nothing better",
        [[0, 0, 1, 1], [15, 15, 15, 15]],
        [0, 0],
        dict(RPN, rpn_negative_overlap=0.9),
    )
)


def labelled(label, gts, crowd, **attrs):
    attrs = dict(
        {
            "batch_size_per_im": 4,
            "fg_fraction": 0.5,
            "fg_thresh": 0.5,
            "bg_thresh_hi": 0.5,
            "bg_thresh_lo": 0.0,
            "class_nums": 3,
            "bbox_reg_weights": [1.0, 1.0, 1.0, 1.0],
            "use_random": False,
        },
        **attrs,
    )
    count = len(gts)
    inputs = {
        "RpnRois": BOXES,
        "GtBoxes": np.array(gts, "float32"),
        "IsCrowd": np.array(crowd, "int32").reshape(-1, 1),
        "ImInfo": INFO,
        "GtClasses": np.arange(1, count + 1, dtype="int32").reshape(-1, 1),
    }
    lod = dict({slot: [[count]] for slot in ("GtBoxes", "IsCrowd", "GtClasses")}, RpnRois=[[6]])
    return Extreme(
        label,
        "generate_proposal_labels",
        inputs,
        attrs,
        ["Rois", "LabelsInt32", "BboxTargets", "BboxInsideWeights"],
        lod=lod,
    )


CASES += [
    labelled("equal boxes", [[0, 0, 7, 7], [0, 0, 7, 7]], [0, 0]),
    labelled("crowds alone", [[0, 0, 7, 7]], [1]),
    labelled("background alone", [[30, 30, 31, 31]], [1], bg_thresh_hi=0.1),
    labelled("no fraction", [[0, 0, 7, 7]], [0], fg_fraction=0.0),
]


def masked(label, points, ends, rois, resolution=4):
    inputs = {
        "ImInfo": INFO,
        "GtClasses": np.array([[1]], "int32"),
        "IsCrowd": np.array([[0]], "int32"),
        "GtSegms": np.array(points, "float32"),
        "Rois": np.array(rois, "float32"),
        "LabelsInt32": np.ones((len(rois), 1), "int32"),
    }
    lod = {
        "GtClasses": [[1]],
        "IsCrowd": [[1]],
        "GtSegms": [[1], [len(ends)], ends],
        "Rois": [[len(rois)]],
        "LabelsInt32": [[len(rois)]],
    }
    return Extreme(
        label,
        "generate_mask_labels",
        inputs,
        {"num_classes": 2, "resolution": resolution},
        ["MaskRois", "RoiHasMaskInt32", "MaskInt32"],
        lod=lod,
    )


SQUARE = [[2, 2], [6, 2], [6, 6], [2, 6]]
CASES += [
    masked("squares on pixels", SQUARE, [4], [[2, 2, 6, 6], [0, 0, 8, 8], [4, 4, 12, 12]]),
    masked("two polygons", SQUARE + [[4, 4], [8, 4], [8, 8]], [4, 3], [[0, 0, 8, 8]]),
    masked("region without extent", SQUARE, [4], [[3, 3, 3, 3], [9, 9, 9, 9]]),
    masked("a line and a repeated point", [[1, 1], [5, 5], [5, 5], [1, 1]], [4], [[0, 0, 8, 8]]),
]
SCORES = np.array([[1], [1], [0.5]], "float32")
CASES += [
    Extreme(
        "equal scores",
        "collect_fpn_proposals",
        {"MultiLevelRois": [BOXES[:3], BOXES[3:]], "MultiLevelScores": [SCORES, SCORES]},
        {"post_nms_topN": 3},
        ["FpnRois"],
        lod={"MultiLevelRois": [[[2, 1]], [[1, 2]]], "MultiLevelScores": [[[2, 1]], [[1, 2]]]},
    ),
    Extreme(
        "at the bounds of levels",
        "distribute_fpn_proposals",
        {
            "FpnRois": np.array(
                [[0, 0, 3, 3], [0, 0, 7, 7], [0, 0, 15, 15], [0, 0, 1, 1]], "float32"
            )
        },
        {"min_level": 2, "max_level": 4, "refer_level": 3, "refer_scale": 8},
        {"MultiFpnRois": 3, "RestoreIndex": None},
        lod={"FpnRois": [[4]]},
    ),
]
