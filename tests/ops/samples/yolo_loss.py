"""The loss of YOLO heads."""

import numpy as np

from ..sample import Sample, uniform

BOXES = [
    [[0.3, 0.4, 0.2, 0.3], [0.7, 0.2, 0.4, 0.1], [0.32, 0.42, 0.21, 0.31]],
    [[0.5, 0.9, 0.6, 0.15], [0.0, 0.0, 0.0, 0.0], [0.1, 0.1, 0.05, 1e-7]],
]
KINK = {"numeric": "of boxes in one cell the gradient takes the last alone"}
ANCHORS = [10, 13, 16, 30, 33, 23, 30, 61]


def loss(
    size=4,
    classes=2,
    anchors=ANCHORS,
    mask=(0, 1, 2),
    boxes=BOXES,
    score=False,
    dtype="float32",
    skip=None,
    **attrs,
):
    boxes = np.array(boxes, dtype)
    n, b = boxes.shape[:2]
    inputs = {
        "X": uniform((n, len(mask) * (5 + classes), size, size), -1, 1, dtype),
        "GTBox": boxes,
        "GTLabel": (np.arange(n * b).reshape(n, b) % classes).astype("int32"),
    }
    if score:
        inputs["GTScore"] = uniform((n, b), 0.2, 1, dtype)
    base = {
        "anchors": anchors,
        "anchor_mask": list(mask),
        "class_num": classes,
        "ignore_thresh": 0.5,
        "downsample_ratio": 32,
    }
    return Sample(
        "yolov3_loss",
        inputs,
        dict(base, **attrs),
        ["Loss", "ObjectnessMask", "GTMatchMask"],
        ["X"],
        of=["Loss"],
        tol=1e-4,
        grad_tol=1e-5,
        skip=skip,
    )


APART = [[[0.3, 0.4, 0.2, 0.3], [0.7, 0.2, 0.4, 0.1]]]
SAMPLES = [
    loss(boxes=APART),
    loss(boxes=APART, use_label_smooth=False, score=True, mask=(1, 3)),
    loss(size=2, downsample_ratio=16, score=True, skip=KINK),
    loss(
        classes=50,
        size=2,
        boxes=APART,
        mask=(0,),
        anchors=[10, 13],
        ignore_thresh=0.1,
        scale_x_y=1.2,
    ),
    loss(dtype="float64", skip=KINK, mask=(2, 0)),
    loss(boxes=np.zeros((2, 2, 4))),
]
