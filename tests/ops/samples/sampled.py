"""Losses over a sample of the classes, with samples that are given."""

import numpy as np

from ..sample import Sample, f32, f64, ints, positive

HITS = {"numeric": "what has lost 1e20 is that number, whatever it was"}
DRAWS = "draws classes by its own key; tests/ops/test_sampled.py looks at how they are spread"


def nce(sampler=0, true=2, bias=True, weighted=False, make=f32, note="", sparse=False):
    n, d, c, custom = 4, 3, 6, [5, 0, 3]
    inputs = {"Input": make(n, d), "Label": ints(n, true, high=c), "Weight": make(c, d)}
    grad = ["Input", "Weight"]
    if bias:
        inputs["Bias"] = make(c, 1)
        grad.append("Bias")
    if weighted:
        inputs["SampleWeight"] = np.array([[0.5], [1], [2], [0]], inputs["Input"].dtype)
    if sampler == 2:
        inputs["CustomDistProbs"] = np.array([0.3, 0.05, 0.15, 0.1, 0.25, 0.15], "float32")
        inputs["CustomDistAlias"] = np.array([-1, 0, 0, 4, 0, 4], "int32")
        inputs["CustomDistAliasProbs"] = np.array([1, 0.3, 0.9, 0.6, 0.9, 0.9], "float32")
    attrs = {
        "num_total_classes": c,
        "num_neg_samples": 3,
        "sampler": sampler,
        "custom_neg_classes": [] if note else custom,
    }
    outs = ["Cost"] if note else ["Cost", "SampleLogits", "SampleLabels"]
    return Sample(
        "nce", inputs, attrs, outs, [] if note else grad, of=["Cost"], paddle=not note, note=note
    )


def logits(given=True, hits=True, true=2, make=f32):
    n, c, k = 3, 7, 4
    labels = np.array([[1, 4], [0, 6], [2, 2]], "int64")[:, :true]
    inputs, attrs = (
        {"Logits": make(n, c), "Labels": labels},
        {"num_samples": k, "remove_accidental_hits": hits},
    )
    if not given:
        return Sample("sample_logits", inputs, attrs, ["SampledLabels"], paddle=False, note=DRAWS)
    drawn = np.array([[4, 3, 5, 6], [4, 3, 5, 6], [2, 3, 3, 2]], "int64")
    inputs["CustomizedSamples"] = np.concatenate([labels, drawn], 1)
    inputs["CustomizedProbabilities"] = positive(n, true + k, dtype=inputs["Logits"].dtype.name)
    attrs["use_customized_samples"] = True
    inplace = {"Samples": "CustomizedSamples", "Probabilities": "CustomizedProbabilities"}
    outs, skip = ["SampledLogits", "SampledLabels"], HITS if hits else None
    return Sample("sample_logits", inputs, attrs, outs, ["Logits"], inplace=inplace, skip=skip)


SAMPLES = [
    nce(),
    nce(1),
    nce(2),
    nce(true=1, bias=False),
    nce(weighted=True),
    nce(1, true=3, make=f64, weighted=True),
    nce(note=DRAWS),
    nce(1, note=DRAWS),
    nce(2, note=DRAWS),
    logits(),
    logits(hits=False),
    logits(true=1, make=f64),
    logits(given=False),
]
