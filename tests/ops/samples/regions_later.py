"""Regions of images as Paddle 2 and 3 have them: numbers of each image in place of a LoD, edges
that are lines, yolo_box's overlaps.
"""

import numpy as np

from ..sample import LATER, Sample, distinct, f32, f64, positive
from .proposals import corners, grid_anchors
from .regions import BOXES, OUTSIDE, bins, boxes

COUNTS = {"unknown": "as many regions as the numbers say"}


def counts(*numbers):
    return np.array(numbers, "int32")


def crowd(n, m):
    """many boxes that overlap"""
    return np.stack([corners(m, 8.0, seed=k + m) for k in range(n)])


def scores(*shape):
    return distinct(*shape, lo=0.0)


def pooled(op, x, rois, of_images, attrs, outputs=("Out",), grad=("X",), **more):
    inputs = {"X": x, "ROIs": rois, "RoisNum": counts(*of_images)}
    return Sample(op, inputs, attrs, list(outputs), list(grad), paddle=LATER, **more)


def generated(sizes, shape, nms, pixel_offset, min_size=0.1, eta=1.0, scores=None, pre=20, post=6):
    n, kinds = len(shape), len(sizes)
    inputs = {
        "Scores": distinct(n, kinds, 3, 4, lo=0, hi=1) if scores is None else scores,
        "BboxDeltas": f32(n, 4 * kinds, 3, 4, lo=-0.6, hi=0.6),
        "ImShape": np.array(shape, "float32"),
        "Anchors": grid_anchors(3, 4, sizes, 4.0),
        "Variances": positive(3, 4, kinds, 4),
    }
    attrs = {
        "pre_nms_topN": pre,
        "post_nms_topN": post,
        "nms_thresh": nms,
        "min_size": min_size,
        "eta": eta,
        "pixel_offset": pixel_offset,
    }
    return Sample(
        "generate_proposals_v2",
        inputs,
        attrs,
        ["RpnRois", "RpnRoiProbs", "RpnRoisNum"],
        paddle=LATER,
        skip={"unknown": "ImShape and the maps are of one number of images, the anchors of none"},
    )


def nms(given, values, numbers=None, **attrs):
    inputs = {"BBoxes": given, "Scores": values}
    inputs.update({} if numbers is None else {"RoisNum": counts(*numbers)})
    given = dict(
        {
            "score_threshold": 0.1,
            "nms_top_k": -1,
            "keep_top_k": -1,
            "nms_threshold": 0.3,
            "background_label": -1,
        },
        **attrs,
    )
    return Sample(
        "multiclass_nms3", inputs, given, ["Out", "Index", "NmsRoisNum"], paddle=LATER, skip=COUNTS
    )


def levels(of, numbers):
    return {
        "MultiLevelRois": [corners(sum(n), seed=i) for i, n in enumerate(of)],
        "MultiLevelScores": [distinct(sum(n), 1, lo=0, hi=1) for n in of],
        "MultiLevelRoIsNum": [counts(*n) for n in numbers],
    }


def dealt(rois, numbers, pixel_offset=True):
    attrs = {
        "min_level": 2,
        "max_level": 4,
        "refer_level": 3,
        "refer_scale": 6,
        "pixel_offset": pixel_offset,
    }
    return Sample(
        "distribute_fpn_proposals",
        {"FpnRois": rois, "RoisNum": counts(*numbers)},
        attrs,
        ["MultiFpnRois*3", "RestoreIndex", "MultiLevelRoIsNum*3"],
        paddle=LATER,
        skip=COUNTS,
    )


def yolo(x, **attrs):
    given = dict(
        {
            "anchors": [4, 6, 8, 5],
            "class_num": 2,
            "conf_thresh": 0.3,
            "downsample_ratio": 8,
            "iou_aware": True,
        },
        **attrs,
    )
    return Sample(
        "yolo_box",
        {"X": x, "ImgSize": np.array([[24, 30]], "int32")},
        given,
        ["Boxes", "Scores"],
        paddle=LATER,
    )


THIN = [[1.2, 2.3, 1.2, 3.4], [2.6, 0.2, 2.1, 3.3], [0.4, 0.6, 0.5, 0.7], [3.2, 1.1, 3.2, 1.1]]
SAMPLES = [
    pooled("roi_align", f32(2, 3, 6, 7), boxes(BOXES), (3, 2), bins(2, 3)),
    pooled(
        "roi_align",
        f32(2, 2, 6, 7),
        boxes(BOXES[::2]),
        (1, 2),
        bins(2, 2, 0.5, sampling_ratio=2, aligned=True),
    ),
    pooled(
        "roi_align",
        f32(3, 1, 5, 6),
        boxes(BOXES + OUTSIDE + THIN),
        (4, 0, 10),
        bins(3, 2, aligned=True),
        grad=(),
    ),
    pooled(
        "roi_align",
        f64(1, 2, 4, 4),
        boxes(BOXES + THIN, "float64"),
        (9,),
        bins(1, 4, 0.7, sampling_ratio=3, aligned=True),
        grad=(),
    ),
    pooled(
        "roi_pool",
        distinct(2, 2, 6, 7),
        boxes(BOXES),
        (4, 1),
        bins(2, 2),
        ("Out", "Argmax"),
        of=["Out"],
    ),
    pooled(
        "psroi_pool", f32(3, 8, 5, 6), boxes(BOXES), (4, 0, 1), bins(2, 2, 0.6, output_channels=2)
    ),
    generated([5, 8], [[16, 18], [12, 15]], 0.5, True),
    generated([5, 8], [[16, 18], [12, 15]], 0.5, False, eta=0.8),
    generated([4], [[12, 16]], 0.6, False, min_size=5.0),
    generated([5], [[12, 16]], 0.6, True, min_size=90.0),
    nms(crowd(2, 8), scores(2, 3, 8)),
    nms(crowd(2, 8), scores(2, 3, 8), keep_top_k=3, normalized=False, background_label=0),
    nms(np.stack([crowd(5, 1)[:, 0], crowd(1, 5)[0]], 1), scores(5, 2), (3, 2), keep_top_k=2),
    nms(crowd(2, 4), scores(2, 2, 4), score_threshold=2.0),
    Sample(
        "collect_fpn_proposals",
        levels([(2, 1), (1, 3)], [(2, 1), (1, 3)]),
        {"post_nms_topN": 5},
        ["FpnRois", "RoisNum"],
        paddle=LATER,
        skip=COUNTS,
    ),
    dealt(corners(6), (2, 4)),
    dealt(corners(5, seed=3), (5, 0), False),
    yolo(f32(1, 16, 2, 3, lo=-2, hi=2)),
    yolo(f32(1, 16, 2, 3, lo=-2, hi=2), iou_aware_factor=0.8, clip_bbox=False, scale_x_y=1.2),
    yolo(f32(1, 14, 2, 3, lo=-2, hi=2), iou_aware=False),
]
