"""Spatial transformers on pixels, on borders and beyond; pyramids of ties; focus on ties;
deformable taps on pixels and beyond.
"""

import numpy as np

from ..case import Extreme

NAN, INF = np.nan, np.inf
PLANE = np.array([[3, 1, 4], [1, 5, 9], [2, 6, 5]], "float32")[None, None]
PLACES = np.array(
    [[[-1, -1], [1, 1], [0, 0]], [[-2, 0], [0, 2], [1.5, -1.5]], [[-1, 1], [0.5, -0.5], [1, 0]]],
    "float32",
)[None]
ODD = np.array(
    [[[NAN, 0], [INF, 0], [-INF, INF]], [[0, 3e38], [1e30, 0], [0, 0]], [[0, 0], [0, 0], [0, NAN]]],
    "float32",
)[None]
TIES = np.array([[2, 2, 0], [2, 2, 0], [-1, -1, -1]], "float32")[None, None]
CASES = [
    Extreme(
        "one row",
        "affine_grid",
        {"Theta": np.ones((1, 2, 3), "float32")},
        {"output_shape": [1, 1, 1, 3]},
        ["Output"],
    ),
    Extreme(
        "special",
        "affine_grid",
        {"Theta": np.array([[[INF, 0, 0], [0, NAN, 1]]], "float32")},
        {"output_shape": [1, 1, 2, 2]},
        ["Output"],
    ),
    Extreme("pixels", "grid_sampler", {"X": PLANE, "Grid": PLACES}, {}, ["Output"], ["X", "Grid"]),
    Extreme("special", "grid_sampler", {"X": PLANE, "Grid": ODD}, {}, ["Output"]),
    Extreme(
        "ties", "spp", {"X": TIES}, {"pyramid_height": 2, "pooling_type": "max"}, ["Out"], ["X"]
    ),
    Extreme(
        "more windows than pixels",
        "spp",
        {"X": PLANE},
        {"pyramid_height": 3, "pooling_type": "max"},
        ["Out"],
        ["X"],
    ),
    Extreme(
        "infinite",
        "spp",
        {"X": np.where(TIES == 2, INF, TIES).astype("float32")},
        {"pyramid_height": 2, "pooling_type": "avg"},
        ["Out"],
    ),
    Extreme(
        "ties",
        "similarity_focus",
        {"X": np.concatenate([TIES, TIES[:, :, ::-1]], 1)},
        {"axis": 1, "indexes": [0, 1]},
    ),
    Extreme(
        "all equal",
        "similarity_focus",
        {"X": np.zeros((1, 2, 3, 2), "float32")},
        {"axis": 2, "indexes": [1]},
    ),
    Extreme(
        "infinite",
        "similarity_focus",
        {"X": np.array([[[[INF, -INF], [-INF, INF]]]], "float32")},
        {"axis": 1, "indexes": [0]},
    ),
    Extreme(
        "no sample of a class",
        "center_loss",
        {
            "X": np.array([[1, INF], [2, 3e38]], "float32"),
            "Label": np.array([[0], [0]], "int64"),
            "Centers": np.zeros((2, 2), "float32"),
            "CenterUpdateRate": np.ones(1, "float32"),
        },
        {"cluster_num": 2, "need_update": True},
        ["CentersOut", "SampleCenterDiff", "Loss"],
        ["X"],
        of=["Loss"],
    ),
    Extreme(
        "special",
        "fsp",
        {
            "X": np.array([[[[INF, 0]], [[1, 2]]]], "float32"),
            "Y": np.array([[[[0, 1]], [[NAN, 1]]]], "float32"),
        },
        {},
    ),
    Extreme(
        "ties",
        "positive_negative_pair",
        {
            "Score": np.array([[1], [1], [NAN], [2]], "float32"),
            "Label": np.array([[1], [0], [1], [0]], "float32"),
            "QueryID": np.zeros((4, 1), "int64"),
        },
        {"column": 0},
        ["PositivePair", "NegativePair", "NeutralPair"],
    ),
    Extreme(
        "one document",
        "positive_negative_pair",
        {
            "Score": np.ones((1, 1), "float32"),
            "Label": np.ones((1, 1), "float32"),
            "QueryID": np.zeros((1, 1), "int64"),
        },
        {"column": 0},
        ["PositivePair", "NegativePair", "NeutralPair"],
    ),
]
for label, shift in (
    ("pixels", [0, 1, -1, 2, -2, 3, 1, 0]),
    ("beyond", [-3, 5, 0.5, 9, -9, -0.5, 2.5, 2]),
):
    offset = np.repeat(np.array(shift, "float32").reshape(1, 8, 1, 1), 4, 2).reshape(1, 8, 2, 2)
    taps = {"Input": PLANE, "Offset": offset, "Filter": np.ones((1, 1, 2, 2), "float32")}
    CASES.append(
        Extreme(
            label, "deformable_conv_v1", taps, {"im2col_step": 1}, ["Output"], ["Input", "Offset"]
        )
    )
    CASES.append(
        Extreme(
            label,
            "deformable_conv",
            dict(taps, Mask=np.full((1, 4, 2, 2), 0.5, "float32")),
            {"im2col_step": 1},
            ["Output"],
            ["Input", "Offset", "Mask"],
        )
    )
