"""Metrics; those with running states also in a second call, on states that a first one left behind."""

import numpy as np

from ..sample import Sample, f32, f64, ints, positive


def accuracy(n, k, dtype):
    return Sample(
        "accuracy",
        {"Out": f32(n, k), "Indices": ints(n, k, high=4), "Label": ints(n, 1, high=4, dtype=dtype)},
        outputs=["Accuracy", "Correct", "Total"],
    )


def auc(n, slide_steps, thresholds, seed, fill=0, step=0, width=2, **attrs):
    rng = np.random.RandomState(seed)
    size = (1 + slide_steps) * (thresholds + 1) + (1 if slide_steps else 0)

    def state():
        parts = rng.randint(0, fill + 1, (max(slide_steps, 1), thresholds + 1)).astype("int64")
        if not slide_steps:
            return parts[0]
        whole = np.concatenate([parts.ravel(), parts.sum(0), [step]])
        assert whole.size == size
        return whole.astype("int64")

    p = rng.uniform(0, 1, (n, 1)).astype("float32")
    p[0] = 1.0
    predict = np.concatenate([1 - p, p], 1) if width == 2 else p
    attrs.update(num_thresholds=thresholds, slide_steps=slide_steps)
    inputs = {
        "Predict": predict,
        "Label": rng.randint(0, 2, (n, 1)).astype("int64"),
        "StatPos": state(),
        "StatNeg": state(),
    }
    return Sample("auc", inputs, attrs, outputs=["AUC", "StatPosOut", "StatNegOut"])


def one_sided():
    sample = auc(6, 0, 9, 11)
    sample.inputs["Label"][:] = 1
    return sample


def mean_iou(inputs=0, dtype="int32"):
    given = {
        "Predictions": ints(3, 4, high=5, dtype=dtype),
        "Labels": ints(3, 4, high=5, dtype=dtype),
    }
    if inputs:
        given["InWrongs"] = [ints(6, high=4, dtype="int32") for _ in range(inputs)]
        given["InCorrects"] = [ints(6, high=4, dtype="int32") for _ in range(inputs)]
        given["InMeanIou"] = [positive(1) for _ in range(inputs)]
    return Sample(
        "mean_iou", given, {"num_classes": 6}, outputs=["OutMeanIou", "OutWrong", "OutCorrect"]
    )


def precision_recall(n, classes, weights=False, states=False):
    inputs = {
        "MaxProbs": f32(n, 1),
        "Indices": ints(n, 1, high=classes, dtype="int32"),
        "Labels": ints(n, 1, high=classes, dtype="int32"),
    }
    if weights:
        inputs["Weights"] = positive(n, 1)
    if states:
        inputs["StatesInfo"] = positive(classes, 4, hi=5.0)
    return Sample(
        "precision_recall",
        inputs,
        {"class_number": classes},
        outputs=["BatchMetrics", "AccumMetrics", "AccumStatesInfo"],
    )


SAMPLES = [
    accuracy(6, 1, "int64"),
    accuracy(7, 3, "int64"),
    # an index that is repeated counts once for its row
    Sample(
        "accuracy",
        {
            "Out": f64(3, 2),
            "Indices": np.array([[1, 1], [2, 0], [3, 3]]),
            "Label": np.array([[1], [0], [1]]),
        },
        outputs=["Accuracy", "Correct", "Total"],
    ),
    auc(8, 0, 15, seed=1),
    auc(8, 0, 15, seed=2, fill=3),
    auc(8, 0, 15, seed=3, fill=3, width=1),
    auc(8, 1, 15, seed=4),
    auc(8, 1, 15, seed=5, fill=3, step=1),
    auc(8, 3, 15, seed=6, fill=3, step=0),
    auc(8, 3, 15, seed=7, fill=3, step=5),
    auc(5, 1, 4095, seed=8, curve="ROC"),
    one_sided(),
    mean_iou(),
    mean_iou(1),
    mean_iou(2),
    precision_recall(9, 4),
    precision_recall(9, 4, weights=True),
    precision_recall(9, 4, states=True),
    precision_recall(5, 6, weights=True, states=True),
]
