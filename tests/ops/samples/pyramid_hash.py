"""Embeddings of n-grams: of sequences that are long, of one id, and empty; scaled, drawn, all left
out.
"""

import numpy as np

from ..sample import Sample

IDS = np.array([3, 7, 7, 1, 5, 2, 9, 100000], "int32")[:, None]
WEIGHT = (np.arange(41) / 8).astype("float32")[:, None]
LISTS = {"WhiteList": np.zeros((10, 1), "float32"), "BlackList": np.zeros((12, 1), "float32")}
BASE = {
    "num_emb": 8,
    "space_len": 37,
    "pyramid_layer": 3,
    "rand_len": 4,
    "drop_out_percent": 0.5,
    "is_training": 0,
    "use_filter": False,
    "white_list_len": 10,
    "black_list_len": 12,
    "seed": 3,
    "lr": 0.1,
}


def grams(lengths, **attrs):
    return Sample(
        "pyramid_hash",
        {"X": IDS, "W": WEIGHT, **LISTS},
        dict(BASE, **attrs),
        ["Out", "X_Temp_Out"],
        lod={"X": [lengths]},
    )


SAMPLES = [
    grams([4, 1, 3, 0]),
    grams([8], is_training=1, pyramid_layer=4, num_emb=12),
    grams([3, 5], is_training=1, drop_out_percent=1.0),
]
