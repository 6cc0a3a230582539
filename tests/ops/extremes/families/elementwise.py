"""Arithmetic of two tensors: every special value beside every other, ties, broadcast rows, integers
at their limits.
"""

import numpy as np

from ..case import Extreme, binary, few, integers

FLOAT = [
    "elementwise_add",
    "elementwise_sub",
    "elementwise_mul",
    "elementwise_div",
    "elementwise_max",
    "elementwise_min",
    "elementwise_pow",
]
CASES = [case for op in FLOAT for case in binary(op)] + binary("elementwise_mod", grad=False)
CASES += [
    case
    for op in (
        "elementwise_add",
        "elementwise_sub",
        "elementwise_mul",
        "elementwise_max",
        "elementwise_min",
    )
    for case in integers(op, 2, dtypes=("int32", "int64"))
]
CASES += [
    case
    for op in ("elementwise_div", "elementwise_mod", "elementwise_floordiv")
    for case in integers(op, 2, dtypes=("int32", "int64"), nonzero=True)
]
for dtype in ("float32", "float64"):
    x = np.resize(few(dtype)[:20], (4, 6))
    CASES += [
        Extreme(dtype + " row", op, {"X": x, "Y": x[1]}, {"axis": 1}, grad=["X", "Y"])
        for op in FLOAT
        if op != "elementwise_pow"
    ]
    CASES += [
        Extreme(dtype + " one", op, {"X": x, "Y": np.zeros(1, dtype)}, grad=["X", "Y"])
        for op in FLOAT
        if op != "elementwise_pow"
    ]
