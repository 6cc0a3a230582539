"""Metrics computed by the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base.absent import reporter
from ..base.loc import located
from ..graph.variable import Variable
from ..initializer import ConstantInitializer
from ..layer_helper import LayerHelper
from ._build import FLOATS, HALF, INTS, append, typed, variable
from .missing import HINTS
from .reduce import topk


@located
def accuracy(
    input: Variable,
    label: Variable,
    k: int = 1,
    correct: Variable | None = None,
    total: Variable | None = None,
) -> Variable:
    """The fraction of rows whose label [N, 1] is among the k best classes of `input` [N, C]:
    float32 [1].

    correct, total: int32 variables that receive the two counts.
    """
    helper = LayerHelper("accuracy")
    variable(input, "input", "accuracy", HALF)
    typed(label, "label", Variable, "accuracy")
    values, indices = topk(input, k)
    outs: dict[str, Any] = {"Accuracy": "float32"}
    outs |= {
        slot: "int32" if v is None else v for slot, v in (("Correct", correct), ("Total", total))
    }
    return append(helper, {"Out": [values], "Indices": [indices], "Label": [label]}, outs)[0]


@located
def auc(
    input: Variable,
    label: Variable,
    curve: str = "ROC",
    num_thresholds: int = 2**12 - 1,
    topk: int = 1,
    slide_steps: int = 1,
) -> tuple[Variable, Variable, list[Variable]]:
    """Area under the ROC or PR curve of the probabilities input[:, 1]: over all batches, over the
    last ones, and the states.

    The four states are persistable counts by score: for the last `slide_steps` batches (positive,
    negative), then for all batches. topk is ignored, as in Fluid 1.8.
    """
    helper = LayerHelper("auc")
    variable(input, "input", "auc", FLOATS)
    variable(label, "label", "auc", INTS)
    overall, recent = (helper.create_variable_for_type_inference("float64") for _ in range(2))
    ever = [1, num_thresholds + 1]  # the op's size for counts of all batches
    sliding = [(1 + slide_steps) * (num_thresholds + 1) + 1]
    shapes = [ever if slide_steps == 0 else sliding] * 2 + [ever] * 2
    states = [
        helper.create_global_variable(persistable=True, dtype="int64", shape=s) for s in shapes
    ]
    for state in states:
        helper.set_variable_initializer(state, ConstantInitializer(0.0))
    for out, (positive, negative), steps in (
        (recent, states[:2], slide_steps),
        (overall, states[2:], 0),
    ):
        helper.append_op(
            type="auc",
            inputs={
                "Predict": [input],
                "Label": [label],
                "StatPos": [positive],
                "StatNeg": [negative],
            },
            outputs={"AUC": [out], "StatPosOut": [positive], "StatNegOut": [negative]},
            attrs={"curve": curve, "num_thresholds": num_thresholds, "slide_steps": steps},
        )
    return overall, recent, states


@located
def mean_iou(
    input: Variable, label: Variable, num_classes: int
) -> tuple[Variable, Variable, Variable]:
    """Mean over classes of intersection / union of prediction and label, and the wrong and right
    counts per class.
    """
    variable(input, "Predictions", "mean_iou", INTS)
    variable(label, "Labels", "mean_iou", INTS)
    outs = {"OutMeanIou": "float32", "OutWrong": "int32", "OutCorrect": "int32"}
    return append(
        LayerHelper("mean_iou"),
        {"Predictions": input, "Labels": label},
        outs,
        {"num_classes": num_classes},
    )


__all__ = ["accuracy", "auc", "mean_iou"]

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.layers.metric_op", __all__, HINTS)
