"""Ops that average, at activations whose mean is large beside their deviation. For Python 3.8 and
numpy alone, as sample.py.

What is compared is not the values, but how far float32 lies from float64: here, and in Paddle
1.8.5.
"""

import numpy as np

from .sample import Sample

RATIOS = (0, 30, 1000)  # of mean to deviation
SHAPES = ((2, 4, 28, 28), (8, 8, 14, 14))


def activations(shape, ratio):
    """Deviation 1, and channels whose means lie around `ratio`."""
    r = np.random.RandomState(7)
    means = ratio * (1 + 0.1 * r.standard_normal((1, shape[1], 1, 1)))
    return (r.standard_normal(shape) + means).astype("float32")


def same(n, *values):
    return [np.full(n, v, "float32") for v in values]


def samples(shape, ratio):
    """{name: sample}"""
    x, c = activations(shape, ratio), shape[1]
    one, zero = same(c, 1, 0)
    wide = same(int(np.prod(shape[1:])), 1, 0)
    scaled = {"X": x, "Scale": one, "Bias": zero}
    params = ["X", "Scale", "Bias"]
    return {
        "batch_norm": Sample("batch_norm", dict(scaled, Mean=zero, Variance=one), {}, ["Y", "SavedMean", "SavedVariance"], params,
                             of=["Y"], inplace={"MeanOut": "Mean", "VarianceOut": "Variance"}),
        "instance_norm": Sample("instance_norm", scaled, {}, ["Y", "SavedMean", "SavedVariance"], params, of=["Y"]),
        "group_norm": Sample("group_norm", scaled, {"groups": 2}, ["Y", "Mean", "Variance"], params, of=["Y"]),
        "layer_norm": Sample("layer_norm", {"X": x, "Scale": wide[0], "Bias": wide[1]}, {}, ["Y", "Mean", "Variance"], params, of=["Y"]),
        "data_norm": Sample("data_norm", {"X": x[:, :, 0, 0].copy(), "BatchSize": one, "BatchSum": one * np.float32(ratio),
                                          "BatchSquareSum": one}, {}, ["Y"]),
        "mean": Sample("mean", {"X": x}, {}, ["Out"]),
        "reduce_mean": Sample("reduce_mean", {"X": x}, {"dim": [0, 2, 3]}, ["Out"]),
        "reduce_sum": Sample("reduce_sum", {"X": x}, {"dim": [0, 2, 3]}, ["Out"]),
        "pool2d": Sample("pool2d", {"X": x}, {"pooling_type": "avg", "ksize": [7, 7], "strides": [7, 7]}, ["Out"]),
        "pool2d global": Sample("pool2d", {"X": x}, {"pooling_type": "avg", "ksize": [1, 1], "global_pooling": True}, ["Out"]),
        "squared_l2_norm": Sample("squared_l2_norm", {"X": x}, {}, ["Out"]),
        "frobenius_norm": Sample("frobenius_norm", {"X": x}, {"dim": [2, 3]}, ["Out"]),
        "p_norm": Sample("p_norm", {"X": x}, {"axis": 1, "porder": 2.0}, ["Out"]),
        "norm": Sample("norm", {"X": x}, {"axis": 1}, ["Out", "Norm"]),
        "softmax": Sample("softmax", {"X": x}, {"axis": -1}, ["Out"]),
        "cumsum": Sample("cumsum", {"X": x.reshape(shape[0], -1)}, {"axis": 1}, ["Out"]),
    }  # fmt: skip


def error(value, exact, key):
    """Root of the mean square of the difference, in units of the exact value's size; of
    batch_norm's mean, of the deviation.
    """
    exact = np.asarray(exact, "float64")
    size = 1.0 if key == "SavedMean" else np.sqrt(np.mean(exact**2)) + 1e-30
    return float(np.sqrt(np.mean((np.asarray(value, "float64") - exact) ** 2)) / size)
