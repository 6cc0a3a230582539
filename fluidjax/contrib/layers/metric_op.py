"""fluid.contrib.layers.metric_op: measures of click predictions, accumulated in the program over
its runs.
"""

from __future__ import annotations

from typing import Any

from ...base.loc import located
from ...errors import ShapeError
from ...graph.variable import Variable
from ...initializer import Constant
from ...layer_helper import LayerHelper


@located
def ctr_metric_bundle(input: Variable, label: Variable) -> tuple[Variable, ...]:
    """Sums over all samples of all runs since the startup program, for the errors of predicted
    clicks.

    input, label: float32 [N, 1], a prediction p and the true value y. Returns six persistable
    variables, float32 [1]: the sums of (p - y)^2, |p - y|, p, sigmoid(p), y and 1. The root mean
    squared error is sqrt(first / last), the mean absolute error second / last, and predicted over
    real clicks third / fifth; jobs of several trainers sum theirs before the division.

    The ops are those of ``fluid.contrib.layers.ctr_metric_bundle`` in Paddle 1.8.5. Raises
    ShapeError if the two have different shapes.
    """
    if input.shape != label.shape:
        raise ShapeError(
            f"ctr_metric_bundle takes input and label of one shape, not {list(input.shape)} and"
            f" {list(label.shape)}"
        )
    helper = LayerHelper("ctr_metric_bundle", input=input, label=label)
    absolute, squared, predicted, probable, positive, count = (_sum(helper, True) for _ in range(6))
    difference, sigmoid, ones = (
        helper.create_global_variable(persistable=False, dtype="float32", shape=[-1])
        for _ in range(3)
    )
    now_predicted, now_absolute, now_squared, now_probable, now_positive, now_count = (
        _sum(helper, False) for _ in range(6)
    )
    filled = (
        absolute,
        now_absolute,
        squared,
        now_squared,
        predicted,
        now_predicted,
        probable,
        now_probable,
        now_positive,
        now_count,
    )
    for var in (*filled, positive, count):
        helper.set_variable_initializer(var, Constant(0.0, force_cpu=True))

    def op(kind: str, x: Variable, out: Variable, y: Variable | None = None, **attrs: Any) -> None:
        helper.append_op(
            type=kind,
            inputs={"X": [x]} if y is None else {"X": [x], "Y": [y]},
            outputs={"Out": [out]},
            attrs=attrs,
        )

    def add(kind: str, x: Variable, now: Variable, to: Variable) -> None:
        op(kind, x, now)
        op("elementwise_add", now, to, to)

    op("elementwise_sub", input, difference, label)
    add("squared_l2_norm", difference, now_squared, squared)
    add("l1_norm", difference, now_absolute, absolute)
    add("reduce_sum", input, now_predicted, predicted)
    op("sigmoid", input, sigmoid)
    add("reduce_sum", sigmoid, now_probable, probable)
    add("reduce_sum", label, now_positive, positive)
    fill = {"shape": [-1, 1], "dtype": ones.dtype, "value": 1.0}
    helper.append_op(
        type="fill_constant_batch_size_like",
        inputs={"Input": label},
        outputs={"Out": [ones]},
        attrs=fill,
    )
    add("reduce_sum", ones, now_count, count)
    return squared, absolute, predicted, probable, positive, count


def _sum(helper: LayerHelper, persistable: bool) -> Variable:
    return helper.create_global_variable(persistable=persistable, dtype="float32", shape=[1])


__all__ = ["ctr_metric_bundle"]
