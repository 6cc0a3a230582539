"""Losses that compare values: regression, ranking, margins. Values keep away from kinks."""

import numpy as np

from ..sample import Sample, away_from_zero, distinct, f32, ints, positive


def pair(op, x, y, outputs, grad, attrs=None, **more):
    return Sample(op, {"X": x, "Y": y}, attrs, outputs=outputs, grad=grad, **more)


SAMPLES = [
    pair(
        "huber_loss",
        f32(6, 1),
        f32(6, 1),
        ["Residual", "Out"],
        ["X", "Y"],
        {"delta": d},
        of=["Out"],
    )
    for d in (0.5, 1.0, 3.0)
]
SAMPLES += [
    pair(
        "smooth_l1_loss",
        f32(4, 3, lo=-2, hi=2),
        f32(4, 3),
        ["Diff", "Out"],
        ["X", "Y"],
        {"sigma": s},
        of=["Out"],
    )
    for s in (1.0, 3.0)
]
SAMPLES += [
    Sample(
        "smooth_l1_loss",
        {
            "X": f32(4, 3, lo=-2, hi=2),
            "Y": f32(4, 3),
            "InsideWeight": positive(4, 3),
            "OutsideWeight": positive(4, 3),
        },
        {"sigma": 1.0},
        outputs=["Out"],
        grad=["X", "Y"],
    )
]
TARGET = np.array([[0.2, 0.3, 0.5], [0.0, 0.4, 0.6]], "float32")
SAMPLES += [
    Sample(
        "kldiv_loss",
        {"X": f32(2, 3), "Target": TARGET},
        {"reduction": r},
        outputs=["Loss"],
        grad=["X"],
    )
    for r in ("none", "mean", "sum", "batchmean")
]
SAMPLES += [
    Sample("bpr_loss", {"X": f32(4, 5), "Label": ints(4, 1, high=5)}, outputs=["Y"], grad=["X"]),
    Sample(
        "hinge_loss",
        {"Logits": f32(6, 1, lo=-0.9, hi=0.9), "Labels": ints(6, 1, high=2, dtype="float32")},
        outputs=["Loss"],
        grad=["Logits"],
    ),
    Sample(
        "hinge_loss",
        {
            "Logits": np.array([[1.5], [-1.5], [2.0]], "float32"),
            "Labels": np.array([[1], [1], [0]], "float32"),
        },
        outputs=["Loss"],
        grad=["Logits"],
    ),
    Sample(
        "rank_loss",
        {"Label": ints(5, 1, high=2, dtype="float32"), "Left": f32(5, 1), "Right": f32(5, 1)},
        outputs=["Out"],
        grad=["Left", "Right"],
    ),
    Sample(
        "margin_rank_loss",
        {
            "X1": distinct(6, 1),
            "X2": f32(6, 1),
            "Label": np.array([[1], [-1], [1], [-1], [1], [-1]], "float32"),
        },
        {"margin": 0.1},
        outputs=["Out", "Activated"],
        grad=["X1", "X2"],
        of=["Out"],
    ),
    Sample(
        "modified_huber_loss",
        {"X": away_from_zero(8, 1, lo=0.1, hi=0.9) * 2, "Y": ints(8, 1, high=2, dtype="float32")},
        outputs=["Out"],
        grad=["X"],
    ),
    Sample(
        "squared_l2_distance",
        {"X": f32(4, 3), "Y": f32(4, 3)},
        outputs=["Out", "sub_result"],
        grad=["X", "Y"],
        of=["Out"],
    ),
    Sample(
        "squared_l2_distance", {"X": f32(4, 3), "Y": f32(1, 3)}, outputs=["Out"], grad=["X", "Y"]
    ),
]


def nll(x, label, weight=None, **attrs):
    inputs = {"X": x, "Label": label}
    if weight is not None:
        inputs["Weight"] = weight
    return Sample(
        "nll_loss", inputs, attrs, outputs=["Out", "Total_weight"], grad=["X"], of=["Out"]
    )


SOME = np.array([0, 2, 1, 2], "int64")
for reduction in ("none", "mean", "sum"):
    SAMPLES += [
        nll(f32(4, 3), SOME, positive(3), reduction=reduction),
        nll(f32(4, 3), SOME, reduction=reduction),
        nll(f32(4, 3), SOME, positive(3), reduction=reduction, ignore_index=2),
        nll(f32(2, 3, 2, 2), ints(2, 2, 2, high=3), positive(3), reduction=reduction),
    ]
TEACHER = np.array([[-2.0], [-0.5], [0.3], [0.7], [1.4], [-1.0]], "float32")
SAMPLES += [
    Sample(
        "teacher_student_sigmoid_loss",
        {"X": f32(6, 1, lo=-3, hi=3), "Label": TEACHER},
        outputs=["Y"],
        grad=["X"],
    ),
    Sample(
        "sigmoid_focal_loss",
        {
            "X": f32(5, 3, lo=-2, hi=2),
            "Label": np.array([[0], [1], [3], [2], [-1]], "int32"),
            "FgNum": np.array([3], "int32"),
        },
        outputs=["Out"],
        grad=["X"],
    ),
    Sample(
        "sigmoid_focal_loss",
        {
            "X": f32(5, 3, lo=-2, hi=2),
            "Label": np.array([[0], [1], [3], [2], [1]], "int32"),
            "FgNum": np.array([0], "int32"),
        },
        {"gamma": 1.5, "alpha": 0.4},
        outputs=["Out"],
        grad=["X"],
    ),
]
