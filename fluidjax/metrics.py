"""Metrics that accumulate over batches, in Python: update with fetched values, then eval."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from . import layers, unique_name
from .average import double
from .base.absent import reporter
from .errors import FluidValueError, UnsupportedError
from .feeds.fetching import one_element
from .graph.program import Program, program_guard
from .initializer import Constant
from .layer_helper import LayerHelper


class MetricBase:
    """Base of the metrics: attributes without a leading underscore are the state that reset
    clears.
    """

    def __init__(self, name: str | None) -> None:
        self._name = type(self).__name__ if name is None else str(name)

    def __str__(self) -> str:
        return self._name

    def _states(self) -> dict[str, Any]:
        return {n: v for n, v in vars(self).items() if not n.startswith("_")}

    def reset(self) -> None:
        """Set numbers and arrays of the state to zero, anything else to None."""
        for name, value in self._states().items():
            if isinstance(value, int | float):
                setattr(self, name, type(value)(0))
            else:
                setattr(
                    self,
                    name,
                    np.zeros_like(value) if isinstance(value, np.ndarray | np.generic) else None,
                )

    def get_config(self) -> dict[str, Any]:
        """``{"name": ..., "states": a copy of the state}``."""
        return {"name": self._name, "states": copy.deepcopy(self._states())}

    def update(self, preds: Any, labels: Any) -> None:
        """Add a batch; subclasses define it."""
        raise UnsupportedError(
            f"{type(self).__name__} does not say how it is updated; define update(preds, labels)"
        )

    def eval(self) -> Any:
        """The metric over all added batches; subclasses define it."""
        raise UnsupportedError(
            f"{type(self).__name__} does not say what it evaluates to; define eval()"
        )


class CompositeMetric(MetricBase):
    """Several metrics over the same predictions and labels."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._metrics: list[MetricBase] = []

    def add_metric(self, metric: MetricBase) -> None:
        """Add a metric. Raises FluidValueError for anything else."""
        if not isinstance(metric, MetricBase):
            raise FluidValueError(
                f"a sub-metric should inherit from MetricBase, which {type(metric).__name__}"
                " does not"
            )
        self._metrics.append(metric)

    def reset(self) -> None:
        """Reset every metric."""
        for metric in self._metrics:
            metric.reset()

    def update(self, preds: np.ndarray, labels: np.ndarray) -> None:
        """Update every metric."""
        for metric in self._metrics:
            metric.update(preds, labels)

    def eval(self) -> list[Any]:
        """The values of the metrics, in order."""
        return [metric.eval() for metric in self._metrics]


