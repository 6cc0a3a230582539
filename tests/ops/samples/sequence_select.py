"""Ops that choose rows of sequences."""

import numpy as np

from ..sample import Sample, f32, ints

LOD = {"X": [[2, 3, 1]]}


def ids(*values, dtype="int64"):
    return np.array(values, dtype).reshape(-1, 1)


def erase(tokens, lod, values, dtype="int64"):
    x = ids(*values, dtype=dtype)
    return Sample(
        "sequence_erase",
        {"X": x},
        {"tokens": tokens},
        ["Out"],
        lod={"X": lod},
        rows={"Out": sum(v not in tokens for v in values)},
    )


def cut(lod, offset, length, make, grad=True):
    x = make(sum(lod[0]), 2)
    return Sample(
        "sequence_slice",
        {"X": x, "Offset": ids(*offset), "Length": ids(*length)},
        {},
        ["Out"],
        ["X"] if grad else [],
        lod={"X": lod},
        rows={"Out": sum(length)},
    )


def unpad(shape, length, grad=False):
    return Sample(
        "sequence_unpad",
        {"X": f32(*shape), "Length": np.array(length, "int64")},
        {},
        ["Out"],
        ["X"] if grad else [],
        paddle=not grad,
        note="1.8.5's gradient op wants a LoD on Out@GRAD, which is fed without" if grad else "",
        rows={"Out": sum(length)},
    )


SAMPLES = [
    erase([2, 5], [[2, 3, 1]], [1, 2, 5, 3, 2, 2]),
    erase([2], [[0, 2, 0, 4, 0]], [2, 2, 1, 2, 3, 4], dtype="int32"),
    erase([], [[4]], [1, 2, 3, 4]),
    erase([9], [[1, 3]], [1, 2, 3, 4]),
    cut([[2, 3, 1]], [1, 0, 0], [1, 2, 1], f32),
    cut([[4, 5]], [0, 4], [4, 1], f32),
    cut([[4, 5]], [2, 1], [1, 3], lambda *s: ints(*s, high=9), grad=False),
    unpad((3, 4, 2), [4, 1, 2]),
    unpad((2, 3, 2, 2), [3, 3]),
    unpad((3, 3), [1, 2, 3]),
    unpad((4, 2, 2), [0, 2, 0, 1]),
    unpad((3, 4, 2), [4, 1, 2], grad=True),
]
