"""Windows of images as sequences."""

import numpy as np

from ..sample import Sample, f32


def windows(
    shape, kernels, strides=(1, 1), paddings=(0, 0, 0, 0), real=None, out_stride=None, rows=None
):
    inputs, attrs = (
        {"X": f32(*shape)},
        {"kernels": list(kernels), "strides": list(strides), "paddings": list(paddings)},
    )
    if real:
        inputs["Y"] = np.array(real, "float32")
        attrs["out_stride"] = list(out_stride)
    return Sample(
        "im2sequence",
        inputs,
        attrs,
        ["Out"],
        [] if real else ["X"],
        rows={"Out": rows} if rows else None,
    )


SAMPLES = [
    windows((2, 2, 3, 4), (2, 2)),
    windows((2, 1, 5, 4), (2, 1), (2, 1), (1, 0, 1, 0)),
    windows((1, 2, 4, 4), (3, 2), (1, 2), (0, 1, 2, 0)),
    windows((3, 1, 2, 2), (1, 1)),
    windows((2, 1, 4, 4), (2, 2), real=[[8, 6], [4, 8]], out_stride=(2, 2), rows=9),
    windows((2, 2, 4, 5), (1, 2), (1, 2), real=[[4, 5], [3, 4]], out_stride=(1, 1), rows=14),
]
