"""paddle.metric: accuracy of a static program."""

from __future__ import annotations

from .. import layers
from ..graph.variable import Variable


def accuracy(
    input: Variable,
    label: Variable,
    k: int = 1,
    correct: Variable | None = None,
    total: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """The share of rows whose label [N, 1] is among the k best classes of `input` [N, C]: float32 [1].

    correct, total: int32 variables that receive the two counts.
    """
    return layers.accuracy(input, label, k, correct, total)


__all__ = ["accuracy"]
