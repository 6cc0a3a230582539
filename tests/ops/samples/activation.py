"""Activations and elementwise functions: ordinary values, values on both sides of every threshold,
attributes.
"""

import numpy as np

from ..sample import Sample, away_from_zero, distinct, f32, positive

EVERYWHERE = [
    "logsigmoid",
    "tanh_shrink",
    "square",
    "sin",
    "cos",
    "atan",
    "erf",
    "softplus",
    "softsign",
    "sigmoid",
    "tanh",
    "exp",
    "gelu",
    "mish",
    "stanh",
    "swish",
]
ABOVE_ZERO = ["log", "log1p", "sqrt", "rsqrt"]
KINK_AT_ZERO = ["abs", "reciprocal", "relu", "leaky_relu", "elu", "selu"]
INSIDE_ONE = ["asin", "acos"]
STEPS = ["ceil", "floor", "round"]


def one(op, x, attrs=None, **more):
    return Sample(op, {"X": x}, attrs, outputs=["Out"], grad=["X"], **more)


def wide(op, far, skip=None, **attrs):
    """values on both sides of +-far, none near it"""
    x = np.concatenate(
        [away_from_zero(6, lo=0.1, hi=0.8), away_from_zero(6, lo=1.2, hi=2.5)]
    ) * np.float32(far)
    return one(op, x.reshape(3, 4), attrs, skip=skip)


SAMPLES = [one(op, f32(3, 4, lo=-3, hi=3)) for op in EVERYWHERE]
SAMPLES += [one(op, positive(3, 4)) for op in ABOVE_ZERO]
SAMPLES += [one(op, away_from_zero(3, 4, hi=2)) for op in KINK_AT_ZERO]
SAMPLES += [one(op, f32(3, 4, lo=-0.8, hi=0.8)) for op in INSIDE_ONE]
SAMPLES += [
    one(op, f32(3, 4, lo=0.1, hi=0.4) + np.arange(-6, 6, dtype="float32").reshape(3, 4))
    for op in STEPS
]
# eight elements: with fewer, 1.8.5 rounds halves away from zero
SAMPLES += [
    Sample(
        "round",
        {"X": np.array([0.5, 1.5, -0.5, -2.5, 2.5, -1.5, 3.5, 0.49999997], "float32")},
        outputs=["Out"],
    )
]
SAMPLES += [
    one("relu", f32(2, 3, 4, 5)),
    one("gelu", f32(3, 4, lo=-3, hi=3), {"approximate": True}),
    one("leaky_relu", away_from_zero(3, 4), {"alpha": 0.3}),
    one("elu", away_from_zero(3, 4), {"alpha": 0.5}),
    one("selu", away_from_zero(3, 4), {"scale": 1.2, "alpha": 0.7}),
    one("swish", f32(3, 4, lo=-3, hi=3), {"beta": 2.0}),
    one("stanh", f32(3, 4), {"scale_a": 0.3, "scale_b": 2.0}),
    one("softplus", f32(3, 4, lo=-8, hi=8)),
]
SAMPLES += [
    wide("relu6", 6.0),
    wide("relu6", 1.0, threshold=1.0),
    wide("brelu", 1.0, t_min=-1.0, t_max=1.0),
    wide(
        "soft_relu",
        2.0,
        threshold=2.0,
        skip={"numeric": "Paddle compares Out, not X, with the threshold"},
    ),
    wide("soft_relu", 3.0),
    wide("softshrink", 0.5),
    wide("softshrink", 1.0, **{"lambda": 1.0}),
    wide("hard_shrink", 0.5),
    wide("hard_shrink", 1.0, threshold=1.0),
    wide("hard_sigmoid", 2.5),
    wide("hard_sigmoid", 1.0, slope=0.5, offset=0.5),
    wide("hard_swish", 3.0),
    wide("hard_swish", 1.0, threshold=2.0, scale=2.0, offset=1.0),
    wide("thresholded_relu", 1.0),
    wide("thresholded_relu", 0.5, threshold=0.5),
    wide("mish", 20.0),
]
SAMPLES += [
    one("pow", positive(3, 4), {"factor": 2.0}),
    one("pow", positive(3, 4), {"factor": -0.5}),
    Sample(
        "pow",
        {"X": positive(3, 4), "FactorTensor": np.array([3.0], "float32")},
        outputs=["Out"],
        grad=["X"],
    ),
]
SAMPLES += [
    one("maxout", distinct(2, 6, 3, 3), {"groups": 2, "axis": 1}),
    one("maxout", distinct(2, 3, 3, 6), {"groups": 3, "axis": 3}),
]


def prelu(shape, mode):
    return Sample(
        "prelu",
        {"X": away_from_zero(2, 3, 2, 2), "Alpha": positive(*shape)},
        {"mode": mode},
        outputs=["Out"],
        grad=["X", "Alpha"],
    )


SAMPLES += [prelu((1,), "all"), prelu((3,), "channel"), prelu((1, 3, 2, 2), "element")]
