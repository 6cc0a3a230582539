"""Metrics: accuracy, area under the ROC curve, mean intersection over union, precision and recall."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..errors import ShapeError
from .bounds import below
from .outside import within
from .ragged import Ragged, counted, rows_of
from .registry import Array, op
from .traits import FREE, Bounds, knows_rows


@op(outs="Accuracy Correct Total", rows=knows_rows(each="", by_offsets=True), bounds=FREE)
def accuracy(Out: Array | Ragged, Indices: Array | Ragged, Label: Array | Ragged):
    """Accuracy = the share of rows whose Label is among Indices.

    Out, Indices [N, k] (what top_k gave), Label [N, 1]. Accuracy float32 [1]; Correct and Total,
    the counts, int32 [1].
    """
    padded, found, label = (
        counted("accuracy", Out=Out, Indices=Indices, Label=Label),
        rows_of(Indices),
        rows_of(Label),
    )
    _check_rows("accuracy", label, found.shape[0])
    hits = jnp.any(found == label.reshape(-1, 1).astype(found.dtype), axis=1)
    if padded is not None:
        hits &= padded.kept()
    n = found.shape[0] if padded is None else padded.count
    correct = jnp.sum(hits, dtype=jnp.int32, keepdims=True)
    return (
        correct.astype(jnp.float32) / jnp.maximum(jnp.float32(n), 1),
        correct,
        jnp.full((1,), n, jnp.int32),
    )


def _area(pos: Array, neg: Array) -> jax.Array:
    """The area under the curve through the counts of each bucket, best predictions last, float64
    [1].
    """
    pos, neg = pos[::-1].astype(jnp.float64), neg[::-1].astype(jnp.float64)
    above = jnp.cumsum(pos)
    area = jnp.sum(neg * (2 * above - pos) / 2)
    pairs = above[-1] * jnp.sum(neg)
    return jnp.where(pairs > 0, area / jnp.where(pairs > 0, pairs, 1), area).reshape(1)


def _check_rows(kind: str, label: Array, rows: int) -> None:
    if label.size != rows:
        raise ShapeError(f"{kind} takes a label for each of {rows} rows, not {list(label.shape)}")


def _check_counts(states: tuple[Array, Array], buckets: int, slide_steps: int) -> None:
    sizes = [(slide_steps + 1) * buckets + 1] + ([buckets] if slide_steps == 0 else [])
    for state in states:
        if state.size not in sizes:
            raise ShapeError(
                f"auc with {buckets} buckets and slide_steps={slide_steps} keeps"
                f" {' or '.join(map(str, sizes))} numbers, not {list(state.shape)}"
            )


@op(
    outs="AUC StatPosOut StatNegOut",
    inplace={"StatPosOut": "StatPos", "StatNegOut": "StatNeg"},
    rows=knows_rows(each="", by_offsets=True),
    bounds=FREE,
    counters=("StatPos", "StatNeg"),
)
def auc(
    Predict: Array | Ragged, Label: Array | Ragged, StatPos: Array, StatNeg: Array, *, curve: str = "ROC", num_thresholds: int = 8191,
    slide_steps: int = 1,
):  # fmt: skip
    """AUC = the area under the ROC curve of the positives and negatives counted so far, float64
    [1].

    Predict [N, 1 or 2], whose last column is the probability of the positive class; Label [N, 1], 0
    or not. With B = num_thresholds + 1 buckets: StatPos [1, B] int64 counts all calls if
    slide_steps is 0; else it is [slide_steps * B + B + 1]: the counts of each of the last
    slide_steps calls, their sum, and the number of calls. A state [B + 1] with slide_steps 0, as
    Paddle's startup program makes it, keeps its shape (Paddle returns [1, B]).
    """
    buckets = num_thresholds + 1
    _check_counts((StatPos, StatNeg), buckets, slide_steps)
    padded = counted("auc", Predict=Predict, Label=Label)
    where = jnp.clip(
        (rows_of(Predict)[:, -1] * num_thresholds).astype(jnp.int32), 0, num_thresholds
    )
    _check_rows("auc", rows_of(Label), where.shape[0])
    positive = rows_of(Label).reshape(-1) != 0
    kept = True if padded is None else padded.kept()

    def count(old: Array, hit: Array) -> tuple[jax.Array, jax.Array]:
        new = jnp.zeros(buckets, jnp.int64).at[where].add(hit.astype(jnp.int64))
        old = jnp.asarray(old).reshape(-1)
        if slide_steps == 0:
            total = old[:buckets] + new
            return total, (
                jnp.append(total, old[-1]) if old.size > buckets else total.reshape(1, buckets)
            )
        history, calls = old[: slide_steps * buckets].reshape(slide_steps, buckets), old[-1]
        slot = calls % slide_steps
        total = old[slide_steps * buckets : -1] - history[slot] + new
        return total, jnp.concatenate(
            [history.at[slot].set(new).reshape(-1), total, (calls + 1).reshape(1)]
        )

    pos, pos_out = count(StatPos, positive & kept)
    neg, neg_out = count(StatNeg, ~positive & kept)
    return _area(pos, neg), pos_out, neg_out


@op(
    outs="OutMeanIou OutWrong OutCorrect",
    rows=knows_rows(each=""),
    bounds=Bounds("Labels", "label", below("num_classes")),
    refuses=within("Predictions", "prediction", lambda inputs, attrs: attrs["num_classes"]),
)
def mean_iou(
    Predictions: Array | Ragged, Labels: Array | Ragged, InWrongs: list[Array] | None, InCorrects: list[Array] | None,
    InMeanIou: list[Array] | None, *, num_classes: int,
):  # fmt: skip
    """OutMeanIou = the mean over seen classes of correct / (correct + wrong), plus the sum of
    InMeanIou.

    Predictions and Labels: class numbers of one shape. OutCorrect, OutWrong [num_classes] int32:
    hits, and misses counted for both classes concerned, with those of InCorrects and InWrongs added
    first. OutMeanIou float32 [1].
    """
    padded = counted("mean_iou", Predictions=Predictions, Labels=Labels)
    predicted, wanted = rows_of(Predictions).reshape(-1), rows_of(Labels).reshape(-1)
    hit, miss = (predicted == wanted).astype(jnp.int32), (predicted != wanted).astype(jnp.int32)
    if padded is not None:
        kept = jnp.repeat(padded.kept(), predicted.shape[0] // max(padded.capacity, 1))
        hit, miss = hit * kept, miss * kept
    correct = sum(InCorrects or (), jnp.zeros(num_classes, jnp.int32)).at[wanted].add(hit)
    wrong = sum(InWrongs or (), jnp.zeros(num_classes, jnp.int32))
    wrong = wrong.at[wanted].add(miss).at[predicted].add(miss)
    seen = correct + wrong
    ratios = correct.astype(jnp.float32) / jnp.maximum(seen, 1).astype(jnp.float32)
    mean = jnp.sum(ratios) / jnp.sum(seen > 0).astype(jnp.float32)
    return mean.reshape(1) + sum(InMeanIou or (), jnp.float32(0)), wrong, correct


def _share(part: Array, rest: Array) -> jax.Array:
    """part / (part + rest), 1 if both are 0."""
    some = (part > 0) | (rest > 0)
    return jnp.where(some, part / jnp.where(some, part + rest, 1), 1)


def _metrics(states: Array) -> jax.Array:
    """Macro precision, recall, F1, and micro precision, recall, F1 of [classes, (TP, FP, TN, FN)],
    float64 [6].
    """
    hits, extra, missed = states[:, 0], states[:, 1], states[:, 3]
    found = []
    for precision, recall in (
        (jnp.mean(_share(hits, extra)), jnp.mean(_share(hits, missed))),
        (_share(hits.sum(), extra.sum()), _share(hits.sum(), missed.sum())),
    ):
        both = precision + recall
        found += [
            precision,
            recall,
            jnp.where(both > 0, 2 * precision * recall / jnp.where(both > 0, both, 1), 0),
        ]
    return jnp.stack(found).astype(jnp.float64)


@op(
    outs="BatchMetrics AccumMetrics AccumStatesInfo",
    rows=knows_rows(each=""),
    bounds=Bounds("Labels", "label", below("class_number")),
    refuses=within("Indices", "index", lambda inputs, attrs: attrs["class_number"]),
)
def precision_recall(
    MaxProbs: Array | Ragged, Indices: Array | Ragged, Labels: Array | Ragged, Weights: Array | Ragged | None, StatesInfo: Array | None, *,
    class_number: int,
):  # fmt: skip
    """BatchMetrics = (macro precision, recall, F1, micro precision, recall, F1) of this batch,
    float64 [6].

    Indices, Labels [N, 1] int32: predicted and true classes; Weights [N, 1]. AccumStatesInfo
    [class_number, 4]: the weights of true positives, false positives, true negatives and false
    negatives of each class, with those of StatesInfo; AccumMetrics are the metrics of these.
    """
    padded = counted(
        "precision_recall", MaxProbs=MaxProbs, Indices=Indices, Labels=Labels, Weights=Weights
    )
    guess, label = rows_of(Indices).reshape(-1), rows_of(Labels).reshape(-1)
    if guess.shape != label.shape:
        raise ShapeError(
            f"Indices {list(guess.shape)} and Labels {list(label.shape)} must be as many"
        )
    weight = (
        jnp.ones(guess.shape, MaxProbs.dtype) if Weights is None else rows_of(Weights).reshape(-1)
    )
    weight = weight if padded is None else jnp.where(padded.kept(), weight, 0)
    right = jnp.where(guess == label, weight, 0)
    wrong = jnp.where(guess == label, 0, weight)  # weight - right is nan for an infinite one
    nothing = jnp.zeros(class_number, weight.dtype)
    hits = nothing.at[guess].add(right)
    extra = nothing.at[guess].add(wrong)
    missed = nothing.at[label].add(wrong)
    states = jnp.stack([hits, extra, weight.sum() - hits - extra - missed, missed], 1)
    total = states if StatesInfo is None else states + StatesInfo
    return _metrics(states), _metrics(total), total
