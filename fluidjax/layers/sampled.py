"""Losses over few of many classes: sampled ones (nce, sampled softmax), or those on a path through
a tree (hsigmoid).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.loc import located
from ..graph.variable import Variable
from ..initializer import NumpyArrayInitializer
from ..layer_helper import LayerHelper
from ..param_attr import ParamAttr
from ._build import FLOATS, append, one_of, require, variable

_SAMPLERS = {"uniform": 0, "log_uniform": 1, "custom_dist": 2}
_NEGATIVE = 10  # classes that nce samples by default


@located
def nce(
    input: Variable,
    label: Variable,
    num_total_classes: int,
    sample_weight: Variable | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    num_neg_samples: int | None = None,
    name: str | None = None,
    sampler: str = "uniform",
    custom_dist: Sequence[float] | None = None,
    seed: int = 0,
    is_sparse: bool = False,
) -> Variable:
    """Noise-contrastive estimation: [N, 1] from input [N, D] and true classes label [N, true]
    (int64), see the op nce.

    This layer creates the classifier's weight [num_total_classes, D] and bias [num_total_classes,
    1]. num_neg_samples (10) classes are sampled for each row by `sampler`: "uniform", "log_uniform"
    or "custom_dist", with the probabilities custom_dist. The cost is divided by num_neg_samples +
    1. is_sparse: the weight's gradient holds only the batch's rows.
    """
    helper = LayerHelper("nce", param_attr=param_attr, bias_attr=bias_attr, name=name)
    variable(input, "input", "nce", FLOATS)
    variable(label, "label", "nce", ("int64",))
    weight = helper.create_parameter(
        helper.param_attr, [num_total_classes, input.shape[1]], input.dtype
    )
    bias = None
    if helper.bias_attr:
        bias = helper.create_parameter(
            helper.bias_attr, [num_total_classes, 1], input.dtype, is_bias=True
        )
    cost, logits = (helper.create_variable_for_type_inference(input.dtype) for _ in range(2))
    drawn = helper.create_variable_for_type_inference(label.dtype)
    one_of(sampler, "sampler", "nce", tuple(_SAMPLERS))
    inputs = {
        "Input": input,
        "Label": label,
        "Weight": weight,
        "Bias": bias,
        "SampleWeight": sample_weight,
    }
    if sampler == "custom_dist":
        inputs.update(_tables(helper, custom_dist, num_total_classes))
    count = _NEGATIVE if num_neg_samples is None else int(num_neg_samples)
    attrs = {
        "num_total_classes": int(num_total_classes), "num_neg_samples": count, "seed": seed, "sampler": _SAMPLERS[sampler],
        "is_sparse": is_sparse, "remote_prefetch": is_sparse,
    }  # fmt: skip
    append(helper, inputs, {"Cost": cost, "SampleLogits": logits, "SampleLabels": drawn}, attrs)
    return cost / (count + 1)


def _tables(
    helper: LayerHelper, probabilities: Sequence[float] | None, classes: int
) -> dict[str, Variable]:
    """The constants for sampling by given probabilities, as parameters without a gradient."""
    require(
        probabilities is not None and len(probabilities) == classes,
        f"nce's custom_dist is a probability for each of num_total_classes = {classes} classes, not"
        f" {probabilities!r}",
    )
    assert probabilities is not None
    alias, kept = alias_tables(probabilities)
    arrays = {
        "CustomDistProbs": np.array(probabilities, "float32"),
        "CustomDistAlias": alias,
        "CustomDistAliasProbs": kept,
    }
    made = {}
    for slot, array in arrays.items():
        made[slot] = helper.create_parameter(
            ParamAttr(), array.shape, array.dtype, default_initializer=NumpyArrayInitializer(array)
        )
        made[slot].stop_gradient = True
    return made


def alias_tables(probabilities: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Walker's alias method: the alias of each class (int32; -1: none) and the probability
    (float32) of keeping the class.

    A class with a probability below 1 / n is filled up from one above it, in the order of the
    classes.
    """
    n = len(probabilities)
    alias, kept = np.zeros(n, "int32"), np.zeros(n, "float32")
    share = [p * n for p in probabilities]
    big = [i for i in range(n) if share[i] - 1.0 > 0]
    little = [i for i in range(n) if 1.0 - share[i] > 0]

    def alone(i: int, probability: float) -> None:
        alias[i], kept[i] = -1, probability

    for i in set(range(n)) - {*big, *little}:
        alone(i, share[i])
    while big and little:
        giver, taker = big.pop(0), little.pop(0)
        alias[taker], kept[taker] = giver, share[taker]
        share[giver] = share[giver] + share[taker] - 1.0
        if share[giver] - 1.0 > 0:
            big.append(giver)
        elif 1.0 - share[giver] > 0:
            little.append(giver)
        else:
            alone(giver, share[giver])
    for i in (*big, *little):  # rounding errors: the remaining differences are almost 0
        alone(i, 1.0)
    return alias, kept


