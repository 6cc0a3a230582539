"""Pointwise ops of Paddle 2 and 3."""

import numpy as np

from ..sample import LATER, Sample, away_from_zero, bools, f32, f64, ints, positive


def unary(op, x, attrs=None, grad=True):
    return Sample(op, {"X": x}, attrs, ["Out"], ["X"] if grad else None, paddle=LATER)


def binary(op, x, y, grad=True, names=("X", "Y"), attrs=None):
    return Sample(
        op, {names[0]: x, names[1]: y}, attrs, ["Out"], list(names) if grad else None, paddle=LATER
    )


SPECIAL = np.array([0, np.nan, np.inf, -np.inf, 1], "float32")
SAMPLES = [unary(op, f32(3, 4)) for op in ("silu", "expm1", "sinh", "cosh", "tan", "asinh")]
SAMPLES += [unary(op, positive(3, 4)) for op in ("log2", "log10", "lgamma", "digamma")]
SAMPLES += [
    unary("acosh", f32(3, lo=1.2, hi=3.0)),
    unary("atanh", f32(3, lo=-0.8, hi=0.8)),
    unary("erfinv", f32(3, lo=-0.8, hi=0.8)),
    unary("trunc", f32(3, 4, lo=-3.0, hi=3.0)),
    unary("silu", f64(2, 3)),
]
SAMPLES += [unary(op, SPECIAL, grad=False) for op in ("isnan_v2", "isinf_v2", "isfinite_v2")]
SAMPLES += [unary("isnan_v2", ints(3, high=5), grad=False)]
SAMPLES += [
    unary("celu", away_from_zero(3, 4)),
    unary("celu", away_from_zero(3, 4), {"alpha": 0.4}),
    unary("logit", f32(5, lo=0.1, hi=0.9)),
    unary("logit", np.array([0.01, 0.5, 0.99], "float32"), {"eps": 0.1}, grad=False),
]
SAMPLES += [
    binary("atan2", away_from_zero(3, 4), away_from_zero(3, 4), names=("X1", "X2")),
    binary("elementwise_fmax", f32(3, 4), f32(3, 4)),
    binary("elementwise_fmin", f32(3, 4), f32(4)),
]
SAMPLES += [
    Sample(
        "lerp",
        {"X": f32(3, 4), "Y": f32(3, 4), "Weight": f32(1)},
        {},
        ["Out"],
        ["X", "Y"],
        paddle=LATER,
    )
]
SAMPLES += [
    binary(op, ints(3, 4, high=9), ints(3, 4, high=9), grad=False)
    for op in ("bitwise_and", "bitwise_or", "bitwise_xor")
]
SAMPLES += [
    binary("bitwise_xor", bools(4), bools(4), grad=False),
    unary("bitwise_not", ints(3, high=9), grad=False),
    unary("bitwise_not", bools(5), grad=False),
]
SAMPLES += [
    Sample("share_data", {"X": f32(2)}, {}, ["Out"], paddle=LATER),
    Sample("memcpy", {"X": f32(2)}, {"dst_place_type": 0}, ["Out"], paddle=LATER),
]
SAMPLES += [
    Sample("swiglu", {"x": f32(3, 4), "y": f32(3, 4)}, {}, ["out"], ["x", "y"], paddle=LATER),
    Sample("swiglu", {"x": f32(3, 4)}, {}, ["out"], ["x"], paddle=LATER),
]
