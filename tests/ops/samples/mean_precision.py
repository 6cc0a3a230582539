"""Mean average precision."""

import numpy as np

from ..sample import Sample

LABELS = [
    [1, 0, 0.1, 0.1, 0.3, 0.3],
    [2, 0, 0.6, 0.6, 0.8, 0.8],
    [1, 1, 0.5, 0.1, 0.7, 0.4],
    [1, 0, 0.2, 0.2, 0.5, 0.6],
    [3, 0, 0.1, 0.7, 0.4, 0.9],
]
FOUND = [
    [1, 0.9, 0.11, 0.1, 0.3, 0.31],
    [1, 0.8, 0.1, 0.12, 0.3, 0.3],
    [2, 0.3, 0.1, 0.1, 0.2, 0.2],
    [2, 0.7, 0.6, 0.6, 0.82, 0.8],
    [1, 0.85, 0.5, 0.1, 0.7, 0.42],
    [3, 0.4, 0.2, 0.2, 0.3, 0.3],
    [1, 0.6, 0.2, 0.2, 0.5, 0.55],
    [2, 0.5, 0.1, 0.1, 0.9, 0.9],
    [3, 0.2, 0.1, 0.7, 0.4, 0.95],
    [1, 0.6, 0.7, 0.7, 0.9, 1.4],
]


def mean(columns=6, lod=(6, 4), label_lod=(3, 2), **attrs):
    label = np.array(LABELS, "float32")
    inputs = {
        "DetectRes": np.array(FOUND, "float32"),
        "Label": label if columns == 6 else np.delete(label, 1, 1),
    }
    return Sample(
        "detection_map",
        inputs,
        dict({"class_num": 4, "overlap_threshold": 0.5}, **attrs),
        ["AccumPosCount", "AccumTruePos", "AccumFalsePos", "MAP"],
        lod={"DetectRes": [list(lod)], "Label": [list(label_lod)]},
    )


SAMPLES = [
    mean(),
    mean(evaluate_difficult=False),
    mean(ap_type="11point"),
    mean(columns=5, overlap_threshold=0.9),
    mean(evaluate_difficult=False, ap_type="11point", lod=(10, 0), label_lod=(4, 1)),
    mean(background_label=1, lod=(0, 10), label_lod=(2, 3)),
]