class _Counts(MetricBase):
    """Counts of binary decisions: predictions are rounded to 0 or 1."""

    def _binary(self, preds: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
        array(self, "preds", preds)
        array(self, "labels", labels)
        if np.size(preds) != np.size(labels):
            raise FluidValueError(
                f"{self} takes a prediction for each label; got preds of shape"
                f" {list(np.shape(preds))} and labels of shape {list(np.shape(labels))}"
            )
        return np.rint(preds).astype("int32").ravel() == 1, np.ravel(labels)


class Precision(_Counts):
    """tp / (tp + fp): the share of predicted ones that are ones."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.tp = 0
        self.fp = 0

    def update(self, preds: np.ndarray, labels: np.ndarray) -> None:
        """preds: probabilities or 0/1; labels: 0/1. Raises FluidValueError unless both are arrays
        of one size.
        """
        chosen, truth = self._binary(preds, labels)
        right = int((chosen & (truth == 1)).sum())
        self.tp += right
        self.fp += int(chosen.sum()) - right

    def eval(self) -> float:
        """The precision so far; 0 if no one was predicted."""
        return self.tp / (self.tp + self.fp) if self.tp + self.fp else 0.0


class Recall(_Counts):
    """tp / (tp + fn): the share of ones that were predicted."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.tp = 0
        self.fn = 0

    def update(self, preds: np.ndarray, labels: np.ndarray) -> None:
        """preds: probabilities or 0/1; labels: 0/1. Raises FluidValueError unless both are arrays
        of one size.
        """
        chosen, truth = self._binary(preds, labels)
        ones = truth == 1
        right = int((chosen & ones).sum())
        self.tp += right
        self.fn += int(ones.sum()) - right

    def eval(self) -> float:
        """The recall so far; 0 if there was no one."""
        return self.tp / (self.tp + self.fn) if self.tp + self.fn else 0.0


class Accuracy(MetricBase):
    """Mean of values, such as layers.accuracy's, weighted by batch size."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.value: Any = 0.0
        self.weight: Any = 0.0

    def update(self, value: Any, weight: Any) -> None:
        """Add a batch's value. Raises FluidValueError for anything but a number, or for a negative
        weight.
        """
        value = number(self, "value", value, matrix=True)
        weight = number(self, "weight", weight)
        if weight < 0:
            raise FluidValueError("the 'weight' can not be negative")
        self.value += double(value) * weight
        self.weight += weight

    def eval(self) -> Any:
        """The weighted mean so far. Raises FluidValueError before the first update."""
        if self.weight == 0:
            raise FluidValueError(
                f"there is no data in {self}; update it with what layers.accuracy gave"
            )
        return self.value / self.weight


class ChunkEvaluator(MetricBase):
    """Precision, recall and F1 of chunks, from their numbers."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.num_infer_chunks: Any = 0
        self.num_label_chunks: Any = 0
        self.num_correct_chunks: Any = 0

    def update(self, num_infer_chunks: Any, num_label_chunks: Any, num_correct_chunks: Any) -> None:  # type: ignore[override]
        """Add the numbers of inferred, labelled and correct chunks. Raises FluidValueError for
        anything but numbers.
        """
        given = {"num_infer_chunks": num_infer_chunks, "num_label_chunks": num_label_chunks}
        for what, value in (given | {"num_correct_chunks": num_correct_chunks}).items():
            setattr(self, what, getattr(self, what) + number(self, what, value, matrix=True))

    def eval(self) -> tuple[Any, Any, Any]:
        """(precision, recall, F1) so far."""
        right = self.num_correct_chunks
        precision = right / self.num_infer_chunks if self.num_infer_chunks else 0
        recall = right / self.num_label_chunks if self.num_label_chunks else 0
        return precision, recall, 2 * precision * recall / (precision + recall) if right else 0


class EditDistance(MetricBase):
    """Mean edit distance, and the share of sequences that have one."""

    def __init__(self, name: str | None) -> None:
        super().__init__(name)
        self.total_distance: Any = 0.0
        self.seq_num: Any = 0
        self.instance_error: Any = 0

    def update(self, distances: np.ndarray, seq_num: Any) -> None:
        """Add a batch of distances. Raises FluidValueError unless they are an array and `seq_num` a
        number.
        """
        array(self, "distances", distances)
        seq_num = number(self, "seq_num", seq_num)
        self.seq_num += seq_num
        self.instance_error += seq_num - np.sum(distances == 0)
        self.total_distance += double(np.sum(distances))

    def eval(self) -> tuple[Any, Any]:
        """(mean distance, share of sequences with an error). Raises FluidValueError before the
        first update.
        """
        if self.seq_num == 0:
            raise FluidValueError(f"there is no data in {self}; update it with edit distances")
        return self.total_distance / self.seq_num, self.instance_error / self.seq_num


class Auc(MetricBase):
    """Area under the ROC curve of two-class probabilities, by `num_thresholds` + 1 bins.

    Unlike in Fluid 1.8.5, whose reset does not change the counts, reset clears them; and curve
    "PR", for which 1.8.5 gives the ROC area, is refused with UnsupportedError.
    """

    def __init__(self, name: str | None, curve: str = "ROC", num_thresholds: int = 4095) -> None:
        super().__init__(name)
        if curve != "ROC":
            raise UnsupportedError(
                f"metrics.Auc knows the curve 'ROC', not {curve!r}; layers.auc computes 'PR'"
            )
        self._num_thresholds = num_thresholds
        self._positive = np.zeros(num_thresholds + 1)
        self._negative = np.zeros(num_thresholds + 1)

    def reset(self) -> None:
        """Clear the counts."""
        self._positive[:] = self._negative[:] = 0

    def update(self, preds: np.ndarray, labels: np.ndarray) -> None:
        """preds: probabilities [N, 2]; labels: 0/1, N of them. Raises FluidValueError for anything
        else.
        """
        array(self, "preds", preds)
        array(self, "labels", labels)
        if preds.ndim != 2 or preds.shape[1] < 2 or len(preds) != np.size(labels):
            raise FluidValueError(
                f"{self} takes preds [N, 2] and N labels, not {list(preds.shape)} and"
                f" {list(np.shape(labels))}"
            )
        scores = preds[:, 1]
        if not ((scores >= 0) & (scores <= 1)).all():
            raise FluidValueError(
                f"{self} takes probabilities between 0 and 1; preds[:, 1] holds others"
            )
        bins = (scores.astype("float64") * self._num_thresholds).astype("int64")
        truth = np.ravel(labels) != 0
        for counts, chosen in ((self._positive, truth), (self._negative, ~truth)):
            counts += np.bincount(bins[chosen], minlength=len(counts))

    def eval(self) -> float:
        """The area so far; 0 unless there were both labels."""
        positive, negative = (
            np.cumsum(counts[::-1]) for counts in (self._positive, self._negative)
        )
        if not (positive[-1] and negative[-1]):
            return 0.0
        area = np.trapezoid(np.append(0.0, positive), np.append(0.0, negative))
        return float(area / positive[-1] / negative[-1])

    @staticmethod
    def trapezoid_area(x1: float, x2: float, y1: float, y2: float) -> float:
        """The area below the line from (x1, y1) to (x2, y2)."""
        return abs(x1 - x2) * (y1 + y2) / 2.0


def array(metric: MetricBase, what: str, value: Any) -> None:
    """Raises FluidValueError unless `value` is a NumPy array or scalar."""
    if not isinstance(value, np.ndarray | np.generic):
        raise FluidValueError(
            f"{metric}: the {what!r} must be a numpy ndarray, not {type(value).__name__}"
        )


def number(metric: MetricBase, what: str, value: Any, matrix: bool = False) -> Any:
    """The value, if it is a number or an array of one (of any shape, if `matrix`). Raises
    FluidValueError otherwise. What is computed from an array of one converts to a number.
    """
    numeric = isinstance(value, int | float | np.number)
    if not numeric and not (
        isinstance(value, np.ndarray) and (matrix or value.shape in ((), (1,)))
    ):
        kinds = "a number or a numpy ndarray" if matrix else "a number"
        raise FluidValueError(f"{metric}: the {what!r} must be {kinds}, not {type(value).__name__}")
    return one_element(value) if isinstance(value, np.ndarray) else value


class DetectionMAP:
    """The mean average precision of detections, computed by ops of the program: for a batch, and
    for all batches since the last reset.

    input [rows, 6] (label, score, x1, y1, x2, y2), gt_label [boxes, 1], gt_box [boxes, 4],
    gt_difficult [boxes, 1] or None: one sequence for each image. The other parameters are those of
    layers.detection.detection_map; background_label has no effect, as in 1.8.5.
    """

    def __init__(
        self, input: Any, gt_label: Any, gt_box: Any, gt_difficult: Any = None, class_num: int | None = None, background_label: int = 0,
        overlap_threshold: float = 0.5, evaluate_difficult: bool = True, ap_version: str = "integral",
    ) -> None:  # fmt: skip
        self.helper = LayerHelper("map_eval")
        attrs = {
            "overlap_threshold": overlap_threshold,
            "evaluate_difficult": evaluate_difficult,
            "ap_version": ap_version,
        }
        given = input, gt_label, gt_box, gt_difficult, class_num, background_label
        made = mean_precision_ops(
            *given, self._create_state, lambda: self._create_state("has_state", "int32", [1]), attrs
        )
        self.cur_map, self.accum_map, self.has_state = made

    def _create_state(self, suffix: str, dtype: str, shape: Any) -> Any:
        name = f"{unique_name.generate(self.helper.name)}_{suffix}"
        return self.helper.create_variable(name=name, persistable=True, dtype=dtype, shape=shape)

    def get_map_var(self) -> tuple[Any, Any]:
        """The variables of the batch's mean and of the mean so far."""
        return self.cur_map, self.accum_map

    def reset(self, executor: Any, reset_program: Any = None) -> None:
        """Make the next batch the first: run reset_program (default a new one) with an op for
        this.
        """
        forget(self.has_state, executor, reset_program)


def mean_precision_ops(
    input: Any, gt_label: Any, gt_box: Any, gt_difficult: Any, class_num: Any, background_label: int, new_state: Any,
    new_mark: Any, attrs: dict[str, Any],
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Append the ops of DetectionMAP; returns the batch's mean, the mean so far, and the variable
    that marks whether there is a state.

    new_state(suffix, dtype, shape), new_mark() make the persistable variables.
    """
    if class_num is None:
        raise FluidValueError("DetectionMAP needs class_num, the number of classes")
    found = layers.detection.detection_map
    columns = [layers.cast(gt_label, gt_box.dtype), gt_box]
    if gt_difficult is not None:
        columns.insert(1, layers.cast(gt_difficult, gt_box.dtype))
    label = layers.concat(columns, axis=1)
    mean = found(input, label, class_num, background_label, **attrs)
    kinds = {"accum_pos_count": "int32", "accum_true_pos": "float32", "accum_false_pos": "float32"}
    states = [new_state(suffix, dtype, None) for suffix, dtype in kinds.items()]
    mark = new_mark()
    LayerHelper("map_eval").set_variable_initializer(mark, Constant(0))
    so_far = found(
        input,
        label,
        class_num,
        background_label,
        has_state=mark,
        input_states=states,
        out_states=states,
        **attrs,
    )
    layers.fill_constant(shape=mark.shape, value=1, dtype=mark.dtype, out=mark)
    return mean, so_far, mark


def forget(mark: Any, executor: Any, program: Any) -> None:
    """Set a persistable mark to 0 by running a program (default a new one)."""
    program = Program() if program is None else program
    with program_guard(program):
        var = program.current_block().create_var(
            name=mark.name, shape=mark.shape, dtype=mark.dtype, persistable=True
        )
        layers.fill_constant(shape=var.shape, value=0, dtype=var.dtype, out=var)
    executor.run(program)


__all__ = [
    "Accuracy", "Auc", "ChunkEvaluator", "CompositeMetric", "DetectionMAP", "EditDistance", "MetricBase", "Precision", "Recall",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.metrics", __all__)
