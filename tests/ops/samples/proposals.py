"""Proposals and what they are trained on."""

import numpy as np

from ..sample import Sample, distinct, f32, f64, positive


def corners(n, size=16.0, seed=0, least=2.0, dtype="float32"):
    """n boxes within an image of that size"""
    source = np.random.RandomState(seed)
    at, extent = source.uniform(0, size - least, (n, 2)), source.uniform(least, size / 2, (n, 2))
    return np.concatenate([at, np.minimum(at + extent, size - 1)], 1).astype(dtype)


def grid_anchors(height, width, sizes, stride, dtype="float32"):
    """[height, width, len(sizes), 4]"""
    y, x, s = np.meshgrid(
        np.arange(height) * stride, np.arange(width) * stride, np.array(sizes), indexing="ij"
    )
    half = s / 2.0
    return np.stack([x - half, y - half * 0.8, x + half, y + half * 0.8], -1).astype(dtype)


def generated(
    n,
    height,
    width,
    sizes,
    info,
    pre,
    post,
    nms,
    min_size=0.1,
    eta=1.0,
    dtype="float32",
    scores=None,
    spread=0.6,
):
    kinds = len(sizes)
    scores = (
        distinct(n, kinds, height, width, lo=0, hi=1, dtype=dtype) if scores is None else scores
    )
    uniform = f32 if dtype == "float32" else f64
    inputs = {
        "Scores": scores,
        "BboxDeltas": uniform(n, 4 * kinds, height, width, lo=-spread, hi=spread),
        "ImInfo": np.array(info, dtype),
        "Anchors": grid_anchors(height, width, sizes, 4.0, dtype),
        "Variances": positive(height, width, kinds, 4, dtype=dtype),
    }
    attrs = {
        "pre_nms_topN": pre,
        "post_nms_topN": post,
        "nms_thresh": nms,
        "min_size": min_size,
        "eta": eta,
    }
    return Sample(
        "generate_proposals",
        inputs,
        attrs,
        ["RpnRois", "RpnRoiProbs", "RpnRoisLod"],
        skip={"unknown": "ImInfo and the maps are of one number of images, the anchors of none"},
    )


def truth(counts, seed=1, size=16.0, crowd=(), dtype="float32", labels=None):
    total = sum(counts)
    return {
        "GtBoxes": corners(total, size, seed, 4.0, dtype),
        "IsCrowd": np.isin(np.arange(total), crowd).astype("int32").reshape(-1, 1),
    }


INFO = [[16, 18, 1.0], [15, 16, 1.5], [12, 16, 0.5]]
RPN = {
    "rpn_batch_size_per_im": 8,
    "rpn_straddle_thresh": 0.0,
    "rpn_fg_fraction": 0.5,
    "rpn_positive_overlap": 0.5,
    "rpn_negative_overlap": 0.3,
    "use_random": False,
}
ANCHORS = grid_anchors(4, 4, [5, 8, 12], 4.0).reshape(-1, 4) + np.float32(2)
ASSIGNED = ["LocationIndex", "ScoreIndex", "TargetBBox", "TargetLabel", "BBoxInsideWeight"]
CLOSED = {"unknown": "the anchors are of no image"}


def rpn(counts, anchors=ANCHORS, crowd=(), seed=1, **attrs):
    given = truth(counts, seed, crowd=crowd)
    inputs = dict({"Anchor": anchors, "ImInfo": np.array(INFO[: len(counts)], "float32")}, **given)
    return Sample(
        "rpn_target_assign",
        inputs,
        dict(RPN, **attrs),
        ASSIGNED,
        lod={k: [list(counts)] for k in given},
        skip=CLOSED,
        tol=2e-5,
    )


def retina(counts, crowd=(), seed=1, **attrs):
    given = truth(counts, seed, crowd=crowd)
    given["GtLabels"] = (np.arange(sum(counts)) % 3 + 1).astype("int32").reshape(-1, 1)
    inputs = dict({"Anchor": ANCHORS, "ImInfo": np.array(INFO[: len(counts)], "float32")}, **given)
    lod = {k: [list(counts)] for k in given}
    return Sample(
        "retinanet_target_assign",
        inputs,
        attrs,
        ASSIGNED + ["ForegroundNumber"],
        lod=lod,
        skip=CLOSED,
        tol=2e-5,
    )


LABELS = {
    "batch_size_per_im": 6,
    "fg_fraction": 0.5,
    "fg_thresh": 0.5,
    "bg_thresh_hi": 0.5,
    "bg_thresh_lo": 0.0,
    "bbox_reg_weights": [0.1, 0.1, 0.2, 0.2],
    "class_nums": 3,
    "use_random": False,
}


def labelled(rois, counts, crowd=(), seed=1, empty=-3, info=INFO, **attrs):
    given = truth(counts, seed, crowd=crowd)
    given["GtClasses"] = (np.arange(sum(counts)) % 2 + 1).astype("int32").reshape(-1, 1)
    boxes = corners(sum(rois), seed=seed + 5)
    boxes[1::4, 2] = boxes[1::4, 0] - empty
    # some that overlap a box
    boxes[::3] = given["GtBoxes"][np.arange(len(boxes[::3])) % sum(counts)] + np.float32(0.4)
    inputs = dict({"RpnRois": boxes, "ImInfo": np.array(info[: len(counts)], "float32")}, **given)
    lod = dict({k: [list(counts)] for k in given}, RpnRois=[list(rois)])
    return Sample(
        "generate_proposal_labels",
        inputs,
        dict(LABELS, **attrs),
        ["Rois", "LabelsInt32", "BboxTargets", "BboxInsideWeights", "BboxOutsideWeights"],
        lod=lod,
        skip={"unknown": "proposals and boxes are of as many rows as their LoDs say"},
        tol=2e-5,
    )


