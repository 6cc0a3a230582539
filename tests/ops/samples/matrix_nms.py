"""Suppression by decay, by merging, and of the levels of a pyramid."""

import numpy as np

from ..sample import Sample, uniform
from .nms import TIES, crowd, scores

BASE = {"score_threshold": 0.2, "nms_top_k": 6, "keep_top_k": 5, "background_label": 0}


def matrix(given, values, **attrs):
    return Sample(
        "matrix_nms",
        {"BBoxes": given, "Scores": values},
        dict(BASE, **attrs),
        ["Out", "Index"],
        tol=1e-5,
    )


def local(given, values, **attrs):
    base = dict(BASE, background_label=-1, nms_threshold=0.3)
    return Sample(
        "locality_aware_nms",
        {"BBoxes": given, "Scores": values},
        dict(base, **attrs),
        ["Out"],
        tol=1e-5,
    )


def pyramid(counts, classes, n=1, dtype="float32", low=0.3, **attrs):
    inputs = {
        "BBoxes": [uniform((n, m, 4), -0.4, 0.4, dtype) for m in counts],
        "Scores": [scores(n, m, classes, dtype=dtype) for m in counts],
        "Anchors": [crowd(1, m, dtype, 40.0)[0] for m in counts],
        "ImInfo": np.array([[50, 60, 1], [40, 50, 1.6]][:n], dtype),
    }
    base = {
        "score_threshold": low,
        "nms_top_k": 5,
        "nms_threshold": 0.3,
        "nms_eta": 1.0,
        "keep_top_k": 6,
    }
    return Sample("retinanet_detection_output", inputs, dict(base, **attrs), ["Out"], tol=1e-5)


SAMPLES = [
    matrix(crowd(2, 8), scores(2, 3, 8)),
    matrix(
        crowd(2, 8),
        scores(2, 3, 8),
        use_gaussian=True,
        gaussian_sigma=1.5,
        post_threshold=0.3,
        keep_top_k=-1,
        background_label=-1,
    ),
    matrix(crowd(1, 8, scale=30.0), scores(1, 2, 8), normalized=False, nms_top_k=-1, keep_top_k=9),
    matrix(crowd(1, 8, "float64"), scores(1, 2, 8, dtype="float64"), nms_top_k=4),
    matrix(
        TIES,
        np.array([[[0.9, 0.8, 0.7, 0.6, 0.5]]], "float32"),
        background_label=-1,
        post_threshold=0.01,
    ),
    local(crowd(2, 8), scores(2, 1, 8), nms_threshold=0.05),
    local(
        np.repeat(crowd(1, 4, scale=20.0), 3, 1)
        + np.arange(12, dtype="float32").reshape(1, 12, 1) / 9,
        scores(1, 1, 12),
        normalized=False,
        nms_top_k=-1,
        keep_top_k=-1,
    ),
    local(
        crowd(1, 8, "float64"),
        scores(1, 1, 8, dtype="float64"),
        nms_eta=0.8,
        nms_threshold=0.6,
        keep_top_k=3,
    ),
    local(crowd(1, 3), np.full((1, 1, 3), 0.01, "float32"), nms_threshold=0.9),
    pyramid([4, 3], 2),
    pyramid([6, 4], 3, n=2, nms_top_k=7, keep_top_k=20, low=0.1),
    pyramid([5], 1, dtype="float64", nms_threshold=0.6, nms_eta=0.7),
]
