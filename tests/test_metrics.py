"""Metrics against values recorded from Paddle 1.8.5, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import average, metrics
from fluidjax.errors import FluidValueError, UnsupportedError

from .nets import fresh

RECORDED = json.loads((Path(__file__).parent / "data" / "feeding_1.8.5.json").read_text())[
    "metrics"
]
PROBABILITY = np.array(RECORDED["probability"])[:, None]
LABEL = np.array(RECORDED["label"])[:, None]
BOTH = np.concatenate([1 - PROBABILITY, PROBABILITY], 1)


@pytest.mark.parametrize("kind", [metrics.Precision, metrics.Recall])
def test_precision_and_recall(kind):
    metric = kind()
    metric.update(PROBABILITY, LABEL)
    metric.update(PROBABILITY[:20], LABEL[:20])
    assert metric.eval() == RECORDED[kind.__name__.lower()]
    if kind is metrics.Precision:
        assert metric.get_config() == RECORDED["config"]
    metric.reset()
    assert metric.eval() == 0.0 and str(metric) == kind.__name__


def test_auc():
    metric = metrics.Auc("auc")
    assert metric.eval() == 0.0
    metric.update(BOTH[:30], LABEL[:30])
    metric.update(BOTH[30:].astype("float32"), LABEL[30:].ravel())
    assert metric.eval() == pytest.approx(RECORDED["auc"], abs=1e-9)
    metric.reset()
    assert metric.eval() == 0.0


def test_accuracy():
    metric = metrics.Accuracy("acc")
    with pytest.raises(FluidValueError, match="there is no data in acc"):
        metric.eval()
    metric.update(0.5, 4)
    metric.update(np.array([0.75]), 12)
    assert metric.eval() == pytest.approx(RECORDED["accuracy"])
    metric.update(np.float32(1.0), np.int64(16))
    assert metric.eval() == pytest.approx(0.84375)
    metric.reset()
    with pytest.raises(FluidValueError, match="there is no data"):
        metric.eval()


def test_chunks():
    metric = metrics.ChunkEvaluator()
    assert metric.eval() == (0, 0, 0)
    metric.update(10, 8, 6)
    metric.update(np.array([2]), np.array([4]), np.array([1]))
    assert [float(v[0]) for v in metric.eval()] == pytest.approx(RECORDED["chunks"])


def test_edit_distance():
    metric = metrics.EditDistance("edit")
    with pytest.raises(FluidValueError, match="no data in edit"):
        metric.eval()
    metric.update(np.array([[1.0], [0.0], [3.0]]), 3)
    assert metric.eval() == pytest.approx(RECORDED["edit"])


def test_an_edit_distance_counts_by_arrays_of_one():
    """What a run fetches is an array; 1.8.5 answers with one then."""
    metric = metrics.EditDistance("e")
    metric.update(np.array([[1.0], [0.0]]), np.array([2]))
    assert [np.asarray(v).tolist() for v in metric.eval()] == [[0.5], [0.5]]


@pytest.mark.filterwarnings("ignore:WeightedAverage is deprecated")
def test_what_plain_arrays_of_one_add_up_to_converts_to_a_number():
    """As with the NumPy of Fluid's time: np.array(tensor) of what was fetched as a tensor."""
    chunks, edit = metrics.ChunkEvaluator(), metrics.EditDistance("e")
    accuracy, weighted = metrics.Accuracy(), average.WeightedAverage()
    chunks.update(np.array([10]), np.array([8]), np.array([6]))
    edit.update(np.array([[1.0], [0.0]]), np.array([2]))
    accuracy.update(np.array([0.5], "float32"), np.array([4]))
    weighted.add(np.array([0.5], "float32"), np.array([4]))
    weighted.add(1.5, np.array([4]))
    got = *chunks.eval(), *edit.eval(), accuracy.eval(), weighted.eval()
    assert " ".join("%.4f" % v for v in got) == (  # noqa: UP031
        "0.6000 0.7500 0.6667 0.5000 0.5000 0.5000 1.0000"
    )