def polygon(n, centre, size, seed):
    source = np.random.RandomState(seed)
    angle = np.sort(source.uniform(0, 2 * np.pi, n))
    radius = source.uniform(0.5, 1.0, n) * size
    return np.stack([centre[0] + radius * np.cos(angle), centre[1] + radius * np.sin(angle)], 1)


def masked(objects, labels, crowd, info, resolution=5, classes=3, seed=3):
    """objects: for each image the numbers of points of each object's polygons; labels: of the
    regions of each image
    """
    source = np.random.RandomState(seed)
    polygons = [
        polygon(n, source.uniform(5, 11, 2), source.uniform(2, 6), seed + i)
        for i, n in enumerate(n for image in objects for one in image for n in one)
    ]
    count = sum(map(len, objects))
    lods = [
        [len(image) for image in objects],
        [len(one) for image in objects for one in image],
        [len(p) for p in polygons],
    ]
    inputs = {
        "ImInfo": np.array(info, "float32"),
        "GtClasses": (np.arange(count) % 2 + 1).astype("int32").reshape(-1, 1),
        "IsCrowd": np.isin(np.arange(count), crowd).astype("int32").reshape(-1, 1),
        "GtSegms": np.concatenate(polygons).astype("float32"),
        "Rois": corners(sum(map(len, labels)), seed=seed, least=5.0),
        "LabelsInt32": np.concatenate([np.array(n) for n in labels]).astype("int32").reshape(-1, 1),
    }
    regions = [[len(n) for n in labels]]
    lod = {
        "GtClasses": lods[:1],
        "IsCrowd": lods[:1],
        "GtSegms": lods,
        "Rois": regions,
        "LabelsInt32": regions,
    }
    return Sample(
        "generate_mask_labels",
        inputs,
        {"num_classes": classes, "resolution": resolution},
        ["MaskRois", "RoiHasMaskInt32", "MaskInt32"],
        lod=lod,
        skip={"unknown": "regions and objects are of as many rows as their LoDs say"},
    )


def collected(lods, top):
    rows = [sum(lod) for lod in lods]
    scores = np.split(distinct(sum(rows), 1, lo=0, hi=1), np.cumsum(rows)[:-1])
    return Sample(
        "collect_fpn_proposals",
        {
            "MultiLevelRois": [corners(n, seed=i) for i, n in enumerate(rows)],
            "MultiLevelScores": scores,
        },
        {"post_nms_topN": top},
        ["FpnRois"],
        lod={"MultiLevelRois": [[n] for n in lods], "MultiLevelScores": [[n] for n in lods]},
        skip={"unknown": "levels are of as many rows as their LoDs say"},
    )


def distributed(lod, low, high, refer, scale, size=16.0):
    return Sample(
        "distribute_fpn_proposals",
        {"FpnRois": corners(sum(lod), size, 4)},
        {"min_level": low, "max_level": high, "refer_level": refer, "refer_scale": scale},
        ["MultiFpnRois*%d" % (high - low + 1), "RestoreIndex"],
        lod={"FpnRois": [lod]},
    )


SAMPLES = [
    generated(2, 3, 4, [6, 9], INFO[:2], 100, 10, 0.5),
    generated(1, 3, 3, [6, 9], INFO[:1], 12, 4, 0.4, eta=0.8),
    generated(3, 2, 2, [6, 9], INFO, 0, 0, 0.7, min_size=4.0),
    generated(1, 2, 3, [6], INFO[:1], 6, 3, 0.0),
    generated(2, 2, 2, [6], [[16, 18, 0.2], [15, 16, 1.5]], 4, 4, 0.5, min_size=10.0),
    generated(1, 2, 2, [6, 9], INFO[:1], 100, 8, 0.5, dtype="float64"),
    rpn([3, 2]),
    rpn([2], rpn_straddle_thresh=-1.0, rpn_batch_size_per_im=20, rpn_fg_fraction=0.25),
    rpn(
        [2, 3, 1],
        crowd=(1, 4),
        rpn_positive_overlap=0.7,
        rpn_negative_overlap=0.6,
        rpn_batch_size_per_im=40,
    ),
    rpn([2, 2], rpn_batch_size_per_im=40, rpn_fg_fraction=0.0),
    retina([3, 2]),
    retina([2, 3, 1], crowd=(1, 4), positive_overlap=0.6, negative_overlap=0.5),
    labelled([5, 7], [2, 3]),
    labelled(
        [6, 4], [3, 2], crowd=(1,), is_cls_agnostic=True, batch_size_per_im=4, fg_fraction=0.25
    ),
    labelled(
        [6, 4], [3, 2], crowd=(0, 4), empty=2.5, info=[INFO[0], [20, 16, 1.0]], is_cascade_rcnn=True
    ),
    labelled([7, 5, 6], [2, 1, 2], bg_thresh_lo=0.1, fg_thresh=0.6, batch_size_per_im=20),
    masked([[[5], [4, 3]], [[6]]], [[1, 0, 2], [0, 1]], (), INFO[:2]),
    masked([[[5], [7, 3]], [[6], [4]]], [[1, 0, 2, 1], [0, 0]], (2,), INFO[:2], resolution=7),
    masked([[[3]], [[5, 8, 4]]], [[2], [1, 2, 0]], (), INFO[:2], resolution=6, seed=9),
    collected([[2, 3], [1, 4], [3, 0]], 6),
    collected([[2], [3]], 100),
    distributed([3, 6], 2, 4, 3, 6, 40.0),
    distributed([5], 3, 3, 3, 5, 32.0),
]
