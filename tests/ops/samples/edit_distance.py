"""Edit distances."""

import numpy as np

from ..sample import Sample, ints


def distance(hyps, refs, high=4, **attrs):
    inputs = {"Hyps": ints(sum(hyps), 1, high=high), "Refs": ints(sum(refs), 1, high=high)}
    return Sample(
        "edit_distance", inputs, attrs, ["SequenceNum", "Out"], lod={"Hyps": [hyps], "Refs": [refs]}
    )


def padded(t, lengths, r, sizes, **attrs):
    inputs = {
        "Hyps": ints(len(lengths), t, high=3),
        "Refs": ints(len(sizes), r, high=3),
        "HypsLength": np.array(lengths, "int64").reshape(-1, 1),
        "RefsLength": np.array(sizes, "int64").reshape(-1, 1),
    }
    return Sample("edit_distance", inputs, attrs, ["SequenceNum", "Out"])


SAMPLES = [
    distance([5, 3, 8], [4, 6, 8]),
    distance([5, 3, 8], [4, 6, 8], normalized=True),
    distance([0, 3], [2, 3]),
    distance([2, 3], [0, 3]),
    distance([1], [1], high=2, normalized=True),
    padded(6, [6, 2, 4], 5, [5, 5, 1]),
    padded(4, [4, 1], 3, [3, 2], normalized=True),
]
