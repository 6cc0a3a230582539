"""Rows of integers as numbers below a bound."""

import numpy as np

from ..sample import Sample, ints


def hashed(width, rows=3, count=2, below=10000, dtype="int32", lod=None, low=0):
    x = ints(rows, width, low=low, high=2**31 - 1, dtype=dtype)
    return Sample(
        "hash",
        {"X": x},
        {"num_hash": count, "mod_by": below},
        ["Out"],
        lod={"X": lod} if lod else None,
    )


SAMPLES = [hashed(w) for w in (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33)]
SAMPLES += [
    hashed(w, dtype="int64", count=4, below=2**31 - 1, low=-(2**31)) for w in (1, 2, 3, 8, 11)
]
SAMPLES += [
    hashed(2, rows=6, lod=[[2, 4]]),
    hashed(3, below=1),
    Sample("hash", {"X": np.zeros((2, 2), "int64")}, {"mod_by": 7}, ["Out"]),
]
