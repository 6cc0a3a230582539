"""Losses that compare values with values: regression, ranking and margins."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import ShapeError
from .bounds import labels_of, size_of
from .broadcast import same_rows, same_shape
from .outside import within
from .ragged import Ragged, beside, counted, rows_of
from .registry import Array, Int64, grad_of, op
from .traits import FREE, Bounds, knows_rows, mixes, row_wise


@op(outs="Residual~ Out", rows=row_wise("X", "Y"))
def huber_loss(X: Array, Y: Array, *, delta: float) -> Any:
    """Out = 0.5 * r^2 where |r| <= delta, else delta * (|r| - 0.5 * delta); r = Residual = Y - X."""
    same_shape("huber_loss", X=X, Y=Y)
    residual = Y - X
    size = jnp.abs(residual)
    return residual, jnp.where(
        size <= delta, 0.5 * residual * residual, delta * (size - 0.5 * delta)
    )


@grad_of("huber_loss", "Residual")
def huber_loss_grad(Residual: Array, d_Out: Array, *, delta: float) -> Any:
    """Y@GRAD = Out@GRAD * min(max(Residual, -delta), delta) = -X@GRAD."""
    slope = jnp.where(jnp.abs(Residual) <= delta, Residual, jnp.where(Residual > 0, delta, -delta))
    return -d_Out * slope, d_Out * slope


@op(outs="Diff~ Out", rows=row_wise("X", "Y", "InsideWeight", "OutsideWeight", lod=None))
def smooth_l1_loss(
    X: Array,
    Y: Array,
    InsideWeight: Array | None,
    OutsideWeight: Array | None,
    *,
    sigma: float = 1.0,
) -> Any:
    """Out[i] = sum over the row of 0.5 * (sigma * d)^2 where |d| < 1 / sigma^2, else |d| - 0.5 /
    sigma^2; d = X - Y.

    InsideWeight multiplies d, OutsideWeight its loss. Out has shape [rows, 1].
    """
    same_shape("smooth_l1_loss", X=X, Y=Y)
    diff = X - Y if InsideWeight is None else (X - Y) * InsideWeight
    square = sigma * sigma
    cost = jnp.where(
        jnp.abs(diff) < 1 / square, 0.5 * square * diff * diff, jnp.abs(diff) - 0.5 / square
    )
    if OutsideWeight is not None:
        cost = cost * OutsideWeight
    return diff, cost.reshape(cost.shape[0], math.prod(cost.shape[1:])).sum(1, keepdims=True)


@grad_of("smooth_l1_loss", "Diff InsideWeight OutsideWeight", nograd="InsideWeight OutsideWeight")
def smooth_l1_loss_grad(
    Diff: Array,
    InsideWeight: Array | None,
    OutsideWeight: Array | None,
    d_Out: Array,
    *,
    sigma: float,
) -> Any:
    """X@GRAD = Out@GRAD * weights * (sigma^2 * Diff where |Diff| < 1 / sigma^2, else sign(Diff)) =
    -Y@GRAD.
    """
    square = sigma * sigma
    sign = (Diff > 0).astype(Diff.dtype) - (Diff < 0).astype(Diff.dtype)
    grad = jnp.where(jnp.abs(Diff) < 1 / square, square * Diff, sign)
    for weight in (InsideWeight, OutsideWeight):
        grad = grad if weight is None else grad * weight
    grad = grad * d_Out.reshape(Diff.shape[0], *[1] * (Diff.ndim - 1))
    return grad, -grad


@op(outs="Loss", grad="X Target", nograd="Target", rows=knows_rows(each=""))
def kldiv_loss(
    X: Array | Ragged, Target: Array | Ragged, *, reduction: str = "mean", log_target: bool = False
) -> Any:
    """Loss = Target * (log(Target) - X), 0 where Target <= 0; reduced by mean, sum, batchmean or
    not at all (none).

    log_target: Target holds logarithms.
    """
    padded = counted("kldiv_loss", X=X, Target=Target)
    x: Any = rows_of(X)
    target: Any = rows_of(Target)
    same_shape("kldiv_loss", X=x, Target=target)
    nothing = target <= 0
    loss = jnp.where(nothing, 0, target * (jnp.log(jnp.where(nothing, 1, target)) - x))
    loss = jnp.exp(target) * (target - x) if log_target else loss
    if reduction == "none":
        return beside(padded, loss)
    rows = loss.shape[0]
    if padded is not None:
        loss, rows = (
            jnp.where(padded.kept().reshape(-1, *[1] * (loss.ndim - 1)), loss, 0),
            padded.count,
        )
    if reduction == "mean":
        return (loss.sum() / (rows * math.prod(loss.shape[1:]))).astype(loss.dtype).reshape(1)
    if reduction not in ("sum", "batchmean"):
        raise ShapeError(f"kldiv_loss reduces by none, mean, sum or batchmean, not {reduction!r}")
    return (loss.sum() / (rows if reduction == "batchmean" else 1)).astype(loss.dtype).reshape(1)


def _tolerable(x: Any) -> Any:
    """Infinity replaced by 1e20, as in Paddle."""
    return jnp.where(x == jnp.inf, 1e20, x)


@op(outs="Y", rows=row_wise("X", "Label"), bounds=Bounds("Label", "label", size_of("X", -1)))
def bpr_loss(X: Array, Label: Array) -> Any:
    """Y = mean over the other classes j of log(1 + exp(X[j] - X[label])), infinite powers as 1e20;
    X [..., classes], Y [..., 1].
    """
    same_rows("bpr_loss", X=X, Label=Label)
    right = jnp.take_along_axis(X, Label.astype(jnp.int32), -1)
    cost = jnp.where(_others(X, Label), -jnp.log1p(_tolerable(jnp.exp(X - right))), 0)
    return -cost.sum(-1, keepdims=True) / (X.shape[-1] - 1)


def _others(x: Any, label: Any) -> Any:
    return jnp.arange(x.shape[-1]) != label


@grad_of("bpr_loss", "X Label", nograd="Label")
def bpr_loss_grad(X: Array, Label: Array, d_Y: Array) -> Any:
    """X@GRAD[j] = Y@GRAD / (classes - 1) / (1 + exp(X[label] - X[j])); X@GRAD[label] = minus the
    sum of the others.
    """
    right = jnp.take_along_axis(X, Label.astype(jnp.int32), -1)
    others = _others(X, Label)
    grad = jnp.where(others, d_Y / ((X.shape[-1] - 1) * (1 + _tolerable(jnp.exp(right - X)))), 0)
    return jnp.where(others, grad, -grad.sum(-1, keepdims=True))


@op(outs="Loss", rows=row_wise("Logits", "Labels"), bounds=FREE)
def hinge_loss(Logits: Array, Labels: Array) -> Any:
    """Loss = max(1 - (2 * Labels - 1) * Logits, 0)."""
    same_shape("hinge_loss", Logits=Logits, Labels=Labels)
    return jnp.maximum(1 - (2 * Labels - 1) * Logits, 0)


@grad_of("hinge_loss", "Logits Labels", nograd="Labels")
def hinge_loss_grad(Logits: Array, Labels: Array, d_Loss: Array) -> Any:
    """Logits@GRAD = -Loss@GRAD * (2 * Labels - 1) where (2 * Labels - 1) * Logits < 1, else 0."""
    side = 2 * Labels - 1
    return -d_Loss * side * (side * Logits < 1)


@op(
    outs="Out",
    grad="Label Left Right",
    nograd="Label",
    rows=row_wise("Label", "Left", "Right", lod=None),
    bounds=FREE,
)
def rank_loss(Label: Array, Left: Array, Right: Array) -> Any:
    """Out = log(1 + exp(Left - Right)) - Label * (Left - Right), of Label's shape; [N] and [N, 1]
    go together.
    """
    if not Label.size == Left.size == Right.size:
        shapes = [list(v.shape) for v in (Label, Left, Right)]
        raise ShapeError(
            f"rank_loss takes as many labels as pairs, not Label{shapes[0]}, Left{shapes[1]},"
            f" Right{shapes[2]}"
        )
    gap = Left.reshape(Label.shape) - Right.reshape(Label.shape)
    return jnp.logaddexp(gap, 0) - Label * gap


@op(outs="Activated~ Out", rows=row_wise("X1", "X2", "Label", lod=None), bounds=FREE)
def margin_rank_loss(X1: Array, X2: Array, Label: Array, *, margin: float = 0.0) -> Any:
    """Out = max(margin - Label * (X1 - X2), 0); Activated = 1 where Out > 0."""
    same_shape("margin_rank_loss", X1=X1, X2=X2, Label=Label)
    out = margin - Label * (X1 - X2)
    out = jnp.where(out > 0, out, 0)
    return (out > 0).astype(X1.dtype), out


@grad_of("margin_rank_loss", "Activated Label", nograd="Label")
def margin_rank_loss_grad(Activated: Array, Label: Array, d_Out: Array) -> Any:
    """X1@GRAD = -Out@GRAD * Activated * Label = -X2@GRAD."""
    grad = -d_Out * Activated * Label
    return grad, -grad


@op(outs="IntermediateVal~ Out", rows=row_wise("X", "Y", lod=None))
def modified_huber_loss(X: Array, Y: Array) -> Any:
    """Out = -4 v where v < -1, (1 - v)^2 where -1 <= v < 1, else 0; v = IntermediateVal = (2 * Y -
    1) * X.
    """
    same_shape("modified_huber_loss", X=X, Y=Y)
    value = (2 * Y - 1) * X
    return value, jnp.where(value < -1, -4 * value, jnp.where(value < 1, (1 - value) ** 2, 0))


@grad_of("modified_huber_loss", "IntermediateVal Y", nograd="Y")
def modified_huber_loss_grad(IntermediateVal: Array, Y: Array, d_Out: Array) -> Any:
    """X@GRAD = Out@GRAD * (2 * Y - 1) * (-4 where v < -1, -2 * (1 - v) where -1 <= v < 1, else 0)."""
    v = IntermediateVal
    return d_Out * (2 * Y - 1) * jnp.where(v < -1, -4, jnp.where(v < 1, -2 * (1 - v), 0))


@op(
    outs="Out Total_weight",
    grad="X Label Weight Total_weight",
    nograd="Label Weight",
    grad_outs="Out",
    rows=mixes(),
    bounds=Bounds("Label", "label", labels_of("X")),
)
def nll_loss(
    X: Array,
    Label: Array,
    Weight: Array | None,
    *,
    ignore_index: Int64 = -100,
    reduction: str = "mean",
) -> Any:
    """Out = -Weight[label] * X[label], 0 where ignored; reduced by mean (over the weights), sum or
    not (none).

    X [batch, classes] or [batch, classes, ...]; Total_weight is the sum of the weights, 0 without
    reduction.
    """
    kept = Label != ignore_index
    label = jnp.where(kept, Label, 0).astype(jnp.int32)
    weight = jnp.where(kept, 1.0 if Weight is None else jnp.asarray(Weight)[label], 0).astype(
        X.dtype
    )
    loss = jnp.where(kept, -weight * jnp.take_along_axis(X, label[:, None], 1)[:, 0], 0)
    total = weight.sum().reshape(1)
    if reduction == "none":
        return loss, jnp.zeros((1,), X.dtype)
    if reduction == "sum":
        return loss.sum().reshape(1), total
    return (loss.sum() / jnp.where(total == 0, 1, total)).reshape(1), total


@op(outs="sub_result~ Out", grad="X Y sub_result", grad_outs="Out", rows=row_wise("X", "Y"))
def squared_l2_distance(X: Array, Y: Array) -> Any:
    """Out[i] = sum((X[i] - Y[i])^2), shape [rows, 1]; Y may be a single row; sub_result = X - Y,
    [rows, elements].
    """
    rows = X.reshape(X.shape[0], math.prod(X.shape[1:])) - Y.reshape(
        Y.shape[0], math.prod(Y.shape[1:])
    )
    return rows, (rows * rows).sum(1, keepdims=True)


@op(outs="Y", rows=row_wise("X", "Label"), bounds=FREE)
def teacher_student_sigmoid_loss(
    X: Array, Label: Array, *, soft_max_up_bound: float = 15.0, soft_max_lower_bound: float = -15.0
) -> Any:
    """Y = s(0) for Label < -1, s(1) for -1 <= Label < 0, s(0) + s(Label) for 0 <= Label < 1, else
    s(1) + s(Label - 1).

    s(t) = max(X, 0) - X * t + log(1 + exp(-|X|)).
    """
    same_rows("teacher_student_sigmoid_loss", X=X, Label=Label)
    base = jnp.maximum(X, 0) + jnp.log1p(jnp.exp(-jnp.abs(X)))
    both = base + jnp.where(Label < 1, base - X * Label, base - X - X * (Label - 1))
    return jnp.where(Label < -1, base, jnp.where(Label < 0, base - X, both))


@grad_of("teacher_student_sigmoid_loss", "X Label", nograd="Label")
def teacher_student_sigmoid_loss_grad(
    X: Array, Label: Array, d_Y: Array, *, soft_max_up_bound: float, soft_max_lower_bound: float
) -> Any:
    """X@GRAD = -Y@GRAD * (label - sigmoid(clipped X)), the label 0, 1, or the teacher's; 0 where X
    is out of bounds.
    """
    clipped = jnp.clip(X, soft_max_lower_bound, soft_max_up_bound)
    guess = jax.nn.sigmoid(clipped)
    slope = jnp.where(Label < -1, -guess, jnp.where(Label < 0, 1 - guess, Label - 2 * guess))
    outside = (X >= soft_max_up_bound) | (X <= soft_max_lower_bound)
    return jnp.where(outside, 0, -d_Y * slope)


# smaller probabilities get the logarithm of this, in float64 too
_SMALLEST = float(np.finfo(np.float32).tiny)


def _focal_parts(X: Any, Label: Any, FgNum: Any, alpha: float) -> tuple[Any, Any, Any, Any, Any]:
    """p, log(p), log(1 - p), and the weights of a row's own class and of other classes."""
    foreground = jnp.maximum(FgNum.reshape(()), 1).astype(X.dtype)
    p = jax.nn.sigmoid(X)
    positive = X >= 0
    log_miss = -X * positive - jnp.log1p(jnp.exp(X - 2 * X * positive))
    hit = Label == jnp.arange(1, X.shape[1] + 1)
    miss = (Label != -1) & ~hit
    return (
        p,
        jnp.log(jnp.where(p > _SMALLEST, p, _SMALLEST)),
        log_miss,
        hit * alpha / foreground,
        miss * (1 - alpha) / foreground,
    )


