"""Trees of items for retrieval."""

import numpy as np

from ..sample import Sample

# node: item, layer, parent, children; node 0 stands for none, 1 is the root
TREE = [
    [0, 0, 0, 0, 0],
    [0, 0, 0, 2, 3],
    [0, 1, 1, 4, 5],
    [0, 1, 1, 6, 0],
    [10, 2, 2, 0, 0],
    [11, 2, 2, 0, 0],
    [12, 2, 3, 0, 0],
]
WAYS = [[1, 3], [1, 4], [2, 5], [2, 0]]
LAYERS = [[1], [2], [3], [4], [5]]
DRAWS = "draws nodes by its own key; tests/ops/test_tdm.py looks at what is drawn"


def child(x, dtype=2, of="int32"):
    inputs = {"X": np.array(x, of), "TreeInfo": np.array(TREE, of)}
    return Sample("tdm_child", inputs, {"child_nums": 2, "dtype": dtype}, ["Child", "LeafMask"])


def sampler(negatives, positive=True, dtype=2, note=""):
    inputs = {
        "X": np.array([[0], [2], [3]], "int64"),
        "Travel": np.array(WAYS, "int64"),
        "Layer": np.array(LAYERS, "int64"),
    }
    attrs = {
        "neg_samples_num_list": negatives,
        "layer_offset_lod": [0, 2, 5],
        "output_positive": positive,
        "dtype": dtype,
        "seed": 3,
    }
    outs = ["Labels", "Mask"] if note else ["Out", "Labels", "Mask"]
    return Sample("tdm_sampler", inputs, attrs, outs, paddle=not note, note=note)


SAMPLES = [
    child([[1], [2], [3], [6]]),
    child([[1], [0], [3]], 3),
    child([[2, 3], [1, 5]], of="int64"),
    child([[4]], 3, "int64"),
    sampler([0, 0]),
    sampler([0, 0], dtype=3),
    sampler([1, 2], note=DRAWS),
    sampler([1, 1], False, note=DRAWS),
]
