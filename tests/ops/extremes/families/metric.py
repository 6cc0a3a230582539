"""Metrics: labels that all miss or all hit, one class, predictions at 0, 1 and beyond, nothing seen
yet.
"""

import numpy as np

from ..case import Extreme

NAN, INF = np.nan, np.inf
CASES = []
for dtype in ("float32", "float64"):
    scores = np.array([[0.5, 0.5], [NAN, 1], [INF, -INF]], dtype)
    places = np.array([[0, 1], [1, 0], [2, 2]], "int64")
    CASES += [
        Extreme(
            "%s %s" % (dtype, what),
            "accuracy",
            {"Out": scores, "Indices": places, "Label": np.array(label, "int64").reshape(3, 1)},
            {},
            ["Accuracy", "Correct", "Total"],
        )
        for what, label in (("hits", [0, 0, 2]), ("misses", [5, -1, 2**40]), ("twice", [2, 2, 2]))
    ]
CASES += [
    Extreme(
        "one row",
        "accuracy",
        {
            "Out": np.ones((1, 1), "float32"),
            "Indices": np.zeros((1, 1), "int64"),
            "Label": np.zeros((1, 1), kind),
        },
        {},
        ["Accuracy", "Correct", "Total"],
    )
    for kind in ("int64",)
]
P = {
    "zeros": [0, 0, 0, 0],
    "ones": [1, 1, 1, 1],
    "ties": [0.5, 0.5, 0.5, 0.5],
    "bounds": [0.0, 1.0, -0.0, 1e-30],
    "sure": [0, 1, 0, 1],
    "wrong": [1, 0, 1, 0],
    "edges": [0.125, 0.25, 0.99999994, 0.875],
}
LABELS = {"mixed": [0, 1, 0, 1], "positive": [1, 1, 1, 1], "negative": [0, 0, 0, 0]}
for p in sorted(P):
    for label in sorted(LABELS):
        score = np.array(P[p], "float32").reshape(4, 1)
        given = {
            "Predict": np.concatenate([1 - score, score], 1),
            "Label": np.array(LABELS[label], "int64").reshape(4, 1),
        }
        CASES += [
            Extreme(
                "%s %s slide_steps=%d" % (p, label, steps),
                "auc",
                dict(given, StatPos=np.zeros(size, "int64"), StatNeg=np.zeros(size, "int64")),
                {"num_thresholds": 8, "slide_steps": steps},
                ["AUC", "StatPosOut", "StatNegOut"],
            )
            for steps, size in ((0, 9), (1, 19))
        ]
bad = np.array([[NAN, 1.5], [2, -1], [0.5, INF]], "float32")
CASES += [
    Extreme(
        "beyond %d" % i,
        "auc",
        {
            "Predict": bad[i : i + 1].copy(),
            "Label": np.ones((1, 1), "int64"),
            "StatPos": np.zeros(9, "int64"),
            "StatNeg": np.zeros(9, "int64"),
        },
        {"num_thresholds": 8, "slide_steps": 0},
        ["AUC", "StatPosOut", "StatNegOut"],
    )
    for i in range(3)
]
for what, found, label in (
    ("hits", [0, 1, 2], [0, 1, 2]),
    ("misses", [1, 2, 0], [0, 1, 2]),
    ("one class", [1, 1, 1], [1, 1, 1]),
    ("one class missed", [1, 1, 1], [2, 2, 2]),
):
    given = {
        "MaxProbs": np.full((3, 1), NAN, "float32"),
        "Indices": np.array(found, "int32").reshape(3, 1),
        "Labels": np.array(label, "int32").reshape(3, 1),
    }
    outs = ["BatchMetrics", "AccumMetrics", "AccumStatesInfo"]
    CASES += [
        Extreme(
            "%s%s" % (what, also),
            "precision_recall",
            dict(given, **more),
            {"class_number": 3},
            outs,
        )
        for also, more in (
            ("", {}),
            (", no weight", {"Weights": np.zeros((3, 1), "float32")}),
            (", infinite weight", {"Weights": np.array([[INF], [1], [0]], "float32")}),
            (
                ", states",
                {"StatesInfo": np.array([[3e38, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]], "float32")},
            ),
        )
    ]
    flat = [np.array(v, "int32") for v in (found, label)]
    CASES += [
        Extreme(
            "flat " + what,
            "mean_iou",
            {"Predictions": flat[0], "Labels": flat[1]},
            {"num_classes": 4},
            ["OutMeanIou", "OutWrong", "OutCorrect"],
        )
    ]
