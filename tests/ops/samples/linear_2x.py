"""Linear algebra and creation in Paddle 2 and 3."""

import numpy as np

from ..sample import LATER, Sample, f32, f64, positive

DRAWS = "draws by its own key; tests/ops/test_ops_2x.py looks at what is drawn"


def regular(*shape):
    """matrices far from singular"""
    return (f64(*shape) + 2 * np.eye(shape[-1])).astype("float64")


def one(op, slot, x, attrs=None, **more):
    return Sample(op, {slot: x}, attrs, ["Out"], [slot], paddle=LATER, **more)


def definite(n):
    x = regular(n, n)
    return x @ x.T


HALF = {"numeric": "of the matrix one half is read, which the gradient spreads over both"}
SAMPLES = [
    one("determinant", "Input", regular(3, 3)),
    one("determinant", "Input", regular(2, 2, 2)),
    one("cholesky", "X", definite(3), skip=HALF),
    one("cholesky", "X", definite(2), {"upper": True}, skip=HALF),
    Sample("solve", {"X": regular(3, 3), "Y": f64(3, 2)}, {}, ["Out"], ["X", "Y"], paddle=LATER),
    Sample(
        "triangular_solve",
        {"X": np.triu(regular(3, 3)), "Y": f64(3, 2)},
        {},
        ["Out"],
        ["Y"],
        paddle=LATER,
    ),
    Sample(
        "triangular_solve",
        {"X": np.tril(regular(3, 3)), "Y": f64(3, 2)},
        {"upper": False, "transpose": True},
        ["Out"],
        ["Y"],
        paddle=LATER,
    ),
    one("matrix_power", "X", regular(2, 2), {"n": 3}),
    one("matrix_power", "X", regular(2, 2), {"n": -2}),
    Sample("multi_dot", {"X": [f32(2, 3), f32(3, 4), f32(4, 2)]}, {}, ["Out"], ["X"], paddle=LATER),
    Sample(
        "tril_indices", {}, {"rows": 3, "cols": 4, "offset": 1, "dtype": 3}, ["out"], paddle=LATER
    ),
    Sample(
        "triu_indices", {}, {"row": 3, "col": 4, "offset": -1, "dtype": 2}, ["out"], paddle=LATER
    ),
    Sample("bernoulli", {"X": np.array([0, 1, 1, 0], "float32")}, {}, ["Out"], paddle=LATER),
    Sample(
        "multinomial", {"X": np.array([[0, 1, 0], [0, 0, 2]], "float32")}, {}, ["Out"], paddle=LATER
    ),
    Sample(
        "multinomial", {"X": positive(2, 5)}, {"num_samples": 3}, ["Out"], paddle=False, note=DRAWS
    ),
    Sample(
        "batch_fc",
        {"Input": f32(2, 3, 4), "W": f32(2, 4, 5), "Bias": f32(2, 5)},
        {},
        ["Out"],
        ["Input", "W", "Bias"],
        paddle=False,
        note="Paddle has it for the GPU alone; tests/ops/test_ops_2x.py multiplies by hand",
    ),
]
