"""Chunks of tagged sequences."""

import numpy as np

from ..sample import Sample, ints

OUTS = ["Precision", "Recall", "F1-Score", "NumInferChunks", "NumLabelChunks", "NumCorrectChunks"]
TAGS = {"IOB": 2, "IOE": 2, "IOBES": 4, "plain": 1}


def alike(rows, high):
    """tags of which about two of three agree"""
    label = ints(rows, 1, high=high)
    other, keep = ints(rows, 1, high=high), ints(rows, 1, high=3)
    return np.where(keep > 0, label, other).astype("int64"), label


def chunks(scheme, lod=(7, 9, 1, 12), types=3, excluded=()):
    guess, label = alike(sum(lod), types * TAGS[scheme] + 1)
    attrs = {
        "num_chunk_types": types,
        "chunk_scheme": scheme,
        "excluded_chunk_types": list(excluded),
    }
    return Sample(
        "chunk_eval",
        {"Inference": guess, "Label": label},
        attrs,
        OUTS,
        lod={"Inference": [list(lod)], "Label": [list(lod)]},
    )


def padded(scheme, n=3, t=6, types=2):
    guess, label = alike(n * t, types * TAGS[scheme] + 1)
    inputs = {
        "Inference": guess.reshape(n, t, 1),
        "Label": label.reshape(n, t, 1),
        "SeqLength": np.array([[6], [3], [1]], "int64"),
    }
    return Sample("chunk_eval", inputs, {"num_chunk_types": types, "chunk_scheme": scheme}, OUTS)


SAMPLES = [chunks(s) for s in ("IOB", "IOE", "IOBES", "plain")]
SAMPLES += [chunks(s, (30,), types=2) for s in ("IOB", "IOE", "IOBES", "plain")]
SAMPLES += [
    chunks("IOB", excluded=[0, 2]),
    chunks("IOBES", (5, 5), excluded=[1]),
    chunks("plain", (1, 1, 1), types=1),
]
SAMPLES += [padded(s) for s in ("IOB", "IOBES")]
