"""As many rows as the data say."""

import numpy as np

from ..sample import Sample, bools, f32, ints

ODD = np.array([2, np.nan, -0.0, 0.0, np.nan, np.inf, 2, -np.inf, np.inf], "float32")

SAMPLES = [
    Sample("where_index", {"Condition": bools(3, 4)}, {}, ["Out"]),
    Sample("where_index", {"Condition": bools(7)}, {}, ["Out"]),
    Sample("where_index", {"Condition": bools(2, 3, 4)}, {}, ["Out"]),
    Sample("where_index", {"Condition": ints(3, 4, high=3, low=-1)}, {}, ["Out"]),
    Sample(
        "where_index",
        {"Condition": np.where(f32(3, 4) > 0, 0, f32(3, 4)).astype("float32")},
        {},
        ["Out"],
    ),
    Sample("unique", {"X": ints(9, high=5)}, {"dtype": 2}, ["Out", "Index"]),
    Sample("unique", {"X": ints(9, high=5, dtype="int32")}, {"dtype": 3}, ["Out", "Index"]),
    Sample("unique", {"X": ODD}, {"dtype": 2}, ["Out", "Index"]),
    Sample("unique", {"X": ints(1, high=5)}, {"dtype": 3}, ["Out", "Index"]),
    Sample("unique_with_counts", {"X": ints(12, high=4)}, {"dtype": 2}, ["Out", "Index", "Count"]),
    Sample("unique_with_counts", {"X": ODD}, {"dtype": 3}, ["Out", "Index", "Count"]),
]
