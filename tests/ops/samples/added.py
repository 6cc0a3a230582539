"""Op types that Paddle 2 and 3 added, the third part: least squares, eigenvalues, ways through
tags, draws.
"""

import numpy as np

from ..sample import LATER, Sample, distinct, f32, f64, positive

DRAWS = "draws by its own key; tests/ops/test_added.py looks at what is drawn"


def one(op, inputs, attrs=None, outs=("Out",), grad=(), **more):
    return Sample(op, inputs, attrs, list(outs), list(grad) or None, paddle=LATER, **more)


def squares(x, y, driver):
    outs = (
        ["Solution", "Residuals"]
        + ["Rank"] * (driver != "gels")
        + ["SingularValues"] * (driver in ("gelsd", "gelss"))
    )
    return one(
        "lstsq",
        {"X": x, "Y": y},
        {"rcond": 1e-6, "driver": driver},
        outs,
        tol=1e-4,
        skip={"unknown": "the number of rows decides what Residuals there are"},
    )


def tags(steps, lengths, ends, x=None):
    given = {
        "Input": distinct(len(lengths), steps, 4) if x is None else x,
        "Transition": f32(4, 4),
        "Length": np.array(lengths),
    }
    return one("viterbi_decode", given, {"include_bos_eos_tag": ends}, ["Scores", "Path"])


def draws(op, inputs, attrs=None, outs=("Out",)):
    return Sample(op, inputs, attrs, list(outs), paddle=False, note=DRAWS)


# two of its eigenvalues are complex
TURNS = np.array([[0, 2, 1], [-3, 0.5, 0], [1, 1, 4]], "float64")
SAMPLES = [
    one(
        "eig",
        {"X": np.array([[1, 2], [3, -4]], "float32")},
        {},
        ["Eigenvalues"],
        ["X"],
        skip={"numeric": "of a real matrix"},
    ),
    one("eig", {"X": TURNS}, {}, ["Eigenvalues"]),
    one("eigvals", {"X": np.stack([TURNS, TURNS + np.eye(3)])}),
    squares(f64(3, 2), f64(3, 1), "gels"),
    squares(f64(4, 2), f64(4, 2), "gelsd"),
    squares(f32(2, 4), f32(2, 1), "gelsd"),
    squares(f64(3, 2), f64(3, 1), "gelsy"),
    squares(np.array([[1, 2], [2, 4]], "float64"), f64(2, 1), "gelss"),
    one(
        "lu_unpack",
        {"X": f32(3, 3), "Pivots": np.array([3, 2, 3], "int32")},
        {},
        ["Pmat", "L", "U"],
        ["X"],
        of=["L", "U"],
    ),
    one(
        "lu_unpack",
        {"X": f64(2, 3), "Pivots": np.array([2, 2], "int32")},
        {},
        ["Pmat", "L", "U"],
        skip={"unknown": "the number of rows decides the sizes of L and U"},
    ),
    tags(3, [3, 2], True),
    tags(4, [4, 1, 3], False),
    tags(3, [3, 3], True, np.zeros((2, 3, 4), "float32")),
    one(
        "unpool3d",
        {
            "X": f32(1, 2, 1, 2, 2),
            "Indices": np.array([[0, 3, 8, 15], [17, 19, 28, 31]], "int32").reshape(1, 2, 1, 2, 2),
        },
        {"ksize": [2, 2, 2], "strides": [2, 2, 2], "output_size": [2, 4, 4]},
        grad=["X"],
    ),
    one(
        "std", {"x": f32(2, 3)}, {"axis": [1], "unbiased": True, "correction": 1.0}, ["out"], ["x"]
    ),
    one(
        "gammaincc",
        {"x": positive(4), "y": positive(4)},
        {},
        ["out"],
        ["y"],
        tol=2e-5,
        grad_tol=2e-5,
    ),
    one(
        "rrelu",
        {"X": np.array([[1, 2, -1, 0.0, -0.0, -3]], "float32")},
        {"lower": 0.1, "upper": 0.3, "is_test": True},
        ["Out", "Noise"],
        ["X"],
        of=["Out"],
        skip={"numeric": "kinks"},
    ),
    one("poisson", {"X": np.zeros(3, "float32")}),
    draws("poisson", {"X": positive(3)}),
    draws("standard_gamma", {"x": positive(3)}, outs=["out"]),
    draws("dirichlet", {"Alpha": positive(2, 3)}),
    draws(
        "binomial", {"count": np.array([3, 9]), "prob": positive(2, lo=0.2, hi=0.8)}, outs=["out"]
    ),
    draws("rrelu", {"X": f32(4)}),
    draws("gumbel_softmax", {"X": f32(2, 3)}),
]
