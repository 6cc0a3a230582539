"""softmax and classification losses: hard and soft labels, ignored ones, axes, certain
probabilities.
"""

import numpy as np

from ..sample import Sample, f32, ints, positive


def probabilities(*shape, axis=-1):
    x = positive(*shape)
    return (x / x.sum(axis, keepdims=True)).astype("float32")


def label(*shape, high):
    return ints(*shape, high=high)


def cross_entropy(op, x, labels, attrs, outputs, **more):
    return Sample(
        op, {"X": x, "Label": labels}, attrs, outputs=outputs, grad=["X"], of=["Y"], **more
    )


IGNORED = np.array([[1], [-100], [0], [3]], "int64")
PICKED = ["Y", "MatchX"]
SAMPLES = [
    Sample("softmax", {"X": f32(3, 5)}, outputs=["Out"], grad=["X"]),
    Sample("softmax", {"X": f32(2, 3, 4)}, {"axis": 1}, outputs=["Out"], grad=["X"]),
    Sample(
        "softmax", {"X": f32(2, 3, 4, lo=-20, hi=20)}, {"axis": -1}, outputs=["Out"], grad=["X"]
    ),
]
SAMPLES += [
    cross_entropy("cross_entropy", probabilities(4, 5), label(4, 1, high=5), {}, ["Y"]),
    cross_entropy("cross_entropy", probabilities(4, 5), IGNORED, {}, ["Y"]),
    cross_entropy(
        "cross_entropy",
        probabilities(4, 5),
        np.array([[1], [2], [2], [4]], "int64"),
        {"ignore_index": 2},
        ["Y"],
    ),
    cross_entropy("cross_entropy", probabilities(2, 3, 5), label(2, 3, 1, high=5), {}, ["Y"]),
    cross_entropy(
        "cross_entropy", probabilities(4, 5), probabilities(4, 5), {"soft_label": True}, ["Y"]
    ),
    Sample(
        "cross_entropy",
        {
            "X": np.array([[0.0, 1.0], [1.0, 0.0]], "float32"),
            "Label": np.array([[0], [0]], "int64"),
        },
        outputs=["Y"],
    ),
    cross_entropy("cross_entropy2", probabilities(4, 5), label(4, 1, high=5), {}, PICKED),
    cross_entropy("cross_entropy2", probabilities(2, 3, 5), label(2, 3, 1, high=5), {}, PICKED),
    cross_entropy(
        "cross_entropy2",
        probabilities(4, 5),
        np.array([[1], [2], [2], [4]], "int64"),
        {"ignore_index": 2},
        ["Y"],
    ),
]


def with_softmax(logits, labels, attrs, **more):
    more.setdefault("grad", ["Logits"])
    return Sample(
        "softmax_with_cross_entropy",
        {"Logits": logits, "Label": labels},
        attrs,
        outputs=["Softmax", "Loss"],
        of=["Loss"],
        **more,
    )


OTHER_IGNORED = np.array([[1], [2], [2], [4]], "int64")
IGNORED_ROWS = (
    "1.8.5's CPU kernel leaves Loss@GRAD * Softmax in ignored rows, where the derivative (and its"
    " GPU kernel) is 0"
)


SAMPLES += [
    with_softmax(f32(4, 5), label(4, 1, high=5), {}),
    with_softmax(f32(4, 5), IGNORED, {}, grad=[]),
    with_softmax(f32(4, 5), OTHER_IGNORED, {"ignore_index": 2}, grad=[]),
    with_softmax(f32(4, 5), IGNORED, {}, paddle=False, note=IGNORED_ROWS),
    with_softmax(f32(4, 5), OTHER_IGNORED, {"ignore_index": 2}, paddle=False, note=IGNORED_ROWS),
    with_softmax(f32(2, 3, 5), label(2, 3, 1, high=5), {}),
    with_softmax(f32(2, 5, 3), label(2, 1, 3, high=5), {"axis": 1}),
    with_softmax(f32(4, 5, lo=-30, hi=30), label(4, 1, high=5), {}),
    with_softmax(f32(4, 5), probabilities(4, 5), {"soft_label": True}),
    with_softmax(f32(2, 5, 3), probabilities(2, 5, 3, axis=1), {"soft_label": True, "axis": 1}),
]


def sigmoid_loss(labels, attrs):
    return Sample(
        "sigmoid_cross_entropy_with_logits",
        {"X": f32(4, 3, lo=-3, hi=3), "Label": labels},
        attrs,
        outputs=["Out"],
        grad=["X"],
    )


HOT = np.array([[1, 0, -1], [0, 1, 1], [-1, -1, 0], [1, 1, 0]], "float32")
SAMPLES += [
    sigmoid_loss(positive(4, 3, lo=0, hi=1), {}),
    sigmoid_loss(HOT, {"ignore_index": -1}),
    sigmoid_loss(HOT, {"ignore_index": -1, "normalize": True}),
]
SAMPLES += [
    Sample(
        "log_loss",
        {
            "Predicted": positive(5, 1, lo=0.1, hi=0.9),
            "Labels": ints(5, 1, high=2, dtype="float32"),
        },
        {"epsilon": 1e-4},
        outputs=["Loss"],
        grad=["Predicted"],
    ),
    Sample(
        "bce_loss",
        {"X": positive(4, 3, lo=0.1, hi=0.9), "Label": ints(4, 3, high=2, dtype="float32")},
        outputs=["Out"],
        grad=["X"],
    ),
    Sample(
        "label_smooth", {"X": probabilities(4, 5)}, {"epsilon": 0.1}, outputs=["Out"], grad=["X"]
    ),
    Sample(
        "label_smooth",
        {"X": probabilities(4, 5), "PriorDist": probabilities(1, 5)},
        {"epsilon": 0.2},
        outputs=["Out"],
        grad=["X"],
    ),
]
