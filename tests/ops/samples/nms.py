"""Suppression of non-maxima."""

import numpy as np

from ..sample import Sample, distinct
from .boxes import boxes

BASE = {
    "score_threshold": 0.2,
    "nms_top_k": 6,
    "nms_threshold": 0.3,
    "keep_top_k": 5,
    "background_label": 0,
}


def nms(given, scores, kind="multiclass_nms", lod=None, **attrs):
    inputs = {"BBoxes": given, "Scores": scores}
    outs, lods = (
        ["Out"] + ["Index"] * (kind != "multiclass_nms"),
        {"BBoxes": lod, "Scores": lod} if lod else None,
    )
    return Sample(kind, inputs, dict(BASE, **attrs), outs, lod=lods)


def crowd(n, m, dtype="float32", scale=1.0):
    """many that overlap"""
    return boxes(n, m, dtype=dtype, scale=scale, seed=n + m)


def scores(*shape, dtype="float32"):
    return distinct(*shape, lo=0.0, dtype=dtype)


TIES = np.array(
    [[[0, 0, 2, 2], [0, 0, 2, 2], [1, 0, 3, 2], [5, 5, 7, 7], [5, 5, 7, 7.5]]], "float32"
)
EQUAL = np.full((1, 2, 5), 0.5, "float32")
ODD = np.array(
    [
        [
            [0, 0, 0, 0],
            [0, 0, 0, 0],
            [1, 1, 0, 0],
            [np.nan, 0, 1, 1],
            [0, 0, np.inf, 1],
            [0, 0, 1, 1],
        ]
    ],
    "float32",
)
NANS = np.array(
    [[[0.9, np.nan, 0.8, 0.7, np.inf, -np.inf], [0.3, 0.3, 0.25, np.nan, 0.2, 0.21]]], "float32"
)
ONE = np.array([[[0.9, 0.8, 0.7]], [[0.1, 0.1, 0.0]], [[0.1, 0.5, 0.4]]], "float32")
SAMPLES = [
    nms(crowd(2, 8), scores(2, 3, 8)),
    nms(
        crowd(2, 8),
        scores(2, 3, 8),
        keep_top_k=-1,
        nms_top_k=-1,
        background_label=-1,
        nms_threshold=0.1,
    ),
    nms(
        crowd(1, 8, scale=30.0),
        scores(1, 2, 8),
        normalized=False,
        background_label=1,
        nms_threshold=0.2,
    ),
    nms(crowd(1, 8, "float64"), scores(1, 2, 8, dtype="float64"), background_label=-1),
    nms(
        crowd(1, 12), scores(1, 2, 12), nms_eta=0.7, nms_threshold=0.8, nms_top_k=12, keep_top_k=20
    ),
    nms(TIES, EQUAL, background_label=-1, nms_threshold=0.5, keep_top_k=4),
    nms(TIES, EQUAL, background_label=-1, nms_threshold=0.5, keep_top_k=3, nms_top_k=3),
    nms(ODD, NANS, background_label=-1, nms_threshold=0.5, keep_top_k=9),
    nms(boxes(3, 3), ONE, background_label=-1, nms_threshold=0.9),
    nms(boxes(2, 3), np.zeros((2, 2, 3), "float32")),
    nms(
        np.stack([crowd(5, 1)[:, 0], crowd(5, 1)[:, 0] + 0.1, crowd(1, 5)[0]], 1),
        scores(5, 3),
        lod=[[3, 2]],
    ),
    nms(
        np.stack([crowd(6, 1, scale=9)[:, 0]] * 2, 1),
        scores(6, 2),
        lod=[[2, 4]],
        keep_top_k=2,
        background_label=-1,
        normalized=False,
    ),
    nms(crowd(2, 8), scores(2, 3, 8), "multiclass_nms2"),
    nms(TIES, EQUAL, "multiclass_nms2", background_label=-1, nms_threshold=0.5, keep_top_k=4),
    nms(
        np.stack([crowd(5, 1)[:, 0], crowd(1, 5)[0]], 1),
        scores(5, 2),
        "multiclass_nms2",
        lod=[[3, 2]],
        background_label=-1,
        keep_top_k=2,
    ),
]
