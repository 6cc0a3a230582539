"""Matrix products: nan and infinities in the sums, one row, zeros."""

import numpy as np

from ..case import Extreme

NAN, INF = np.nan, np.inf
LEFT = [[0, 0, 0], [1, INF, 2], [INF, -INF, 0], [NAN, 0, 1], [3e38, 3e38, 0], [1e-30, 1e-30, 1]]
RIGHT = [[1, 0], [0, 1], [2, -1]]
CASES = []
for dtype in ("float32", "float64"):
    x, y = np.array(LEFT, dtype), np.array(RIGHT, dtype)
    for op in ("mul", "matmul"):
        CASES += [
            Extreme(dtype, op, {"X": x, "Y": y}, grad=["X", "Y"]),
            Extreme(dtype + " one row", op, {"X": x[1:2].copy(), "Y": y}, grad=["X", "Y"]),
        ]
    CASES += [
        Extreme(dtype + " alpha=0", "matmul", {"X": x, "Y": y}, {"alpha": 0.0}, grad=["X", "Y"]),
        Extreme(dtype, "bmm", {"X": x.reshape(2, 3, 3), "Y": np.stack([y, y])}, grad=["X", "Y"]),
        Extreme(dtype, "dot", {"X": x, "Y": x[::-1].copy()}, grad=["X", "Y"]),
        Extreme(dtype, "cross", {"X": x, "Y": x[::-1].copy()}, {"dim": 1}, grad=["X", "Y"]),
        Extreme(dtype, "kron", {"X": x[:2].copy(), "Y": y}, grad=["X", "Y"]),
        Extreme(dtype, "trace", {"Input": x}, grad=["Input"]),
        Extreme(
            dtype,
            "addmm",
            {"Input": np.full((6, 2), INF, dtype), "X": x, "Y": y},
            {"Beta": 0.0, "Alpha": 0.0},
            grad=["X", "Y"],
        ),
    ]
for dtype in ("float32", "float64"):
    for what, row in (
        ("zeros", [0, -0.0, 0]),
        ("infinite", [np.inf, 0, 1]),
        ("nan", [np.nan, 0, 1]),
        ("great", [3e38, 1, 1]),
    ):
        x = np.array([row, [1, 2, 3]], dtype)
        CASES += [
            Extreme(
                "%s %s" % (dtype, what),
                "bilinear_tensor_product",
                {"X": x, "Y": np.ones((2, 2), dtype), "Weight": np.ones((2, 3, 2), dtype)},
                grad=["X", "Y", "Weight"],
            ),
            Extreme(
                "%s %s" % (dtype, what),
                "conv_shift",
                {"X": x, "Y": np.array([[1, 0, 1], [0, 1, 0]], dtype)},
                grad=["X", "Y"],
            ),
        ]
