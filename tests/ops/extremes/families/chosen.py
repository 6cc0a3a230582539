"""Which elements count as not 0, and which as equal: zeros of both signs, subnormals, nan,
infinities, the limits of integers.
"""

import numpy as np

from ..case import Extreme

ODD = [2, np.nan, -0.0, 0.0, np.nan, np.inf, -np.inf, np.inf, 1e-40, -1e-40, 3e38, 2]
CASES = []
for dtype in ("float32", "float64"):
    odd = np.array(ODD, dtype)
    CASES += [
        Extreme(dtype, "where_index", {"Condition": odd}),
        Extreme(dtype + " none", "where_index", {"Condition": np.zeros((2, 3), dtype)}),
    ]
    CASES += [Extreme(dtype, "unique", {"X": odd}, {"dtype": 2}, ["Out", "Index"])]
    CASES += [
        Extreme(dtype, "unique_with_counts", {"X": odd}, {"dtype": 3}, ["Out", "Index", "Count"])
    ]
for dtype in ("int32", "int64"):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    limits = np.array([low, high, 0, low, -1, high, 0], dtype)
    CASES += [Extreme(dtype, "where_index", {"Condition": limits})]
    CASES += [Extreme(dtype, "unique", {"X": limits}, {"dtype": 3}, ["Out", "Index"])]
    CASES += [
        Extreme(dtype, "unique_with_counts", {"X": limits}, {"dtype": 2}, ["Out", "Index", "Count"])
    ]
for what, value in (("all", True), ("none", False)):
    CASES += [Extreme("bool " + what, "where_index", {"Condition": np.full((2, 3), value)})]
