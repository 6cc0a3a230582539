"""hierarchical_sigmoid: the default tree and given ones."""

import numpy as np

from ..sample import Sample, f32, f64, ints

CLIP = {"numeric": "a logit that is clipped has a gradient all the same"}


def default(classes, bias=True, make=f32, scale=1, skip=None):
    n, d = 5, 3
    inputs = {"X": scale * make(n, d), "W": make(classes - 1, d), "Label": ints(n, 1, high=classes)}
    if bias:
        inputs["Bias"] = make(classes - 1, 1)
    grad = sorted(set(inputs) - {"Label"})
    return Sample(
        "hierarchical_sigmoid",
        inputs,
        {"num_classes": classes},
        ["Out", "PreOut"],
        grad,
        of=["Out"],
        skip=skip,
    )


def custom(bias=True, make=f32):
    n, d, nodes = 4, 3, 6
    table = np.array([[0, 2, -1, -1], [0, 1, 4, -1], [0, 1, 3, 5], [0, -1, -1, -1]], "int64")
    code = np.array([[0, 1, -1, -1], [1, 0, 0, -1], [1, 0, 1, 1], [1, -1, -1, -1]], "int64")
    inputs = {
        "X": make(n, d),
        "W": make(nodes, d),
        "Label": ints(n, 1, high=nodes),
        "PathTable": table,
        "PathCode": code,
    }
    if bias:
        inputs["Bias"] = make(nodes, 1)
    grad = sorted({"X", "W", "Bias"} & set(inputs))
    return Sample(
        "hierarchical_sigmoid", inputs, {"num_classes": nodes}, ["Out", "PreOut"], grad, of=["Out"]
    )


SAMPLES = [
    default(6),
    default(8, make=f64),
    default(2, bias=False),
    default(3, bias=False),
    default(17),
    default(6, scale=200, skip=CLIP),
    custom(),
    custom(bias=False, make=f64),
]
