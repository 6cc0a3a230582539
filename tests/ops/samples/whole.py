"""Whether whole tensors are equal: exactly, nearly, at infinities, where the shapes differ, and
empty.
"""

import numpy as np

from ..sample import Sample, ints

NEAR = np.array([[0.0, 1e-9, np.inf]], "float32")
SAMPLES = [
    Sample("equal_reduce", {"X": ints(2, 3, high=3), "Y": ints(2, 3, high=3)}, {}, ["Out"]),
    Sample("equal_reduce", {"X": NEAR[:, :2], "Y": NEAR[:, 1::-1]}, {}, ["Out"]),
    Sample("equal_reduce", {"X": NEAR, "Y": NEAR}, {}, ["Out"]),
    Sample("equal_reduce", {"X": ints(2, 3, high=3), "Y": ints(3, high=3)}, {}, ["Out"]),
    Sample("equal_reduce", {"X": np.zeros((1, 3), "float64"), "Y": np.ones((1, 3))}, {}, ["Out"]),
]
