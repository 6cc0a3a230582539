"""Reductions: which dimensions, whether they stay, the result's dtype."""

import numpy as np

from ..sample import Sample, bools, distinct, f32, f64, ints, positive

FORMS = [
    ((2, 3), {}),
    ((2, 3, 4), {"dim": [1]}),
    ((2, 3, 4), {"dim": [-1], "keep_dim": True}),
    ((2, 3, 4), {"dim": [0, 2]}),
    ((2, 3, 4), {"dim": [-1, 0], "keep_dim": True}),
    ((2, 3), {"dim": [0, 1]}),  # all, one by one
    ((2, 3), {"reduce_all": True}),
    ((2, 3), {"reduce_all": True, "keep_dim": True}),
    ((4,), {}),
    ((4,), {"keep_dim": True}),
]
FP64, INT32, INT64, FP32 = 6, 2, 3, 5


def samples(op, make, grad=True):
    return [form(op, make(*shape), attrs, grad) for shape, attrs in FORMS]


def form(op, x, attrs, grad):
    note = fault(attrs, grad)
    return Sample(
        op, {"X": x}, attrs, outputs=["Out"], grad=["X"] if grad else [], paddle=not note, note=note
    )


def fault(attrs, grad):
    """what 1.8.5 does wrong"""
    if attrs.get("dim") == [0, 1]:
        return (
            "all dimensions named, but not reduce_all (which layers then set): 1.8.5 writes nothing"
            " to Out"
        )
    if "reduce_all" in attrs and "keep_dim" in attrs and grad:
        return (
            "1.8.5's gradient fails (D must match arity(DDim)), that of reduce_sum leaves all"
            " columns but one 0"
        )
    return ""


def f64_distinct(*shape):
    return distinct(*shape, dtype="float64")


def forward(op, x, **attrs):
    return Sample(op, {"X": x}, attrs, outputs=["Out"])


SAMPLES = [s for op in ("reduce_sum", "reduce_mean") for s in samples(op, f32)]
SAMPLES += [s for op in ("reduce_max", "reduce_min") for s in samples(op, distinct)]
SAMPLES += [s for op in ("reduce_prod", "frobenius_norm") for s in samples(op, positive)]
SAMPLES += [s for op in ("reduce_all", "reduce_any") for s in samples(op, bools, grad=False)]
SAMPLES += [
    forward(op, ints(3, 4, low=-4, high=5, dtype=dtype), dim=[1])
    for op in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min")
    for dtype in ("int32", "int64")
]
SAMPLES += [
    Sample(op, {"X": f64_distinct(2, 5)}, {"dim": [1]}, outputs=["Out"], grad=["X"])
    for op in ("reduce_sum", "reduce_mean", "reduce_max", "reduce_prod")
]
SAMPLES += [
    Sample(
        "reduce_sum",
        {"X": f32(2, 3)},
        {"dim": [1], "in_dtype": FP32, "out_dtype": FP64},
        outputs=["Out"],
        grad=["X"],
    ),
    Sample(
        "reduce_sum",
        {"X": f64(2, 3)},
        {"dim": [1], "in_dtype": FP64, "out_dtype": FP32},
        outputs=["Out"],
    ),
    forward("reduce_sum", ints(2, 3, high=9, dtype="int32"), dim=[1], out_dtype=INT64),
    forward("reduce_mean", f32(2, 3), dim=[1], out_dtype=FP64),
    *[
        forward(op, positive(2, 3), reduce_all=True, keep_dim=True)
        for op in (
            "reduce_sum",
            "reduce_mean",
            "reduce_max",
            "reduce_min",
            "reduce_prod",
            "frobenius_norm",
        )
    ],
    # every one of several equal extremes gets the whole gradient
    Sample(
        "reduce_max",
        {"X": np.array([[1, 2, 2], [3, 3, 3]], "float32")},
        {"dim": [1]},
        outputs=["Out"],
        grad=["X"],
        skip={"numeric": "at a tie the maximum has no derivative"},
    ),
    Sample(
        "reduce_min",
        {"X": np.array([[1, 1, 2], [3, 3, 3]], "float32")},
        {"dim": [1]},
        outputs=["Out"],
        grad=["X"],
        skip={"numeric": "at a tie the minimum has no derivative"},
    ),
]
