"""Reductions: ties, overflow, zeros in a product, nan and infinities, one row, one column, integers
at their limits.
"""

import numpy as np

from ..case import Extreme, limits

NAN, INF = np.nan, np.inf
ROWS = [
    [0, -0.0, 0],
    [1, 1, 1],
    [2, 1, 2],
    [-1, -1, -2],
    [1e-30, 0, -1e-30],
    [1e19, 1e19, -1e19],
    [3e38, 3e38, 1],
    [3e38, -3e38, 1],
    [INF, 1, 0],
    [-INF, 1, 2],
    [INF, -INF, 1],
    [0, INF, 1],
    [1, 0, 2],
    [0, 0, 2],
    [NAN, 0, 1],
    [1, NAN, 0],
    [0, 1, NAN],
]
FLOAT = ["reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod", "frobenius_norm"]
CASES = []
for dtype in ("float32", "float64"):
    rows = np.array(ROWS, dtype)
    finite = rows[1:7]
    # no product of all of them: zeros and overflow meet in it, in an order that vector code decides
    for op in FLOAT:
        CASES += [
            Extreme(dtype + " rows", op, {"X": rows}, {"dim": [1]}, grad=["X"]),
            Extreme(
                dtype + " columns", op, {"X": finite}, {"dim": [0], "keep_dim": True}, grad=["X"]
            ),
            Extreme(
                dtype + " all",
                op,
                {"X": finite[:3] if op == "reduce_prod" else finite},
                {"reduce_all": True},
                grad=["X"],
            ),
            Extreme(
                dtype + " one element", op, {"X": rows[:, :1].copy()}, {"dim": [1]}, grad=["X"]
            ),
            Extreme(dtype + " one row", op, {"X": rows[2:3]}, {"dim": [0]}, grad=["X"]),
        ]
for dtype in ("int32", "int64"):
    v = limits(dtype)
    CASES += [Extreme(dtype, op, {"X": v}, {"dim": [0]}) for op in FLOAT[:-1]]
    CASES += [
        Extreme(dtype + " pairs", op, {"X": np.resize(v, (8, 2))}, {"dim": [1]})
        for op in FLOAT[:-1]
    ]
BOOLS = np.array([[True, True], [True, False], [False, False]])
CASES += [Extreme("rows", op, {"X": BOOLS}, {"dim": [1]}) for op in ("reduce_all", "reduce_any")]
CASES += [
    Extreme("whole", op, {"X": BOOLS}, {"reduce_all": True}) for op in ("reduce_all", "reduce_any")
]