@pytest.mark.filterwarnings("ignore:WeightedAverage is deprecated")
@pytest.mark.parametrize("shape", [None, (), (1,)])
def test_floats_add_up_in_double(shape):
    """Of float32 values, what float32 sums would miss: as with the NumPy of Fluid's time."""
    value = np.float32(0.1) if shape is None else np.full(shape, 0.1, np.float32)
    accuracy, weighted = metrics.Accuracy(), average.WeightedAverage()
    distances = metrics.EditDistance("distances")
    for _ in range(3000):
        accuracy.update(value, 1000)
        if shape is not None:
            weighted.add(value, 1000)
        distances.update(np.full((1, 1), 10000.1, np.float32), 1)
    exact = float(np.float32(0.1))
    np.testing.assert_allclose(accuracy.eval(), exact, rtol=1e-12)
    if shape is not None:
        np.testing.assert_allclose(weighted.eval(), exact, rtol=1e-12)
    np.testing.assert_allclose(distances.eval()[0], float(np.float32(10000.1)), rtol=1e-12)


def test_counts_that_auc_never_forgets_have_the_shape_that_185_saves():
    """[1, B] for slide_steps=0, so that its checkpoints load."""
    with fresh():
        x, y = fluid.data("x", [None, 2]), fluid.data("y", [None, 1], "int64")
        states = fluid.layers.auc(x, y, num_thresholds=20, slide_steps=0)[2]
        exe, scope = fluid.Executor(), fluid.Scope()
        exe.run(fluid.default_startup_program(), scope=scope)
        exe.run(
            feed={"x": BOTH.astype("float32"), "y": LABEL.astype("int64")},
            fetch_list=[],
            scope=scope,
        )
        assert [s.shape for s in states] == [(1, 21)] * 4
        counts = [np.array(scope.find_var(s.name).get_tensor()) for s in states]
    assert [c.shape for c in counts] == [(1, 21)] * 4
    assert [int(c.sum()) for c in counts] == [LABEL.sum(), (1 - LABEL).sum()] * 2


def test_composite():
    both = metrics.CompositeMetric()
    both.add_metric(metrics.Precision())
    both.add_metric(metrics.Recall())
    both.update(PROBABILITY, LABEL)
    precision, recall = metrics.Precision(), metrics.Recall()
    precision.update(PROBABILITY, LABEL)
    recall.update(PROBABILITY, LABEL)
    assert both.eval() == [precision.eval(), recall.eval()]
    both.reset()
    assert both.eval() == [0.0, 0.0]
    with pytest.raises(
        FluidValueError, match="a sub-metric should inherit from MetricBase, which int does not"
    ):
        both.add_metric(3)


def test_a_metric_of_ones_own():
    class Mine(metrics.MetricBase):
        def __init__(self):
            super().__init__(None)
            self.total, self.count, self.parts, self.last = 2.5, 3, np.ones(2), "x"

    mine = Mine()
    mine.reset()
    assert (mine.total, mine.count, mine.parts.tolist(), mine.last) == (0.0, 0, [0.0, 0.0], None)
    with pytest.raises(UnsupportedError, match="define update"):
        mine.update(1, 2)
    with pytest.raises(UnsupportedError, match="define eval"):
        mine.eval()


def test_refused():
    for call, told in (
        (
            lambda: metrics.Precision().update([1], LABEL),
            "the 'preds' must be a numpy ndarray, not list",
        ),
        (
            lambda: metrics.Recall().update(PROBABILITY, [1]),
            "the 'labels' must be a numpy ndarray, not list",
        ),
        (
            lambda: metrics.Precision().update(PROBABILITY, LABEL[:3]),
            "takes a prediction for each label",
        ),
        (
            lambda: metrics.Accuracy().update("1", 2),
            "the 'value' must be a number or a numpy ndarray, not str",
        ),
        (
            lambda: metrics.Accuracy().update(1.0, np.ones(2)),
            "the 'weight' must be a number, not ndarray",
        ),
        (lambda: metrics.Accuracy().update(1.0, -1), "the 'weight' can not be negative"),
        (lambda: metrics.Auc("a").update(BOTH + 1, LABEL), "takes probabilities between 0 and 1"),
        (
            lambda: metrics.Auc("a").update(PROBABILITY, LABEL),
            r"takes preds \[N, 2\] and N labels, not \[50, 1\]",
        ),
        (
            lambda: metrics.EditDistance("e").update([1.0], 1),
            "the 'distances' must be a numpy ndarray",
        ),
        (lambda: metrics.ChunkEvaluator().update(1, 2, "3"), "the 'num_correct_chunks' must be"),
    ):
        with pytest.raises(FluidValueError, match=told):
            call()
    with pytest.raises(UnsupportedError, match=r"layers\.auc computes 'PR'"):
        metrics.Auc("a", curve="PR")