@op(
    outs="Out",
    rows=row_wise("X", "Label"),
    bounds=FREE,
    refuses=within(
        "Label", "label", lambda inputs, attrs: rows_of(inputs["X"]).shape[1] + 1, low=-1
    ),
)
def sigmoid_focal_loss(
    X: Array, Label: Array, FgNum: Array, *, gamma: float = 2.0, alpha: float = 0.25
) -> Any:
    """Out = focal loss of class j+1 against the rest, over FgNum: X [rows, classes], Label [rows,
    1], 0 is background.

    -alpha / fg * (1 - p)^gamma * log(p) where Label == j + 1, -(1 - alpha) / fg * p^gamma * log(1 -
    p) otherwise, 0 for Label -1; p = sigmoid(X), fg = max(FgNum, 1).
    """
    same_rows("sigmoid_focal_loss", X=X, Label=Label)
    p, log_hit, log_miss, hit, miss = _focal_parts(X, Label, FgNum, alpha)
    return 0 - hit * (1 - p) ** gamma * log_hit - miss * p**gamma * log_miss


@grad_of("sigmoid_focal_loss", "X Label FgNum", nograd="Label FgNum")
def sigmoid_focal_loss_grad(
    X: Array, Label: Array, FgNum: Array, d_Out: Array, *, gamma: float, alpha: float
) -> Any:
    """X@GRAD = -Out@GRAD / fg * alpha * (1 - p)^gamma * (1 - p - gamma * p * log(p)) where Label ==
    j + 1,

    -Out@GRAD / fg * (1 - alpha) * p^gamma * (gamma * (1 - p) * log(1 - p) - p) otherwise, 0 for
    Label -1.
    """
    p, log_hit, log_miss, hit, miss = _focal_parts(X, Label, FgNum, alpha)
    of_hit = hit * (1 - p) ** gamma * (1 - p - gamma * p * log_hit)
    return -d_Out * (of_hit + miss * p**gamma * (gamma * (1 - p) * log_miss - p))
