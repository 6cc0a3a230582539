"""Look-ups and metrics: rows of nan, ids that come twice, padding, ties, nothing predicted."""

import numpy as np

from ..case import Extreme

NAN, INF = np.nan, np.inf
CASES = []
for dtype in ("float32", "float64"):
    table = np.array([[0, -0.0], [NAN, 1], [INF, -INF], [3e38, 1]], dtype)
    ids = np.array([1, 1, 3, 0, 2], "int64")
    for pad in (-1, 1):
        CASES += [
            Extreme(
                "%s padding %d" % (dtype, pad),
                "lookup_table",
                {"W": table, "Ids": ids.reshape(5, 1)},
                {"padding_idx": pad},
                grad=["W"],
            ),
            Extreme(
                "%s padding %d" % (dtype, pad),
                "lookup_table_v2",
                {"W": table, "Ids": ids},
                {"padding_idx": pad},
                grad=["W"],
            ),
        ]
CASES += [
    Extreme("limits", "one_hot", {"X": np.array([[0], [3]], "int64")}, {"depth": 4}),
    Extreme(
        "outside",
        "one_hot",
        {"X": np.array([[0], [4], [-1]], "int64")},
        {"depth": 4, "allow_out_of_range": True},
    ),
    Extreme(
        "outside",
        "one_hot_v2",
        {"X": np.array([0, 4, -1], "int64")},
        {"depth": 4, "allow_out_of_range": True},
    ),
]

label = np.array([[0], [1], [1], [0]], "int64")
for what, indices in (("hit by none", [[2], [2], [2], [2]]), ("hit by all", [[0], [1], [1], [0]])):
    CASES += [
        Extreme(
            what,
            "accuracy",
            {
                "Out": np.zeros((4, 1), "float32"),
                "Indices": np.array(indices, "int64"),
                "Label": label,
            },
            {},
            ["Accuracy", "Correct", "Total"],
        )
    ]
CASES += [
    Extreme(
        what,
        "mean_iou",
        {"Predictions": np.array(p, "int32"), "Labels": np.array(q, "int32")},
        {"num_classes": 4},
        ["OutMeanIou", "OutWrong", "OutCorrect"],
    )
    for what, p, q in (
        ("all", [0, 1, 2, 3], [0, 1, 2, 3]),
        ("none", [0, 0, 0], [1, 1, 1]),
        ("one class", [2], [2]),
    )
]