@located
def hsigmoid(
    input: Variable,
    label: Variable,
    num_classes: int | None,
    param_attr: Any = None,
    bias_attr: Any = None,
    name: str | None = None,
    path_table: Variable | None = None,
    path_code: Variable | None = None,
    is_custom: bool = False,
    is_sparse: bool = False,
) -> Variable:
    """Hierarchical sigmoid: [N, 1] from input [N, D] and label [N, 1] (int64), see the op
    hierarchical_sigmoid.

    The weight has a row for each inner node of the tree: num_classes - 1 in the default one,
    num_classes in a custom one, whose paths are path_table and path_code [N, longest path] (int64,
    padded with -1). is_sparse: the weight's gradient holds only the batch's rows, for a custom tree
    only.
    """
    variable(input, "input", "hsigmoid", FLOATS)
    variable(label, "label", "hsigmoid", ("int64",))
    helper = LayerHelper(
        "hierarchical_sigmoid", param_attr=param_attr, bias_attr=bias_attr, name=name
    )
    out, pre = (helper.create_variable_for_type_inference(input.dtype) for _ in range(2))
    if is_custom:
        given = {"path_code": path_code, "path_table": path_table, "num_classes": num_classes}
        for what, value in given.items():
            require(value is not None, f"hsigmoid with is_custom needs {what}")
    else:
        enough = num_classes is not None and num_classes >= 2
        require(
            enough, f"hsigmoid's num_classes is at least 2 in the default tree, not {num_classes}"
        )
        require(
            path_table is None and path_code is None,
            "hsigmoid takes path_table and path_code with is_custom alone",
        )
        is_sparse = False
    assert num_classes is not None
    nodes = num_classes - (not is_custom)
    weight = helper.create_parameter(helper.param_attr, [nodes, input.shape[1]], input.dtype)
    inputs = {
        "X": input,
        "W": weight,
        "PathTable": path_table,
        "PathCode": path_code,
        "Label": label,
    }
    if helper.bias_attr:
        inputs["Bias"] = helper.create_parameter(
            helper.bias_attr, [nodes, 1], input.dtype, is_bias=True
        )
    attrs = {"num_classes": num_classes, "is_sparse": is_sparse, "remote_prefetch": is_sparse}
    append(helper, inputs, {"Out": out, "PreOut": pre, "W_Out": weight}, attrs)
    return out


@located
def sampled_softmax_with_cross_entropy(
    logits: Variable,
    label: Variable,
    num_samples: int,
    num_true: int = 1,
    remove_accidental_hits: bool = True,
    use_customized_samples: bool = False,
    customized_samples: Variable | None = None,
    customized_probabilities: Variable | None = None,
    seed: int = 0,
) -> Variable:
    """Softmax cross entropy over the labels and num_samples sampled classes instead of all: [N, 1]
    from logits [N, C], label [N, num_true].

    See the op sample_logits. customized_samples, customized_probabilities [N, num_true +
    num_samples], labels first: used instead of sampled ones with use_customized_samples.
    """
    helper = LayerHelper("sample_logits")
    variable(logits, "logits", "sampled_softmax_with_cross_entropy")
    variable(label, "label", "sampled_softmax_with_cross_entropy")
    new = helper.create_variable_for_type_inference
    given = use_customized_samples
    samples: Any = customized_samples if given else new("int64")
    probabilities: Any = customized_probabilities if given else new(logits.dtype)
    variable(samples, "customized_samples", "sampled_softmax_with_cross_entropy")
    variable(probabilities, "customized_probabilities", "sampled_softmax_with_cross_entropy")
    sampled, labels, soft = new(logits.dtype), new("int64"), new(logits.dtype)
    dims = new(logits.dtype), new(label.dtype)
    inputs = {
        "Logits": logits, "Labels": label, "CustomizedSamples": customized_samples, "CustomizedProbabilities": customized_probabilities,
    }  # fmt: skip
    outs = {
        "Samples": samples, "Probabilities": probabilities, "SampledLabels": labels, "SampledLogits": sampled, "LogitsDim": dims[0],
        "LabelsDim": dims[1],
    }  # fmt: skip
    attrs = {
        "use_customized_samples": use_customized_samples, "uniq": True, "remove_accidental_hits": remove_accidental_hits,
        "num_samples": num_samples, "seed": seed,
    }  # fmt: skip
    append(helper, inputs, outs, attrs)
    loss, softmax = new(logits.dtype), new(logits.dtype)
    append(helper, {"X": labels}, {"Out": soft}, {"depth": num_samples + 1}, kind="one_hot")
    attrs = {"soft_label": True, "ignore_index": 0, "numeric_stable_mode": False}
    append(
        helper,
        {"Logits": sampled, "Label": soft},
        {"Softmax": softmax, "Loss": loss},
        attrs,
        kind="softmax_with_cross_entropy",
    )
    return loss / num_true


__all__ = ["hsigmoid", "nce", "sampled_softmax_with_cross_entropy"]
