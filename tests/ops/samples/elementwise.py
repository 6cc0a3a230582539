"""Elementwise arithmetic: broadcasting along axis, dtypes, signs of integer division, gradients at
ties.
"""

import numpy as np

from ..sample import Sample, distinct, f32, f64, ints, positive

# shapes of X and Y, axis
BROADCASTS = [
    ((2, 3), (2, 3), -1),
    ((2, 3, 4), (4,), -1),
    ((2, 3, 4), (3,), 1),
    ((2, 3, 4), (2, 3), 0),
    ((2, 3, 4), (3, 4), -1),
    ((2, 3, 4), (3, 1), 1),
    ((2, 3, 4), (2, 1, 1), 0),
    ((2, 3), (1,), -1),
    ((2, 3), (1, 3), -1),
    ((2, 1, 4), (1, 3, 4), -1),  # both
    ((3,), (2, 3, 4), 1),  # X along Y
    ((4,), (2, 3, 4), -1),
]
FLOAT_OPS = ["add", "sub", "mul", "div", "max", "min", "pow"]


def pair(op, x, y, dtype):
    if op in ("max", "min"):
        both = distinct(int(np.prod(x) + np.prod(y)), dtype=dtype)
        return both[: int(np.prod(x))].reshape(x), both[int(np.prod(x)) :].reshape(y)
    make = positive if op in ("div", "pow") else uniform
    return make(*x, dtype=dtype), make(*y, dtype=dtype)


def uniform(*shape, dtype):
    return (f32 if dtype == "float32" else f64)(*shape)


def binary(op, shapes, dtype="float32"):
    x, y, axis = shapes
    swapped = op == "pow" and len(x) < len(y)
    x, y = pair(op, x, y, dtype)
    return Sample(
        "elementwise_" + op,
        {"X": x, "Y": y},
        {"axis": axis},
        outputs=["Out"],
        grad=["X", "Y"],
        paddle=not swapped,
        note="1.8.5 computes Y ** X where X has fewer dimensions" if swapped else "",
    )


def integers(op, dtype):
    x = np.array([7, -7, 7, -7, 0, 6, -6], dtype)
    y = np.array([2, 2, -2, -2, 3, 3, 3], dtype)
    return Sample("elementwise_" + op, {"X": x, "Y": y}, outputs=["Out"])


def tie(op):
    x, y = np.array([1, 2, 3], "float32"), np.array([1, 3, 2], "float32")
    return Sample(
        "elementwise_" + op,
        {"X": x, "Y": y},
        outputs=["Out"],
        grad=["X", "Y"],
        skip={"numeric": "at a tie the extreme has no derivative"},
    )


def second(op, shapes):
    """the gradient op, differentiated itself"""
    x, y, axis = shapes
    x, y = pair(op, x, y, "float32")
    rank = max(x.ndim, y.ndim)
    out = f32(*np.broadcast(*(spread(a, axis, rank) for a in (x, y))).shape)
    inputs, grad = {"X": x, "Y": y, "Out@GRAD": out}, ["X", "Y", "Out@GRAD"]
    if op in ("add", "sub"):
        grad = ["Out@GRAD"]
    if op == "div":
        inputs["Out"], grad = f32(*out.shape), ["Y", "Out", "Out@GRAD"]
    skip = (
        {"unknown": "X's first dimension lies along Y's second"}
        if axis == 1 and x.ndim < y.ndim
        else {}
    )
    return Sample(
        "elementwise_" + op + "_grad",
        inputs,
        {"axis": axis},
        outputs=["X@GRAD", "Y@GRAD"],
        grad=grad,
        paddle=False,
        skip=skip,
        note="the recorder knows ops with a proto only",
    )


def spread(a, axis, rank):
    axis = rank - a.ndim if axis == -1 or a.ndim == rank else axis
    return a.reshape((1,) * axis + a.shape + (1,) * (rank - axis - a.ndim))


SAMPLES = [binary(op, shapes) for op in FLOAT_OPS for shapes in BROADCASTS]
SAMPLES += [binary(op, BROADCASTS[2], "float64") for op in FLOAT_OPS]
SAMPLES += [
    integers(op, dtype)
    for op in ["add", "sub", "mul", "div", "max", "min", "mod", "floordiv"]
    for dtype in ("int32", "int64")
]
SAMPLES += [tie(op) for op in ("max", "min")]
SAMPLES += [
    Sample(
        "elementwise_mod",
        {
            "X": np.array([7, -7, 7.5, -7.5, 6], "float32"),
            "Y": np.array([2, 2, -2, -2, 3], "float32"),
        },
        outputs=["Out"],
    ),
    Sample(
        "elementwise_mod",
        {"X": ints(2, 3, 4, high=50), "Y": ints(3, low=1, high=9)},
        {"axis": 1},
        outputs=["Out"],
    ),
    Sample(
        "elementwise_floordiv",
        {"X": ints(2, 3, 4, high=50), "Y": ints(3, low=1, high=9)},
        {"axis": 1},
        outputs=["Out"],
    ),
    Sample(
        "elementwise_pow",
        {"X": np.array([2, 3, 5, -2], "int64"), "Y": np.array([3, 0, 13, 3], "int64")},
        outputs=["Out"],
    ),
    Sample(
        "elementwise_pow",
        {"X": np.array([0, 0, -2], "float32"), "Y": np.array([2, 0, 2], "float32")},
        outputs=["Out"],
        grad=["X"],
        skip={"numeric": "X is moved below 0"},
    ),
]
SAMPLES += [
    second(op, BROADCASTS[i])
    for op in ("add", "sub", "mul", "div")
    for i in (0, 1, 2, 10)
    if (op, i) != ("div", 10)
]
