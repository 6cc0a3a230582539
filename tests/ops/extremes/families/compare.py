"""Comparisons of special values, of numbers closer than 1e-8, of integers at their limits; nan and
infinities among others.
"""

import numpy as np

from ..case import Extreme, binary, integers

NAN, INF = np.nan, np.inf
RELATIONS = ["equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal"]
CASES = [
    case
    for op in RELATIONS
    for case in binary(op, grad=False) + integers(op, 2, dtypes=("int32", "int64"))
]
T, F = np.repeat([True, False], 8), np.tile([True, False], 8)
CASES += [
    Extreme("all", op, {"X": T, "Y": F}) for op in ("logical_and", "logical_or", "logical_xor")
]
CASES += [Extreme("all", "logical_not", {"X": T})]
ROWS = {
    "nothing special": [0, -0.0, 1e-40, 3e38],
    "nan": [0, NAN, 1, 2],
    "inf": [0, INF, 1, 2],
    "-inf": [1, 2, 3, -INF],
    "both": [NAN, INF, 0, 0],
    "opposite": [INF, -INF, 0, 0],
}
for dtype in ("float32", "float64"):
    for what, row in sorted(ROWS.items()):
        CASES += [
            Extreme("%s %s" % (dtype, what), op, {"X": np.array(row, dtype)})
            for op in ("isfinite", "isnan", "isinf")
        ]
        CASES += [
            Extreme(
                "%s %s%s" % (dtype, what, ", equal_nan" * e),
                "allclose",
                {"Input": np.array(row, dtype), "Other": np.array(row, dtype)},
                {"equal_nan": e},
            )
            for e in (False, True)
        ]
    for a, b in (
        (INF, -INF),
        (INF, 1),
        (1, INF),
        (0, 1e-9),
        (0, 2e-8),
        (-0.0, 0.0),
        (1, 1.00001),
        (1, 1.00002),
        (NAN, 1),
        (3e38, -3e38),
    ):
        CASES += [
            Extreme(
                "%s %g %g" % (dtype, a, b),
                "allclose",
                {"Input": np.array([a], dtype), "Other": np.array([b], dtype)},
            )
        ]
    CASES += [Extreme(dtype, "is_empty", {"X": np.zeros(n, dtype)}) for n in ((0, 3),)]
    CASES += [Extreme(dtype + " one", "is_empty", {"X": np.array([NAN], dtype)})]
for dtype in ("int32", "int64"):
    CASES += [
        Extreme(dtype, op, {"X": np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)})
        for op in ("isfinite", "isnan", "isinf")
    ]
