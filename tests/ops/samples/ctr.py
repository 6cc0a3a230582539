"""Ops of click-through models."""

import numpy as np

from ..sample import Sample, f32, f64, positive

NO_CPU = "1.8.5 has it for the GPU alone; tests/ops/test_ctr.py computes it row by row"
NOT_THE_DERIVATIVE = {"numeric": "the gradient of shows and clicks is CVM"}


def cvm(use, make=f32, lod=None):
    x = np.abs(make(5, 6))
    inputs = {"X": x, "CVM": positive(len(lod[0]) if lod else 5, 2, dtype=x.dtype.name)}
    return Sample(
        "cvm",
        inputs,
        {"use_cvm": use},
        ["Y"],
        ["X"],
        lod={"X": lod} if lod else None,
        skip=NOT_THE_DERIVATIVE,
    )


def rank_attention(ranks):
    n, d, width = 4, 3, 2
    source = np.random.RandomState(ranks)
    offset = np.zeros((n, 2 * ranks + 1), "int32")
    offset[:, 0] = source.randint(0, ranks + 1, n)
    offset[:, 1::2] = source.randint(0, ranks + 1, (n, ranks))
    offset[:, 2::2] = source.randint(0, n, (n, ranks))
    inputs = {"X": f32(n, d), "RankOffset": offset, "RankParam": f32(ranks * ranks * d, width)}
    return Sample(
        "rank_attention",
        inputs,
        {"MaxRank": ranks},
        ["Out"],
        ["RankParam"],
        paddle=False,
        note=NO_CPU,
    )


def dequant(ids, padding=-1):
    codes = np.random.RandomState(3).randint(0, 256, (6, 8)).astype("uint8")
    codes[0, :2] = 0, 255
    low = np.array([-1, 0, -0.5, 2, -3, 1], "float32")[:, None]
    table = np.concatenate(
        [low, low + np.array([[2], [0], [1], [0.25], [7], [3]], "float32"), codes.view("float32")],
        1,
    )
    return Sample(
        "lookup_table_dequant",
        {"W": table, "Ids": np.array(ids, "int64")},
        {"padding_idx": padding},
        ["Out"],
    )


SAMPLES = [
    cvm(True),
    cvm(False),
    cvm(True, lod=[[2, 0, 3]]),
    cvm(False, lod=[[1, 4]]),
    cvm(True, make=f64),
    rank_attention(3),
    rank_attention(2),
    dequant([[0], [5], [3], [0]]),
    dequant([[1], [4], [2]], padding=4),
]
