"""Ops of a parameter-server job that need no other process."""

import numpy as np

from ..sample import Sample, f32

SAMPLES = [
    Sample(
        "split_byref",
        {"X": f32(7, 3)},
        {"sections": [4, 3]},
        ["Out*2"],
        skip={"unknown": "sections says how many rows X has"},
    ),
    Sample(
        "split_byref",
        {"X": f32(5)},
        {"sections": [1, 2, 2]},
        ["Out*3"],
        skip={"unknown": "sections says how many rows X has"},
    ),
    Sample(
        "split_byref",
        {"X": f32(4, 2, 3)},
        {"sections": [4]},
        ["Out*1"],
        skip={"unknown": "sections says how many rows X has"},
    ),
    Sample(
        "ref_by_trainer_id",
        {"X": [f32(2, 3), f32(2, 3) + 1], "TrainerId": np.array([1], "int64")},
        {},
        ["Out"],
    ),
    Sample(
        "ref_by_trainer_id",
        {"X": [f32(4), f32(4) + 1, f32(4) + 2], "TrainerId": np.array([0], "int64")},
        {},
        ["Out"],
    ),
]
