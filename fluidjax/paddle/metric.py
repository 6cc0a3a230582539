"""paddle.metric: accuracy of a static program, and measures accumulated over batches, for
paddle.Model and your own loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import layers
from ..errors import FluidValueError
from ..graph.variable import Variable
from ..metrics import Auc as _Auc


def accuracy(
    input: Variable,
    label: Variable,
    k: int = 1,
    correct: Variable | None = None,
    total: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """The fraction of rows whose label [N, 1] is among the k best classes of `input` [N, C]:
    float32 [1].

    correct, total: int32 variables that receive the two counts.
    """
    return layers.accuracy(input, label, k, correct, total)


class Metric:
    """A measure over batches: compute appends ops to a program, update takes their arrays,
    accumulate returns the measure.
    """

    def reset(self) -> None:
        """Forget all batches."""
        raise NotImplementedError(f"{type(self).__name__} has no reset")

    def update(self, *args: Any) -> Any:
        """Add a batch: the results of compute, as arrays."""
        raise NotImplementedError(f"{type(self).__name__} has no update")

    def accumulate(self) -> Any:
        """The measure over all batches."""
        raise NotImplementedError(f"{type(self).__name__} has no accumulate")

    def name(self) -> Any:
        """The name of the measure, or a list of them."""
        raise NotImplementedError(f"{type(self).__name__} has no name")

    def compute(self, *args: Any) -> Any:
        """The arguments of update, from the net's outputs and the labels; by default these
        themselves.
        """
        return args


class Accuracy(Metric):
    """The fraction of samples whose label is among the k best classes, for each k of topk."""

    def __init__(
        self, topk: Sequence[int] = (1,), name: str | None = None, *args: Any, **kwargs: Any
    ) -> None:
        self.topk, self.maxk = tuple(topk), max(topk)
        self.total: list[float] = []
        self.count = 0
        self._names = (
            [name or "acc"] if self.maxk == 1 else [f"{name or 'acc'}_top{k}" for k in self.topk]
        )
        self.reset()

    def compute(self, pred: Variable, label: Variable, *args: Any) -> Variable:
        """[N, max(topk)]: 1 where the k-th best class of pred [N, C] is the label ([N], [N, 1], or
        [N, C] with the class's 1).
        """
        best = layers.topk(pred, self.maxk)[1]
        if label.ndim > 1 and label.shape[-1] != 1:
            label = layers.argmax(label, -1)
        label = layers.reshape(layers.cast(label, "int64"), [-1, 1])
        return layers.cast(layers.equal(best, layers.expand(label, [1, self.maxk])), "float32")

    def update(self, correct: Any, *args: Any) -> Any:
        """Add a batch from compute; returns its own accuracy, for each k."""
        found = np.asarray(correct)
        sums = [float(found[..., :k].sum()) for k in self.topk]
        rows = found.size // found.shape[-1]
        self.total = [t + s for t, s in zip(self.total, sums, strict=True)]
        self.count += rows
        shares = [s / rows if rows else 0.0 for s in sums]
        return shares[0] if len(shares) == 1 else shares

    def reset(self) -> None:
        self.total, self.count = [0.0] * len(self.topk), 0

    def accumulate(self) -> Any:
        shares = [t / self.count if self.count else 0.0 for t in self.total]
        return shares[0] if len(shares) == 1 else shares

    def name(self) -> list[str]:
        return self._names


class _Hits(Metric):
    """Counts of predicted and true positives."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.reset()

    def reset(self) -> None:
        self.tp = self.fp = self.fn = 0

    def update(self, preds: Any, labels: Any, *args: Any) -> None:
        """Add a batch: probabilities [N] or [N, 1], positive from 0.5 on, and labels 0 or 1."""
        said = np.floor(np.asarray(preds, np.float64).ravel() + 0.5).astype(np.int64) == 1
        true = np.asarray(labels).ravel() == 1
        if said.shape != true.shape:
            raise FluidValueError(
                f"{type(self).__name__} compares as many labels as predictions, not {true.size} and"
                f" {said.size}"
            )
        self.tp += int((said & true).sum())
        self.fp += int((said & ~true).sum())
        self.fn += int((~said & true).sum())

    def name(self) -> str:
        return self._name


class Precision(_Hits):
    """The fraction of predicted positives that are true: tp / (tp + fp); 0 without predictions."""

    def __init__(self, name: str = "precision", *args: Any, **kwargs: Any) -> None:
        super().__init__(name)

    def accumulate(self) -> float:
        said = self.tp + self.fp
        return self.tp / said if said else 0.0


class Recall(_Hits):
    """The fraction of positives that are predicted: tp / (tp + fn); 0 without positives."""

    def __init__(self, name: str = "recall", *args: Any, **kwargs: Any) -> None:
        super().__init__(name)

    def accumulate(self) -> float:
        true = self.tp + self.fn
        return self.tp / true if true else 0.0


class Auc(Metric):
    """The area under the curve of hits over false alarms, from num_thresholds steps:
    fluid.metrics.Auc.
    """

    def __init__(
        self,
        curve: str = "ROC",
        num_thresholds: int = 4095,
        name: str = "auc",
        *args: Any,
        **kwargs: Any,
    ) -> None:
        self._name, self._area = name, _Auc(name, curve, num_thresholds)

    def reset(self) -> None:
        self._area.reset()

    def update(self, preds: Any, labels: Any, *args: Any) -> None:
        """Add a batch: probabilities of both classes [N, 2], and labels [N, 1]."""
        self._area.update(np.asarray(preds), np.asarray(labels))

    def accumulate(self) -> float:
        return self._area.eval()

    trapezoid_area = staticmethod(_Auc.trapezoid_area)

    def name(self) -> str:
        return self._name


__all__ = ["Accuracy", "Auc", "Metric", "Precision", "Recall", "accuracy"]
