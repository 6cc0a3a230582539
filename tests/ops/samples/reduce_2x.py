"""Reductions, scans and order in Paddle 2 and 3."""

import numpy as np

from ..sample import LATER, Sample, distinct, f32, positive

NAN = np.nan


def one(op, x, attrs=None, outs=("Out",), grad=True, slot="X"):
    return Sample(
        op, {slot: x}, attrs, list(outs), [slot] if grad else None, of=list(outs)[:1], paddle=LATER
    )


def pair(op, names, values, attrs=None, outs=("Out",), grad=()):
    return Sample(
        op, {n: values[i] for i, n in enumerate(names)}, attrs, list(outs), list(grad), paddle=LATER
    )


BOTH = ("Out", "Indices")
SAMPLES = [
    one("log_softmax", f32(3, 4)),
    one("log_softmax", f32(2, 3, 4), {"axis": 1}),
    one("logsumexp", f32(3, 4), {"axis": [1]}),
    one("logsumexp", f32(2, 3, 4), {"axis": [0, 2], "keepdim": True}),
    one("logsumexp", f32(3, 4), {"axis": [0], "reduce_all": True}),
    one("top_k_v2", distinct(3, 5), {"k": 2}, BOTH),
    one("top_k_v2", distinct(4, 3), {"k": 2, "axis": 0, "largest": False}, BOTH),
    Sample(
        "top_k_v2", {"X": distinct(2, 5), "K": np.array([3], "int32")}, {}, list(BOTH), paddle=LATER
    ),
    one("cumprod", positive(3, 4), {"dim": 1}),
    one("cumprod", positive(3, 4), {"dim": 0}),
    one("logcumsumexp", f32(3, 4), {"axis": 1}),
    one("logcumsumexp", f32(3, 4), {"flatten": True}),
    one("logcumsumexp", f32(3, 4), {"axis": 0, "reverse": True}),
    one("cummax", distinct(3, 4), {"axis": 1}, ("out", "indices"), slot="x"),
    one("cummin", distinct(3, 4), {"axis": 0}, ("out", "indices"), slot="x"),
    one(
        "cummax",
        np.array([1, 3, 3, 2, NAN, 5], "float32"),
        {"axis": 0, "dtype": 2},
        ("out", "indices"),
        grad=False,
        slot="x",
    ),
    one(
        "cummin",
        np.array([3, 1, 1, 2, NAN, 0], "float32"),
        {"axis": 0},
        ("out", "indices"),
        grad=False,
        slot="x",
    ),
    one("kthvalue", distinct(3, 5), {"k": 2}, BOTH),
    one("kthvalue", distinct(4, 3), {"k": 3, "axis": 0, "keepdim": True}, BOTH),
    pair(
        "searchsorted",
        ("SortedSequence", "Values"),
        (np.array([1, 2, 2, 5], "float32"), np.array([[0, 2], [3, 9]], "float32")),
    ),
    pair(
        "searchsorted",
        ("SortedSequence", "Values"),
        (np.array([[1, 2, 2], [0, 4, 8]], "float32"), np.array([[2, 9], [0, 5]], "float32")),
        {"right": True, "out_int32": True},
    ),
    pair("mv", ("X", "Vec"), (f32(3, 4), f32(4)), grad=("X", "Vec")),
    pair("equal_all", ("X", "Y"), (np.array([1, 2]), np.array([1, 2]))),
    pair("equal_all", ("X", "Y"), (np.array([1, 2]), np.array([1, 3]))),
    pair(
        "isclose",
        ("Input", "Other"),
        (
            np.array([1, 1, NAN, np.inf], "float32"),
            np.array([1.000001, 1.1, NAN, np.inf], "float32"),
        ),
    ),
    pair(
        "isclose",
        ("Input", "Other"),
        (np.array([1, NAN, 10], "float32"), np.array([1.2, NAN, 11], "float32")),
        {"rtol": "0.05", "atol": "0.16", "equal_nan": True},
    ),
]
