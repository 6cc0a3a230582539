"""Losses that compare values: their kinks, labels and values without the last dimension,
infinities.
"""

import numpy as np

from ..case import Extreme

NAN, INF = np.nan, np.inf
DTYPES = ("float32", "float64")
VALUES = [
    0,
    -0.0,
    0.5,
    -0.5,
    1,
    -1,
    2,
    -2,
    3,
    1e-30,
    -1e-30,
    64,
    -64,
    100,
    -100,
    1e4,
    -1e4,
    3e38,
    -3e38,
    INF,
    -INF,
    NAN,
]
CASES = []


def columns(dtype, others=VALUES):
    """two columns that pair every value with every other one"""
    v, w = np.array(VALUES, dtype), np.array(others, dtype)
    return np.repeat(v, len(w))[:, None], np.tile(w, len(v))[:, None]


for dtype in DTYPES:
    x, y = columns(dtype)
    CASES += [
        Extreme(
            "%s delta=%g" % (dtype, d),
            "huber_loss",
            {"X": x, "Y": y},
            {"delta": d},
            outputs=["Residual", "Out"],
            grad=["X", "Y"],
            of=["Out"],
        )
        for d in (1.0, 0.5, 0.0)
    ]
    CASES += [
        Extreme(
            "%s sigma=%g" % (dtype, s),
            "smooth_l1_loss",
            {"X": x, "Y": y},
            {"sigma": s},
            outputs=["Diff", "Out"],
            grad=["X", "Y"],
            of=["Out"],
        )
        for s in (1.0, 2.0)
    ]
    CASES += [
        Extreme(
            dtype + " rows",
            "smooth_l1_loss",
            {
                "X": np.array([[0, 1, 2], [1, -1, 1]], dtype),
                "Y": np.array([[0, 0, 0], [0, 0, -3]], dtype),
                "InsideWeight": np.array([[1, 1, 0], [0.5, 1, 1]], dtype),
                "OutsideWeight": np.array([[0, 1, 1], [1, 2, INF]], dtype),
            },
            outputs=["Diff", "Out"],
            grad=["X", "Y"],
            of=["Out"],
        )
    ]
    x, target = columns(dtype, [0, -0.0, 1, 0.5, 1e-30, -1, 3e38, INF, NAN])
    CASES += [
        Extreme(
            "%s %s" % (dtype, r),
            "kldiv_loss",
            {"X": x[:n], "Target": target[:n]},
            {"reduction": r},
            outputs=["Loss"],
            grad=["X"],
        )
        for r, n in (("none", len(x)), ("mean", 27), ("sum", 27), ("batchmean", 27))
    ]
    x, label = columns(dtype, [0, 1, 0.5, -1, NAN])
    CASES += [
        Extreme(
            dtype, "hinge_loss", {"Logits": x, "Labels": label}, outputs=["Loss"], grad=["Logits"]
        ),
        Extreme(
            dtype,
            "modified_huber_loss",
            {"X": x, "Y": np.abs(np.nan_to_num(label)).round().astype(dtype)},
            grad=["X"],
        ),
    ]
    CASES += [
        Extreme(
            dtype, "teacher_student_sigmoid_loss", {"X": x, "Label": y}, outputs=["Y"], grad=["X"]
        )
        for x, y in [columns(dtype, [-2, -1, -0.5, 0, 0.3, 1, 1.4, -1e-30, NAN])]
    ]
    x = np.array(
        [
            [0, 0, 0, 0],
            [1, 2, 3, 4],
            [100, -100, 0, 1],
            [1e4, -1e4, 0, 0],
            [INF, 0, 1, 2],
            [-INF, 0, 1, 2],
            [NAN, 0, 1, 2],
        ],
        dtype,
    )
    CASES += [
        Extreme(
            "%s class %d" % (dtype, c),
            "bpr_loss",
            {"X": x, "Label": np.full((7, 1), c, "int64")},
            outputs=["Y"],
            grad=["X"],
        )
        for c in (0, 1)
    ]
    left, right = columns(dtype)
    for shape, what in (((-1, 1), "[N, 1]"), ((-1,), "[N]")):
        CASES += [
            Extreme(
                "%s label %g %s" % (dtype, l, what),
                "rank_loss",
                {"Label": np.full_like(left, l).reshape(shape), "Left": left, "Right": right},
                grad=["Left", "Right"],
                pointwise=len(shape) == 2,
            )
            for l in (0, 1, 0.5)
        ]
    CASES += [
        Extreme(
            dtype + " all [N]",
            "rank_loss",
            {
                "Label": np.array([0, 1], dtype),
                "Left": np.array([1, 2], dtype),
                "Right": np.array([3, 0], dtype),
            },
            grad=["Left", "Right"],
        ),
        Extreme(
            dtype + " left [N]",
            "rank_loss",
            {
                "Label": np.array([[0], [1]], dtype),
                "Left": np.array([1, 2], dtype),
                "Right": np.array([[3], [0]], dtype),
            },
            grad=["Left", "Right"],
        ),
    ]
    CASES += [
        Extreme(
            "%s label %g margin=%g" % (dtype, l, m),
            "margin_rank_loss",
            {"X1": left, "X2": right, "Label": np.full_like(left, l)},
            {"margin": m},
            outputs=["Out", "Activated"],
            grad=["X1", "X2"],
            of=["Out"],
        )
        for l in (1, -1)
        for m in (0.0, 0.5)
    ]
    x = np.array([[0, 1, 2], [INF, 1, -INF], [NAN, 0, 0], [3e38, -3e38, 0]], dtype)
    CASES += [
        Extreme(
            dtype,
            "squared_l2_distance",
            {"X": x, "Y": np.zeros((4, 3), dtype)},
            outputs=["sub_result", "Out"],
            grad=["X", "Y"],
            of=["Out"],
        ),
        Extreme(
            dtype + " one row",
            "squared_l2_distance",
            {"X": x, "Y": np.array([[0, 1, INF]], dtype)},
            outputs=["sub_result", "Out"],
            grad=["X", "Y"],
            of=["Out"],
        ),
    ]


