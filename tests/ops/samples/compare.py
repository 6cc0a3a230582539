"""Comparisons, logic and tests for special values."""

import numpy as np

from ..sample import Sample, bools, f32, f64, ints

NAN, INF = float("nan"), float("inf")
RELATIONS = ["equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal"]


def relation(op):
    """all dtypes the CPU kernel has; Y is broadcast along axis, as in elementwise ops.

    equal and not_equal of floats ask whether |x - y| < 1e-8, so that inf does not equal inf.
    """
    few = lambda dtype: {"X": ints(3, 4, high=3, dtype=dtype), "Y": ints(3, 4, high=3, dtype=dtype)}
    special = np.array([NAN, INF, -INF, 0.0, 0.0, 0.0], "float32")
    inputs = [
        (few("float32"), {}),
        (few("float64"), {}),
        (few("int32"), {}),
        (few("int64"), {}),
        ({"X": ints(2, 3, 4, high=3), "Y": ints(3, high=3)}, {"axis": 1}),
        ({"X": ints(2, 3, 4, high=3), "Y": ints(3, 4, high=3)}, {}),
        ({"X": special, "Y": np.array([NAN, INF, INF, -0.0, 1e-9, 1e-7], "float32")}, {}),
    ]
    return [Sample(op, x, attrs, outputs=["Out"]) for x, attrs in inputs]


def special(op):
    """one answer for the whole tensor"""
    clean = [f32(2, 3), f64(4), ints(3, high=5, dtype="int32")]
    dirty = [np.array(v, "float32") for v in ([1, NAN], [INF, 1], [-INF, NAN])]
    return [Sample(op, {"X": x}, outputs=["Out"]) for x in clean + dirty]


def close(x, y, **attrs):
    x, y = np.array(x, "float32"), np.array(y, "float32")
    return Sample("allclose", {"Input": x, "Other": y}, attrs, outputs=["Out"])


SAMPLES = [s for op in RELATIONS for s in relation(op)]
SAMPLES += [
    Sample(op, {"X": bools(2, 5), "Y": bools(2, 5)}, outputs=["Out"])
    for op in ("logical_and", "logical_or", "logical_xor")
]
SAMPLES += [Sample("logical_not", {"X": bools(7)}, outputs=["Out"])]
SAMPLES += [s for op in ("isfinite", "isnan", "isinf") for s in special(op)]
SAMPLES += [
    Sample("is_empty", {"X": f32(2, 3)}, outputs=["Out"]),
    Sample("is_empty", {"X": np.zeros([0, 3], "float32")}, outputs=["Out"]),
]
SAMPLES += [
    close([1.0, 2.0], [1.0, 2.0]),
    close([10000.0, 1e-07], [10000.1, 1e-08], rtol=1e-05, atol=1e-08),
    close([10000.0, 1e-08], [10000.1, 1e-09], rtol=1e-05, atol=1e-08),
    close([1.0, NAN], [1.0, NAN]),
    close([1.0, NAN], [1.0, NAN], equal_nan=True),
    close([1.0], [1.5], rtol=0.5, atol=0.0),
]
