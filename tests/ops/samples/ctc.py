"""Connectionist temporal classification."""

import numpy as np

from ..sample import Sample, f32


def align(values, lod, left, **attrs):
    x = np.array(values, attrs.pop("dtype", "int64")).reshape(-1, 1)
    return Sample(
        "ctc_align", {"Input": x}, attrs, ["Output"], lod={"Input": lod}, rows={"Output": left}
    )


def padded(rows, lengths, **attrs):
    inputs = {
        "Input": np.array(rows, "int64"),
        "InputLength": np.array(lengths, "int64").reshape(-1, 1),
    }
    return Sample("ctc_align", inputs, attrs, ["Output", "OutputLength"])


NO_LABEL = {"numeric": "1.8.5's gradient is divided by the number of steps, its loss is not"}


def ctc(lod, labels, classes=4, blank=0, tol=1e-4, **attrs):
    inputs = {
        "Logits": f32(sum(lod), classes),
        "Label": np.array([v for said in labels for v in said], "int32").reshape(-1, 1),
    }
    return Sample(
        "warpctc",
        inputs,
        dict(attrs, blank=blank),
        ["Loss"],
        ["Logits"],
        tol=tol,
        grad_tol=tol,
        lod={"Logits": [lod], "Label": [[len(said) for said in labels]]},
        skip=NO_LABEL if attrs else None,
    )


def batch(t, lengths, labels, sizes, classes=4, **attrs):
    n = len(lengths)
    inputs = {
        "Logits": f32(t, n, classes),
        "Label": np.array(labels, "int32"),
        "LogitsLength": np.array(lengths, "int64"),
        "LabelLength": np.array(sizes, "int64"),
    }
    return Sample(
        "warpctc",
        inputs,
        attrs,
        ["Loss"],
        ["Logits"],
        tol=1e-4,
        grad_tol=1e-4,
        skip=NO_LABEL if attrs else None,
    )


SAMPLES = [
    align([0, 1, 1, 0, 1, 2, 2, 2, 0, 3], [[6, 4]], 4, merge_repeated=True),
    align([0, 1, 1, 0, 1, 2, 2, 2, 0, 3], [[6, 4]], 7, merge_repeated=False),
    align([3, 1, 1, 3, 1, 1, 2, 3], [[0, 5, 3]], 4, blank=3, dtype="int32"),
    align([1, 1, 1, 1], [[2, 1, 1]], 3),
    padded([[0, 1, 1, 0, 2], [2, 2, 2, 0, 1]], [5, 3], padding_value=9),
    padded([[0, 1, 1, 0, 2], [2, 2, 2, 0, 1]], [5, 5], merge_repeated=False, blank=2),
    ctc([4, 5], [[1, 2], [3, 3]]),
    ctc([3, 2, 6], [[1], [2], [3, 1, 2]], blank=3 - 3),
    ctc([4, 5], [[0, 1], [2]], blank=3),
    ctc([4, 5], [[1, 2], [3]], norm_by_times=True),
    ctc([2, 5], [[1, 1, 2], [3]]),
    ctc([1, 3], [[2], [1]]),
    batch(5, [4, 5], [[1, 2], [3, 0]], [2, 1]),
    batch(4, [4, 4], [[1, 2, 1], [3, 3, 0]], [3, 2], norm_by_times=True),
]
