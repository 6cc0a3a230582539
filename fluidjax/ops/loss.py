"""softmax and the classification losses: what networks usually end with.

Labels are class numbers of shape [..., 1] (hard) or distributions over the classes (soft). A label equal to
`ignore_index` gives loss 0 and no gradient. Whether fed labels are in range is checked on the host (feeding.py).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import ShapeError
from .bounds import classes
from .conditions import attribute, both, inner_axis, unset
from .infer import Spec
from .registry import Array, grad_of, op
from .traits import FREE, Bounds, row_wise

MAX_LOG = 1e20  # Paddle's TolerableValue: what stands for an infinite logarithm


def _axis_last(labels: Any, axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise ShapeError(f"axis {axis} is not one of the {ndim} dimensions")
    return axis % ndim


def _index(label: Any, axis: int, ignore: int) -> Any:
    """Hard labels as indices that may be gathered: the ignored ones point at class 0."""
    return jnp.where(label == ignore, 0, label).astype(jnp.int32)


def _pick(x: Any, label: Any, axis: int, ignore: int) -> Any:
    """x at the label along `axis`, which keeps size 1."""
    return jnp.take_along_axis(x, _index(label, axis, ignore), axis, mode="clip")


@op(outs="Out", rows=row_wise("X", when=both(inner_axis("axis"), unset("flatten"))))
def softmax(X: Array, *, axis: int = -1, data_format: str = "AnyLayout", is_test: bool = False) -> Any:
    """Out = exp(X) / sum of exp(X) along `axis`."""
    return jax.nn.softmax(X, axis)


@grad_of("softmax", "Out")
def softmax_grad(Out: Array, d_Out: Array, *, axis: int) -> Any:
    """X@GRAD = Out * (Out@GRAD - sum of Out * Out@GRAD along `axis`)."""
    return Out * (d_Out - jnp.sum(Out * d_Out, axis, keepdims=True))


def _tolerable_log(x: Any) -> Any:
    """log(x), kept finite as Paddle keeps it."""
    return jnp.clip(jnp.log(x), -MAX_LOG, MAX_LOG)


@op(
    outs="Y", grad="X Label", nograd="Label",
    rows=row_wise("X", "Label"), bounds=Bounds("Label", "label", classes("X")),
)
def cross_entropy(X: Array, Label: Array, *, soft_label: bool = False, ignore_index: int = -100) -> Any:
    """Y = -log(X[label]) for hard labels, -sum(Label * log(X)) for soft ones; X [..., classes], Y [..., 1]."""
    if soft_label:
        return -jnp.sum(Label * _tolerable_log(X), -1, keepdims=True)
    label = _hard(X, Label)
    return jnp.where(label == ignore_index, 0, -_tolerable_log(_pick(X, label, -1, ignore_index))).astype(X.dtype)


def _hard(x: Any, label: Any) -> Any:
    """Hard labels with the trailing 1 that they may lack."""
    return label if label.ndim == x.ndim else label[..., None]


def _cross_entropy2_specs(X: Spec, Label: Spec, *, ignore_index: int) -> tuple[Spec, Spec, Spec]:
    column = Spec((*X.shape[:-1], 1), X.dtype)
    return column, Spec((*X.shape, 0), X.dtype), column


@op(
    outs="Y XShape MatchX", infer=_cross_entropy2_specs,
    rows=row_wise("X", "Label", outs="Y MatchX", shared="Y"), bounds=Bounds("Label", "label", classes("X")),
)
def cross_entropy2(X: Array, Label: Array, *, ignore_index: int = -100) -> Any:
    """Y = -log(MatchX), MatchX = X[label]; X [..., classes], Y and MatchX [..., 1], XShape empty, of shape [..., classes, 0]."""
    label = _hard(X, Label)
    match = _pick(X, label, -1, ignore_index)
    ignored = label == ignore_index
    loss = jnp.where(ignored, 0, -_tolerable_log(match)).astype(X.dtype)
    return loss, np.zeros((*X.shape, 0), X.dtype), jnp.where(ignored, 1, match).astype(X.dtype)


@grad_of("cross_entropy2", "Label MatchX XShape", nograd="Label", grad_outs="Y", grad_type="cross_entropy_grad2")
def cross_entropy_grad2(Label: Array, MatchX: Array, XShape: Array, d_Y: Array, *, ignore_index: int) -> Any:
    """X@GRAD[label] = -Y@GRAD / MatchX, 0 elsewhere."""
    shape = XShape.shape[:-1]
    label = Label if Label.ndim == len(shape) else Label[..., None]
    value = jnp.where(label == ignore_index, 0, -d_Y.reshape(MatchX.shape) / MatchX)
    return jnp.where(jnp.arange(shape[-1]) == label, value, 0).astype(d_Y.dtype)


@op(
    outs="Softmax~ Loss",
    rows=row_wise("Logits", "Label", when=inner_axis("axis", "Logits"), shared="Softmax Loss"),
    bounds=Bounds("Label", "label", classes("Logits")),
)
def softmax_with_cross_entropy(
    Logits: Array, Label: Array, *, soft_label: bool = False, ignore_index: int = -100,
    numeric_stable_mode: bool = True, axis: int = -1,
) -> Any:  # fmt: skip
    """Loss = -log(Softmax[label]), or -sum(Label * log(Softmax)) for soft labels; Softmax = softmax(Logits, axis)."""
    at = _axis_last(Label, axis, Logits.ndim)
    log_probability = jax.nn.log_softmax(Logits, at)
    probability = jnp.exp(log_probability)
    if soft_label:
        return probability, -jnp.sum(Label * log_probability, at, keepdims=True)
    loss = -_pick(log_probability, Label, at, ignore_index)
    return probability, jnp.where(Label == ignore_index, 0, loss)


@grad_of("softmax_with_cross_entropy", "Label Softmax", nograd="Label", grad_outs="Loss")
def softmax_with_cross_entropy_grad(
    Label: Array, Softmax: Array, d_Loss: Array, *, soft_label: bool, ignore_index: int, axis: int
) -> Any:
    """Logits@GRAD = Loss@GRAD * (Softmax - Label), the label one-hot where it is hard."""
    if soft_label:
        return d_Loss * (Softmax - Label)
    at = axis % Softmax.ndim
    classes = jnp.arange(Softmax.shape[at]).reshape([-1 if i == at else 1 for i in range(Softmax.ndim)])
    grad = d_Loss * (Softmax - (classes == Label))
    return jnp.where(Label == ignore_index, 0, grad).astype(Softmax.dtype)


@op(
    outs="Out", grad="X Label", nograd="Label",
    rows=row_wise("X", "Label", when=attribute("normalize", lambda v: not v)), bounds=FREE,
)
def sigmoid_cross_entropy_with_logits(X: Array, Label: Array, *, normalize: bool = False, ignore_index: int = -100) -> Any:
    """Out = max(X, 0) - X * Label + log(1 + exp(-|X|)); 0 where Label is ignore_index, over the count of others if normalize."""
    kept = Label != ignore_index
    loss = jnp.where(kept, jnp.maximum(X, 0) - X * Label + jnp.log1p(jnp.exp(-jnp.abs(X))), 0)
    return loss / jnp.maximum(kept.sum(), 1).astype(X.dtype) if normalize else loss


@op(outs="Loss", grad="Predicted Labels", nograd="Labels", rows=row_wise("Predicted", "Labels"), bounds=FREE)
def log_loss(Predicted: Array, Labels: Array, *, epsilon: float) -> Any:
    """Loss = -Labels * log(Predicted + epsilon) - (1 - Labels) * log(1 - Predicted + epsilon)."""
    return -Labels * jnp.log(Predicted + epsilon) - (1 - Labels) * jnp.log(1 - Predicted + epsilon)


@op(outs="Out", grad="X Label", nograd="Label", rows=row_wise("X", "Label"), bounds=FREE)
def bce_loss(X: Array, Label: Array) -> Any:
    """Out = -Label * log(X) - (1 - Label) * log(1 - X), logarithms no less than -100."""
    return -Label * jnp.maximum(jnp.log(X), -100) - (1 - Label) * jnp.maximum(jnp.log(1 - X), -100)


def _label_smooth_specs(X: Spec, PriorDist: Spec | None, *, epsilon: float) -> Spec:
    return X


@op(outs="Out", infer=_label_smooth_specs, rows=row_wise("X"))
def label_smooth(X: Array, PriorDist: Array | None, *, epsilon: float = 0.0) -> Any:
    """Out = (1 - epsilon) * X + epsilon * PriorDist; without PriorDist, + epsilon / classes."""
    prior = 1 / X.shape[-1] if PriorDist is None else PriorDist.reshape(-1)
    return (1 - epsilon) * X + epsilon * prior


@grad_of("label_smooth", "", nograd="PriorDist")
def label_smooth_grad(d_Out: Array, *, epsilon: float) -> Any:
    """X@GRAD = (1 - epsilon) * Out@GRAD."""
    return (1 - epsilon) * d_Out
