"""softmax and the classification losses, which usually end a network.

Labels are class numbers of shape [..., 1] (hard) or distributions over the classes (soft). A label
equal to `ignore_index` gives loss 0 and no gradient. Whether fed labels are in range is checked on
the host (feeds/feeding.py).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import ShapeError
from .bounds import classes
from .broadcast import same_shape
from .concrete import numbers_of
from .conditions import absent, attribute, both, inner_axis, unset
from .infer import Spec
from .math import fits
from .registry import Array, grad_of, op
from .traits import FREE, Bounds, row_wise

MAX_LOG = 1e20  # Paddle's TolerableValue: the value of an infinite logarithm
LOWEST = -64.0  # 1.8.5's softmax clips logits this far below the greatest


def _axis_last(labels: Any, axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise ShapeError(f"axis {axis} is not one of the {ndim} dimensions")
    return axis % ndim


def _index(label: Any, axis: int, ignore: int) -> Any:
    """Hard labels as valid gather indices: ignored ones point to class 0."""
    return jnp.where(label == ignore, 0, label).astype(jnp.int32)


def _pick(x: Any, label: Any, axis: int, ignore: int) -> Any:
    """x at the label along `axis`, which keeps size 1. Raises ShapeError if one label would serve
    several rows.
    """
    each = tuple(1 if i == axis % x.ndim else n for i, n in enumerate(x.shape))
    if label.shape != each:
        raise ShapeError(
            f"labels of shape {list(label.shape)} are not one for each row of {list(x.shape)},"
            f" which takes {list(each)}"
        )
    at, count = _index(label, axis, ignore), x.shape[axis]
    # clipped here, because jax 0.10.0 clips in the derivative with another dtype unless the caller
    # enables x64
    at = jnp.clip(jnp.where(at < 0, at + count, at), 0, count - 1)
    return jnp.take_along_axis(x, at, axis, mode="promise_in_bounds")


def _shifted(x: Any, axis: int) -> Any:
    """x - max(x) along `axis`, at least -64, so that no probability is zero and no loss infinite.
    Empty for an empty x.
    """
    if not x.size:
        return x
    return jnp.maximum(x - jnp.max(x, axis, keepdims=True), LOWEST)


@op(
    outs="Out",
    rows=row_wise("X", when=both(inner_axis("axis"), unset("flatten"))),
)
def softmax(
    X: Array, *, axis: int = -1, data_format: str = "AnyLayout", is_test: bool = False
) -> Any:
    """Out = exp(D) / sum of exp(D) along `axis`, where D = max(X - max(X), -64)."""
    power = jnp.exp(_shifted(X, axis))
    return power / jnp.sum(power, axis, keepdims=True)


@grad_of("softmax", "Out")
def softmax_grad(Out: Array, d_Out: Array, *, axis: int) -> Any:
    """X@GRAD = Out * (Out@GRAD - sum of Out * Out@GRAD along `axis`)."""
    return Out * (d_Out - jnp.sum(Out * d_Out, axis, keepdims=True))


def _tolerable_log(x: Any) -> Any:
    """log(x), finite as in Paddle."""
    return jnp.clip(jnp.log(x), -MAX_LOG, MAX_LOG)


def _each_has_a_label(X: Spec, Label: Spec, soft_label: bool) -> None:
    """Raises ShapeError if the labels do not match the rows, as far as sizes are known."""
    each = X.shape if soft_label else (*X.shape[:-1], 1)
    if not 0 <= len(each) - Label.ndim <= (not soft_label) or not all(map(fits, each, Label.shape)):
        raise ShapeError(
            f"labels of shape {list(Label.shape)} are not one for each row of {list(X.shape)},"
            f" which takes {list(each)}"
        )


def _infer_cross_entropy(X: Spec, Label: Spec, *, soft_label: bool, ignore_index: int) -> Spec:
    _each_has_a_label(X, Label, soft_label)
    return Spec(_rows_shape(X, Label), X.dtype)


def _rows_shape(x: Any, label: Any) -> tuple[int, ...]:
    """Shape of the losses: [..., 1], or [...] if hard labels lack the 1."""
    return (*x.shape[:-1], 1) if label.ndim == x.ndim else tuple(x.shape[:-1])


@op(
    outs="Y",
    infer=_infer_cross_entropy,
    rows=row_wise("X", "Label"),
    bounds=Bounds("Label", "label", classes("X")),
)
def cross_entropy(
    X: Array, Label: Array, *, soft_label: bool = False, ignore_index: int = -100
) -> Any:
    """Y = -log(X[label]) for hard labels, -sum(Label * log(X)) for soft ones; X [..., classes], Y
    of hard Label's shape or [..., 1].
    """
    if soft_label:
        same_shape("cross_entropy", X=X, Label=Label)
        return -jnp.sum(Label * _tolerable_log(X), -1, keepdims=True)
    label = _hard(X, Label)
    loss = jnp.where(label == ignore_index, 0, -_tolerable_log(_pick(X, label, -1, ignore_index)))
    return loss.astype(X.dtype).reshape(_rows_shape(X, Label))


@grad_of("cross_entropy", "X Label", nograd="Label")
def cross_entropy_grad(
    X: Array, Label: Array, d_Y: Array, *, soft_label: bool, ignore_index: int
) -> Any:
    """X@GRAD = -Y@GRAD * Label / X; hard labels count as one-hot rows, ignored ones as zeros."""
    upstream = d_Y.reshape(*X.shape[:-1], 1)
    if soft_label:
        return -upstream * Label / X
    label = _hard(X, Label)
    hit = (jnp.arange(X.shape[-1]) == label) & (label != ignore_index)
    slope = -upstream / _pick(X, label, -1, ignore_index)  # one division per row, not per class
    return jnp.where(hit, slope, 0).astype(X.dtype)


def _hard(x: Any, label: Any) -> Any:
    """Hard labels with a trailing dimension of 1."""
    return label if label.ndim == x.ndim else label[..., None]


def _cross_entropy2_specs(X: Spec, Label: Spec, *, ignore_index: int) -> tuple[Spec, Spec, Spec]:
    _each_has_a_label(X, Label, soft_label=False)
    return (
        Spec(_rows_shape(X, Label), X.dtype),
        Spec((*X.shape, 0), X.dtype),
        Spec((*X.shape[:-1], 1), X.dtype),
    )


@op(
    outs="Y XShape MatchX",
    infer=_cross_entropy2_specs,
    rows=row_wise("X", "Label", outs="Y MatchX", shared="Y"),
    bounds=Bounds("Label", "label", classes("X")),
)
def cross_entropy2(X: Array, Label: Array, *, ignore_index: int = -100) -> Any:
    """Y = -log(MatchX), MatchX = X[label], both 0 where ignored; X [..., classes], MatchX [..., 1],
    Y of Label's shape, XShape empty.
    """
    label = _hard(X, Label)
    match = _pick(X, label, -1, ignore_index)
    kept = label != ignore_index
    loss, match = (jnp.where(kept, v, 0).astype(X.dtype) for v in (-_tolerable_log(match), match))
    return (
        loss.reshape(_rows_shape(X, Label)),
        numbers_of(X.shape).zeros((*X.shape, 0), X.dtype),
        match,
    )


@grad_of(
    "cross_entropy2",
    "Label MatchX XShape",
    nograd="Label",
    grad_outs="Y",
    grad_type="cross_entropy_grad2",
)
def cross_entropy_grad2(
    Label: Array, MatchX: Array, XShape: Array, d_Y: Array, *, ignore_index: int
) -> Any:
    """X@GRAD[label] = -Y@GRAD / MatchX, 0 elsewhere."""
    shape = XShape.shape[:-1]
    label = Label if Label.ndim == len(shape) else Label[..., None]
    value = (-d_Y.reshape(MatchX.shape) / MatchX).reshape(label.shape)
    hit = (jnp.arange(shape[-1]) == label) & (label != ignore_index)
    return jnp.where(hit, value, 0).astype(d_Y.dtype)


def _cross_entropy_spec(Logits: Any, Label: Any, *, soft_label: bool, axis: int, **_: Any) -> Any:
    at = _axis_last(Label, axis, Logits.ndim)
    each = tuple(1 if i == at else n for i, n in enumerate(Logits.shape))
    fits = (
        Label == Logits if soft_label else Label.shape == each and Label.dtype in ("int32", "int64")
    )
    return (Logits, Logits.like(*each)) if fits and Logits.dtype in ("float32", "float64") else None


@op(
    outs="Softmax~ Loss",
    infer=_cross_entropy_spec,
    rows=row_wise("Logits", "Label", when=inner_axis("axis", "Logits"), shared="Softmax Loss"),
    bounds=Bounds("Label", "label", classes("Logits")),
)
def softmax_with_cross_entropy(
    Logits: Array, Label: Array, *, soft_label: bool = False, ignore_index: int = -100,
    numeric_stable_mode: bool = True, axis: int = -1, use_softmax: bool = True,
) -> Any:  # fmt: skip
    """Loss = -log(Softmax[label]), or -sum(Label * log(Softmax)) for soft labels; Softmax =
    softmax(Logits, axis).

    Without use_softmax, Logits are already probabilities, and Softmax equals them.
    """
    at = _axis_last(Label, axis, Logits.ndim)
    if soft_label:
        same_shape("softmax_with_cross_entropy", Logits=Logits, Label=Label)
    if not use_softmax:
        return Logits, _of_probabilities(Logits, Label, at, soft_label, ignore_index)
    shifted = _shifted(Logits, at)
    power = jnp.exp(shifted)
    total = jnp.sum(power, at, keepdims=True)
    probability, log_total = power / total, jnp.log(total)
    if soft_label:
        return probability, -jnp.sum(Label * (shifted - log_total), at, keepdims=True)
    loss = -(_pick(shifted, Label, at, ignore_index) - log_total)
    return probability, jnp.where(Label == ignore_index, 0, loss)


def _of_probabilities(x: Any, label: Any, at: int, soft: bool, ignore: int) -> Any:
    """-log(x) at hard labels, or its sum weighted by soft ones."""
    if soft:
        return -jnp.sum(label * _tolerable_log(x), at, keepdims=True)
    return jnp.where(label == ignore, 0, -_tolerable_log(_pick(x, label, at, ignore)))


@grad_of("softmax_with_cross_entropy", "Label Softmax", nograd="Label", grad_outs="Loss")
def softmax_with_cross_entropy_grad(
    Label: Array,
    Softmax: Array,
    d_Loss: Array,
    *,
    soft_label: bool,
    ignore_index: int,
    axis: int,
    use_softmax: bool,
) -> Any:
    """Logits@GRAD = Loss@GRAD * (Softmax - Label), with hard labels one-hot.

    Without use_softmax, it is -Loss@GRAD * Label / Softmax.
    """
    if not use_softmax:
        at = axis % Softmax.ndim
        return jax.vjp(
            lambda x: _of_probabilities(x, Label, at, soft_label, ignore_index), Softmax
        )[1](d_Loss)[0]
    if soft_label:
        return d_Loss * (Softmax - Label)
    at = axis % Softmax.ndim
    classes = jnp.arange(Softmax.shape[at]).reshape(
        [-1 if i == at else 1 for i in range(Softmax.ndim)]
    )
    grad = d_Loss * (Softmax - (classes == Label))
    return jnp.where(Label == ignore_index, 0, grad).astype(Softmax.dtype)


def _kept(label: Any, ignore: int, normalize: bool) -> tuple[Any, Any]:
    """Which labels count, and the divisor."""
    kept = label != ignore
    return kept, (
        jnp.maximum(jnp.sum(jnp.abs(label - ignore) > 1e-6), 1).astype(label.dtype)
        if normalize
        else 1
    )


@op(
    outs="Out",
    rows=row_wise(
        "X", "Label", when=both(absent("pos_weight"), attribute("normalize", lambda v: not v))
    ),
    bounds=FREE,
)
def sigmoid_cross_entropy_with_logits(
    X: Array,
    Label: Array,
    pos_weight: Array | None,
    *,
    normalize: bool = False,
    ignore_index: int = -100,
) -> Any:
    """Out = max(X, 0) - X * Label + log(1 + exp(-|X|)); 0 where Label is ignore_index, over the
    count of others if normalize.

    pos_weight (later Paddles; X's shape): Out = (1 - Label) * X + pos_weight * log(1 + exp(-X)), as
    in their kernel.
    """
    same_shape("sigmoid_cross_entropy_with_logits", X=X, Label=Label)
    kept, count = _kept(Label, ignore_index, normalize)
    loss = jnp.maximum(X, 0) - X * Label + jnp.log1p(jnp.exp(-jnp.abs(X)))
    if pos_weight is not None:
        loss = (1 - Label) * X + pos_weight * (jnp.maximum(-X, 0) + jnp.log1p(jnp.exp(-jnp.abs(X))))
    return jnp.where(kept, loss, 0) / count


@grad_of("sigmoid_cross_entropy_with_logits", "X Label pos_weight", nograd="Label pos_weight")
def sigmoid_cross_entropy_with_logits_grad(
    X: Array,
    Label: Array,
    pos_weight: Array | None,
    d_Out: Array,
    *,
    normalize: bool,
    ignore_index: int,
) -> Any:
    """X@GRAD = Out@GRAD * (sigmoid(X) - Label); 0 where Label is ignore_index, over the count of
    others if normalize.
    """
    kept, count = _kept(Label, ignore_index, normalize)
    power = jnp.exp(-jnp.abs(X))  # the loss contains it too, so a step computes it once
    slope = jnp.where(X >= 0, 1, power) / (1 + power) - Label
    if pos_weight is not None:
        slope = 1 - Label - pos_weight * jax.nn.sigmoid(-X)
    return jnp.where(kept, d_Out * slope, 0) / count


@op(
    outs="Loss",
    grad="Predicted Labels",
    nograd="Labels",
    rows=row_wise("Predicted", "Labels"),
    bounds=FREE,
)
def log_loss(Predicted: Array, Labels: Array, *, epsilon: float) -> Any:
    """Loss = -Labels * log(Predicted + epsilon) - (1 - Labels) * log(1 - Predicted + epsilon)."""
    same_shape("log_loss", Predicted=Predicted, Labels=Labels)
    # otherwise XLA computes (1 + epsilon) - Predicted, which is not 0 at 1
    rest = jax.lax.optimization_barrier(1 - Predicted)
    return -Labels * jnp.log(Predicted + epsilon) - (1 - Labels) * jnp.log(rest + epsilon)


@op(outs="Out", rows=row_wise("X", "Label"), bounds=FREE)
def bce_loss(X: Array, Label: Array) -> Any:
    """Out = -Label * log(X) - (1 - Label) * log(1 - X), with logarithms of at least -100."""
    same_shape("bce_loss", X=X, Label=Label)
    return (Label - 1) * jnp.maximum(jnp.log(1 - X), -100) - Label * jnp.maximum(jnp.log(X), -100)


@grad_of("bce_loss", "X Label", nograd="Label")
def bce_loss_grad(X: Array, Label: Array, d_Out: Array) -> Any:
    """X@GRAD = Out@GRAD * (X - Label) / max(X * (1 - X), 1e-12)."""
    return d_Out * (X - Label) / jnp.maximum(X * (1 - X), 1e-12)


def _label_smooth_specs(X: Spec, PriorDist: Spec | None, *, epsilon: float) -> Spec:
    return X


@op(outs="Out", infer=_label_smooth_specs, rows=row_wise("X"))
def label_smooth(X: Array, PriorDist: Array | None, *, epsilon: float = 0.0) -> Any:
    """Out = (1 - epsilon) * X + epsilon * PriorDist; without PriorDist, + epsilon / classes."""
    prior = 1 / X.shape[-1] if PriorDist is None else PriorDist.reshape(-1)
    return _rest(epsilon) * X + epsilon * prior


@grad_of("label_smooth", "", nograd="PriorDist")
def label_smooth_grad(d_Out: Array, *, epsilon: float) -> Any:
    """X@GRAD = (1 - epsilon) * Out@GRAD."""
    return _rest(epsilon) * d_Out


def _rest(epsilon: float) -> float:
    """1 - epsilon, rounded to float32 as in Paddle, whatever X is."""
    return float(np.float32(1) - np.float32(epsilon))
