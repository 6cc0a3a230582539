"""Connectionist temporal classification: the loss (warpctc) and the labels of a best path
(ctc_align).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet
from . import loops
from .checking import Objection
from .infer import Spec
from .outside import outside
from .ragged import Ragged, chosen, mask, pack, rows_of, sequences_of, view
from .registry import Array, grad_of, op
from .traits import FREE, knows_rows

LOW = -1e30  # the log of 0, finite so that a difference of two is not nan


def _align_specs(Input: Spec, InputLength: Spec | None, **_: Any) -> tuple[Spec, Spec]:
    if InputLength is None:
        return Spec((-1, 1), Input.dtype), Spec((-1, 1), Input.dtype)
    return Input, Spec((Input.shape[0], 1), InputLength.dtype)


def _says(ids: Any, before: Any, begins: Any, blank: int, merge: bool) -> Any:
    """Which ids count: no blanks and, if `merge`, only the first of a run of equal ids (`before`:
    the previous ids).
    """
    new = begins | (ids != before) if merge else jnp.ones_like(begins)
    return new & (ids != blank)


@op(outs="Output OutputLength?", infer=_align_specs, rows=knows_rows(by_offsets=True), bounds=FREE)
def ctc_align(
    Input: Array | Ragged,
    InputLength: Array | None,
    *,
    blank: int = 0,
    merge_repeated: bool = True,
    padding_value: int = 0,
):
    """Output = each sequence of Input without blanks; merge_repeated reduces a run of equal ids to
    one.

    Input [rows, 1], one LoD level; sequences may become empty. Or [N, T] with InputLength [N, 1]:
    Output [N, T], padding_value after the end, and OutputLength [N, 1].
    """
    if InputLength is None:
        return (
            _align_rows(sequences_of("ctc_align", "Input", Input, 1), blank, merge_repeated),
            None,
        )
    if isinstance(Input, Ragged):
        raise EnforceNotMet(
            "input Input of op 'ctc_align' has a LoD and an InputLength; it takes one of them"
        )
    steps = Input.shape[1]
    at = jnp.arange(steps, dtype=jnp.int32)
    alive = at < InputLength.reshape(-1, 1)
    keep = alive & _says(Input, jnp.roll(Input, 1, 1), at == 0, blank, merge_repeated)
    place = jnp.where(keep, jnp.cumsum(keep, 1) - 1, steps)
    out = jnp.full(Input.shape, padding_value, Input.dtype)
    out = out.at[jnp.arange(Input.shape[0])[:, None], place].set(Input, mode="drop")
    return out, jnp.sum(keep, 1, keepdims=True).astype(InputLength.dtype)


def _align_rows(x: Ragged, blank: int, merge: bool) -> Ragged:
    ids = x.rows.reshape(-1)
    if ids.shape[0] != x.capacity:
        raise EnforceNotMet(
            f"op 'ctc_align' takes one id a row, not Input of shape {list(x.rows.shape)}"
        )
    if not x.capacity or not x.sequences:
        return x
    at = jnp.arange(x.capacity, dtype=jnp.int32)
    begins = at == x.offsets[0][jnp.minimum(x.sequence(), x.sequences - 1)]
    return chosen(x, _says(ids, jnp.roll(ids, 1), begins, blank, merge))


# -- the loss --------------------------------------------------------------------------------------


def _ctc_specs(
    Logits: Spec, Label: Spec, LogitsLength: Spec | None, LabelLength: Spec | None, **_: Any
) -> tuple[Spec, Spec]:
    count = -1 if LogitsLength is None else Logits.shape[1]
    return Spec((-1, count, Logits.shape[-1]), Logits.dtype), Spec((count, 1), Logits.dtype)


def _beyond(inputs: Mapping[str, Any], attrs: Mapping[str, Any]) -> Iterator[Objection]:
    """Labels that count but are not a class, and lengths that exceed the input."""
    logits, label, steps, length = (
        inputs.get(s) for s in ("Logits", "Label", "LogitsLength", "LabelLength")
    )
    if length is None or steps is None:
        yield from outside("label", label, 0, rows_of(logits).shape[-1])
        return
    labels = label.reshape(label.shape[0], -1)
    behind = np.arange(labels.shape[1], dtype=np.int32) >= length.reshape(-1, 1)
    yield from outside("label", labels, 0, logits.shape[-1], behind)
    yield from outside("LogitsLength", steps, 0, logits.shape[0] + 1)
    yield from outside("LabelLength", length, 0, labels.shape[1] + 1)


@op(outs="WarpCTCGrad~ Loss", infer=_ctc_specs, rows=knows_rows(), bounds=FREE, refuses=_beyond)
def warpctc(
    Logits: Array | Ragged,
    Label: Array | Ragged,
    LogitsLength: Array | None,
    LabelLength: Array | None,
    *,
    blank: int = 0,
    norm_by_times: bool = False,
):
    """Loss[n] = -log of the summed probability of all paths for Label[n], by softmax(Logits) at
    each step. [N, 1].

    Logits [rows, classes] and Label [rows, 1], one LoD level; or Logits [T, N, classes] and Label
    [N, L] with their lengths. Loss is 0 if a label is too long for its sequence. WarpCTCGrad [T, N,
    classes] = d(sum of Loss) / d(Logits). norm_by_times divides the gradient, not the loss, by the
    number of steps.
    """
    cells, alive = _steps(Logits, LogitsLength)
    labels, sizes = _labels(Label, LabelLength)
    classes = cells.shape[-1]
    if not 0 <= blank < classes:
        raise EnforceNotMet(f"op 'warpctc' takes a blank from 0 to {classes - 1}, not {blank}")

    def total(cells: Any) -> tuple[Any, Any]:
        loss = _loss(cells, alive, labels, sizes, blank)
        return jnp.sum(loss), loss

    grad, loss = jax.grad(total, has_aux=True)(cells)
    return grad, loss[:, None]


def _steps(logits: Any, length: Any) -> tuple[Any, Any]:
    """[T, N, classes] and which cells count [T, N]."""
    if length is None:
        x = sequences_of("warpctc", "Logits", logits, 1)
        return jnp.swapaxes(view(x), 0, 1), mask(x).T
    return logits, jnp.arange(logits.shape[0], dtype=jnp.int32)[:, None] < length.reshape(1, -1)


def _labels(label: Any, length: Any) -> tuple[Any, Any]:
    """[N, L] and how many count [N]."""
    if length is None:
        x = sequences_of("warpctc", "Label", label, 1)
        return view(x).reshape(x.sequences, -1), x.lengths
    return label.reshape(label.shape[0], -1), length.reshape(-1).astype(np.int32)


def _loss(cells: Any, alive: Any, labels: Any, sizes: Any, blank: int) -> Any:
    """The loss of each sequence, by the forward probabilities of the labels with blanks between and
    around them.
    """
    count, longest = labels.shape
    states = 2 * longest + 1
    extended = jnp.full((count, states), blank, labels.dtype).at[:, 1::2].set(labels)
    at = jnp.arange(states)
    two_back = jnp.roll(extended, 2, 1)
    may_skip = (at >= 2) & (at % 2 == 1) & (extended != two_back)
    scores = jax.nn.log_softmax(cells, -1)
    emitted = jnp.take_along_axis(
        scores, jnp.broadcast_to(extended, (cells.shape[0], count, states)), -1, mode="clip"
    )
    # as if a blank preceded the first step
    before = jnp.full((count, states), LOW, cells.dtype).at[:, 0].set(0)

    def forward(state: Any, given: Any) -> tuple[Any, None]:
        alpha, first = state
        row, keep = given
        one = jnp.where(at >= 1, jnp.roll(alpha, 1, 1), LOW)
        two = jnp.where(may_skip, jnp.roll(alpha, 2, 1), LOW)
        new = jax.nn.logsumexp(jnp.stack([alpha, one, two]), 0) + row
        new = jnp.where(first[:, None], jnp.where(at < 2, row, LOW), new)
        return (jnp.where(keep[:, None], jnp.maximum(new, LOW), alpha), first & ~keep), None

    (last, unread), _ = loops.scan(forward, (before, jnp.ones((count,), bool)), (emitted, alive))
    ends = jnp.stack([2 * sizes, jnp.maximum(2 * sizes - 1, 0)], 1)
    found = jnp.take_along_axis(last, ends, 1)
    found = jnp.where(jnp.stack([sizes >= 0, sizes > 0], 1), found, LOW)
    likelihood = jax.nn.logsumexp(found, 1)
    return jnp.where((likelihood > LOW / 2) & ~unread, -likelihood, 0)


@grad_of("warpctc", "Logits LogitsLength WarpCTCGrad", nograd="Label LogitsLength LabelLength")
def warpctc_grad(
    Logits: Array | Ragged,
    LogitsLength: Array | None,
    WarpCTCGrad: Array,
    d_Loss: Array,
    *,
    norm_by_times: bool,
):
    """Logits@GRAD = WarpCTCGrad * Loss@GRAD, over the number of steps if norm_by_times."""
    scale = d_Loss.reshape(1, -1, 1)
    if norm_by_times:
        lengths = Logits.lengths if LogitsLength is None else LogitsLength.reshape(-1)
        scale = scale / jnp.maximum(lengths, 1).astype(scale.dtype).reshape(1, -1, 1)
    cells = WarpCTCGrad * scale
    return cells if LogitsLength is not None else pack(Logits, jnp.swapaxes(cells, 0, 1))