def nll(label, x, labels, weight=None, **attrs):
    inputs = {"X": x, "Label": labels}
    if weight is not None:
        inputs["Weight"] = weight
    return Extreme(
        label, "nll_loss", inputs, attrs, outputs=["Out", "Total_weight"], grad=["X"], of=["Out"]
    )


for dtype in DTYPES:
    x = np.array([[0, -1, -INF], [-INF, NAN, -0.0], [-3e38, 3e38, 1], [1, 2, 3]], dtype)
    for r in ("none", "mean", "sum"):
        CASES += [
            nll("%s %s" % (dtype, r), x, np.array([0, 1, 2, 2], "int64"), reduction=r),
            nll(
                "%s %s no weight" % (dtype, r),
                x,
                np.array([0, 1, 2, 2], "int64"),
                np.zeros(3, dtype),
                reduction=r,
            ),
            nll(
                "%s %s infinite" % (dtype, r),
                x,
                np.array([0, 2, 0, 1], "int64"),
                np.array([0, 1, INF], dtype),
                reduction=r,
            ),
            nll(
                "%s %s ignored" % (dtype, r),
                x,
                np.array([0, 1, 2, 2], "int64"),
                np.array([1, 2, 3], dtype),
                reduction=r,
                ignore_index=1,
            ),
            nll(
                "%s %s all ignored" % (dtype, r),
                x,
                np.full(4, 1, "int64"),
                np.array([1, 2, 3], dtype),
                reduction=r,
                ignore_index=1,
            ),
            nll(
                "%s %s pixels" % (dtype, r),
                x.reshape(1, 3, 2, 2),
                np.array([[[0, 1], [2, 1]]], "int64"),
                reduction=r,
                ignore_index=1,
            ),
        ]
    v = np.array(VALUES, dtype)
    CASES += [
        Extreme(
            "%s FgNum=%d gamma=%g" % (dtype, f, g),
            "sigmoid_focal_loss",
            {
                "X": v.reshape(11, 2),
                "Label": np.array([[0, 1, 2, -1, 1, 2, 0, 1, 1, 2, 0]], "int32").T,
                "FgNum": np.array([f], "int32"),
            },
            {"gamma": g, "alpha": 0.25},
            grad=["X"],
        )
        for f in (0, 3)
        for g in (2.0, 0.0, 0.5)
    ]
    CASES += [
        Extreme(
            "%s label %d" % (dtype, l),
            "sigmoid_focal_loss",
            {
                "X": v[:, None],
                "Label": np.full((22, 1), l, "int32"),
                "FgNum": np.array([1], "int32"),
            },
            grad=["X"],
        )
        for l in (-1, 0, 1)
    ]
