"""Losses over few classes: logits of any size, samples that are labels, equal samples, a class
drawn with probability 0.
"""

import numpy as np

from ..case import Extreme

NAN, INF = np.nan, np.inf
INPUT = np.array(
    [[0, 0], [1, 100], [-1, -100], [3e38, 1], [INF, 0], [NAN, 1], [1e-30, 20], [-88, 0]]
)
WEIGHT = np.array([[1, 0], [0, 1], [-1, 1], [0, 0], [2, -3]])
LABEL = np.array([[0], [1], [1], [4], [0], [2], [3], [3]], "int64")
CASES = []


def nce(label, x, sampler=0, custom=(3, 3, 1), weights=None, **more):
    dtype = x.dtype.name
    inputs = {
        "Input": x,
        "Label": LABEL[: len(x)],
        "Weight": WEIGHT.astype(dtype),
        "Bias": np.array([0, 0.5, 0, -0.0, 1], dtype).reshape(5, 1),
    }
    if weights is not None:
        inputs["SampleWeight"] = np.array(weights, dtype).reshape(-1, 1)
    if sampler == 2:
        inputs.update(
            CustomDistProbs=np.array([0.5, 0, 0.25, 0.25, 0], "float32"),
            CustomDistAlias=np.array([-1, 0, 0, 0, 0], "int32"),
            CustomDistAliasProbs=np.ones(5, "float32"),
        )
    attrs = {
        "num_total_classes": 5,
        "num_neg_samples": len(custom),
        "custom_neg_classes": list(custom),
        "sampler": sampler,
    }
    return Extreme(
        label,
        "nce",
        inputs,
        attrs,
        ["Cost", "SampleLogits", "SampleLabels"],
        ["Input", "Weight", "Bias"],
        of=["Cost"],
        **more,
    )


def tree(label, x, custom=False, **more):
    dtype = x.dtype.name
    inputs = {"X": x, "W": WEIGHT.astype(dtype), "Label": LABEL[: len(x)]}
    if custom:
        inputs["PathTable"] = np.resize(
            np.array([[0, 1, 4], [2, -1, -1], [-1, 0, 1], [3, -1, 2]], "int64"), (len(x), 3)
        )
        inputs["PathCode"] = np.resize(
            np.array([[0, 1, 0], [1, -1, -1], [1, 1, 1], [2, 0, 1]], "int64"), (len(x), 3)
        )
    return Extreme(
        label,
        "hierarchical_sigmoid",
        inputs,
        {"num_classes": 5 if custom else 6},
        ["Out", "PreOut"],
        ["X", "W"],
        of=["Out"],
        **more,
    )


def logits(label, x, probabilities, hits=True, **more):
    dtype, n = x.dtype.name, len(x)
    inputs = {
        "Logits": x,
        "Labels": np.resize(np.array([[0, 2], [1, 1]], "int64"), (n, 2)),
        "CustomizedSamples": np.resize(
            np.array([[0, 2, 2, 0, 4], [1, 1, 3, 3, 1]], "int64"), (n, 5)
        ),
        "CustomizedProbabilities": np.resize(np.array(probabilities, dtype), (n, 5)),
    }
    attrs = {"num_samples": 3, "use_customized_samples": True, "remove_accidental_hits": hits}
    inplace = {"Samples": "CustomizedSamples", "Probabilities": "CustomizedProbabilities"}
    return Extreme(
        label,
        "sample_logits",
        inputs,
        attrs,
        ["SampledLogits", "SampledLabels"],
        ["Logits"],
        inplace=inplace,
        **more,
    )


for dtype in ("float32", "float64"):
    x = INPUT.astype(dtype)
    CASES += [
        nce(dtype, x),
        nce(dtype + " log_uniform", x[:3], 1),
        nce(dtype + " custom_dist", x[:3], 2, weights=[1, 0, -2]),
    ]
    CASES += [
        tree(dtype, x),
        tree(dtype + " custom", x, True),
        tree(dtype + " at the clip", np.array([[40, 40], [-40, -40], [41, 39], [20, 20]], dtype)),
    ]
    rows = np.array(
        [[0, 1, -1, 88, 2], [1e19, -1e19, 3e38, -3e38, 0], [INF, 0, -INF, 1, 2], [NAN, 0, 0, 1, 0]],
        dtype,
    )
    CASES += [
        logits(dtype, rows, [1, 0.5, 1e-30, 0.25, 1]),
        logits(dtype + " probability 0", rows, [0, 1, 2, 0, INF]),
        logits(dtype + " hits kept", rows, [1, 0.5, 0.125, 0.25, 1], False),
    ]
