"""Linear-chain conditional random fields: the likelihood to train with, and the best path.

Transition [D + 2, D]: row 0 scores the first tag of a path, row 1 the last, row 2 + i the steps
from tag i. Sequences are ragged, or padded [N, longest, ...] with their lengths in Length.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet, ShapeError
from . import loops
from .bounds import tags
from .greatest import first_greatest
from .infer import Spec
from .outside import within
from .ragged import Ragged, copied, mask, pack, rows_of, same_sequences, sequences_of, view
from .registry import Array, op
from .traits import FREE, Bounds, knows_rows


def _check(op_type: str, emission: Spec, transition: Spec) -> int:
    """The number of tags. Raises ShapeError."""
    tags = transition.shape[-1]
    if (
        len(transition.shape) != 2
        or transition.shape[0] not in (-1, tags + 2)
        or emission.shape[-1] not in (-1, tags)
    ):
        raise ShapeError(
            f"op '{op_type}' takes Emission [..., D] and Transition [D + 2, D], not"
            f" {list(emission.shape)} and {list(transition.shape)}"
        )
    return tags


def _cells(op_type: str, slot: str, value: Any, length: Any) -> tuple[Any, Any]:
    """[N, longest, ...] and which cells count, from ragged rows or from a padded batch with
    lengths.
    """
    if length is None:
        x = sequences_of(op_type, slot, value, 1)
        return view(x), mask(x)
    if isinstance(value, Ragged):
        raise EnforceNotMet(
            f"input {slot} of op '{op_type}' has a LoD and a Length; it takes one of them"
        )
    lengths = length.reshape(-1)
    return value, jnp.arange(value.shape[1], dtype=lengths.dtype) < lengths[:, None]


def _back(value: Any, cells: Any) -> Any:
    """Cells in the form of `value`: packed rows if it is Ragged, else unchanged."""
    if not isinstance(value, Ragged):
        return cells
    packed = value.with_rows(pack(value, cells))
    return packed.with_rows(copied(packed))


def _labels(op_type: str, emission: Any, label: Any, length: Any) -> Any:
    """Labels [N, longest], int32."""
    if length is None:
        same_sequences(
            op_type, {"Emission": emission, "Label": sequences_of(op_type, "Label", label, 1)}
        )
    cells, _ = _cells(op_type, "Label", label, length)
    return cells.reshape(cells.shape[:2]).astype(jnp.int32)


def _decoding_specs(
    Emission: Spec, Transition: Spec, Label: Spec | None, Length: Spec | None
) -> Spec:
    _check("crf_decoding", Emission, Transition)
    return Spec((Emission.shape[0], 1) if Length is None else Emission.shape[:2], "int64")


_LENGTHS = within(
    "Length", "Length", lambda inputs, attrs: rows_of(inputs["Emission"]).shape[1] + 1
)


@op(
    outs="ViterbiPath",
    infer=_decoding_specs,
    rows=knows_rows(ViterbiPath="Emission", each=""),
    bounds=FREE,
    refuses=_LENGTHS,
)
def crf_decoding(
    Emission: Array | Ragged, Transition: Array, Label: Array | Ragged | None, Length: Array | None
):
    """ViterbiPath = the tags of the best path; with Label, 1 where it agrees with the label and 0
    elsewhere.

    Emission [rows, D], one LoD level: ViterbiPath [rows, 1]. Emission [N, longest, D] with Length
    [N, 1]: [N, longest], 0 after the end. int64. Between equal scores the lowest tag wins.
    """
    scores, alive = _cells("crf_decoding", "Emission", Emission, Length)
    path = _viterbi(scores, alive, Transition)
    if Label is not None:
        path = path == _labels("crf_decoding", Emission, Label, Length)
    path = jnp.where(alive, path, 0).astype(np.int64)
    return _back(Emission, path[..., None]) if Length is None else path


def _viterbi(scores: Any, alive: Any, transition: Any) -> Any:
    """The best path [N, longest] through scores [N, longest, D]."""
    start, end, steps = transition[0], transition[1], transition[2:]
    if not scores.shape[1]:
        return jnp.zeros(scores.shape[:2], jnp.int32)

    def forward(best: Any, given: Any) -> tuple[Any, Any]:
        row, keep = given
        to = best[:, :, None] + steps
        new = jnp.where(keep[:, None], jnp.max(to, 1) + row, best)
        stay = jnp.arange(steps.shape[0], dtype=jnp.int32)
        return new, jnp.where(keep[:, None], first_greatest(to, 1), stay)

    first = start + scores[:, 0]
    best, came = loops.scan(forward, first, (jnp.moveaxis(scores[:, 1:], 1, 0), alive[:, 1:].T))
    last = first_greatest(best + end, 1)

    def backward(tag: Any, pointers: Any) -> tuple[Any, Any]:
        previous = jnp.take_along_axis(pointers, tag[:, None], 1)[:, 0]
        return previous, tag

    begin, tags = loops.scan(backward, last, came, reverse=True)
    return jnp.concatenate([begin[None], tags], 0).T


def _crf_specs(
    Emission: Spec, Transition: Spec, Label: Spec, Length: Spec | None
) -> tuple[Spec, ...]:
    _check("linear_chain_crf", Emission, Transition)
    return (
        Emission,
        Emission,
        Transition,
        Spec((-1 if Length is None else Emission.shape[0], 1), Emission.dtype),
    )


@op(
    outs="Alpha~ EmissionExps~ TransitionExps~ LogLikelihood",
    grad="Emission Transition Label Length Alpha EmissionExps TransitionExps",
    nograd="Label Length",
    infer=_crf_specs,
    rows=knows_rows(each="LogLikelihood"),
    bounds=Bounds("Label", "label", tags),
    refuses=_LENGTHS,
)
def linear_chain_crf(
    Emission: Array | Ragged, Transition: Array, Label: Array | Ragged, Length: Array | None
):
    """LogLikelihood [N, 1] = log(sum of exp(score) over all paths) - score(Label), which is
    minimised; 0 for an empty sequence.

    The score of a path is its start, steps, end (Transition) and emissions. Emission [rows, D] and
    Label [rows, 1], one LoD level; or [N, longest, D], [N, longest, 1] with Length [N, 1].
    EmissionExps = exp(Emission - max of its row), TransitionExps = exp(Transition), Alpha: the
    forward probabilities, normalised row by row.
    """
    scores, alive = _cells("linear_chain_crf", "Emission", Emission, Length)
    label = _labels("linear_chain_crf", Emission, Label, Length)
    alpha, total = _forward(scores, alive, Transition)
    cost = total - _score(scores, alive, label, Transition)
    exps = jnp.exp(scores - jnp.max(scores, -1, keepdims=True))
    inner = (_back(Emission, v) for v in (jnp.where(alive[..., None], alpha, 0), exps))
    bare = (v.with_rows(v.rows, bare=True) if isinstance(v, Ragged) else v for v in inner)
    return *bare, jnp.exp(Transition), jnp.where(alive.any(1), cost, 0)[:, None]


def _forward(scores: Any, alive: Any, transition: Any) -> tuple[Any, Any]:
    """Normalised forward probabilities [N, longest, D] and the log of the sum over all paths [N]."""
    start, end, steps = transition[0], transition[1], transition[2:]
    if not scores.shape[1]:
        return scores, jnp.zeros(scores.shape[:1], scores.dtype)

    def forward(state: Any, given: Any) -> tuple[Any, Any]:
        row, keep = given
        new = jax.nn.logsumexp(state[:, :, None] + steps, 1) + row
        state = jnp.where(keep[:, None], new, state)
        return state, state

    first = start + scores[:, 0]
    last, rest = loops.scan(forward, first, (jnp.moveaxis(scores[:, 1:], 1, 0), alive[:, 1:].T))
    logs = jnp.concatenate([first[:, None], jnp.moveaxis(rest, 0, 1)], 1)
    return jax.nn.softmax(logs, -1), jax.nn.logsumexp(last + end, 1)


def _score(scores: Any, alive: Any, label: Any, transition: Any) -> Any:
    """The score of the labelled path, [N]."""
    start, end, steps = transition[0], transition[1], transition[2:]
    if not scores.shape[1]:
        return jnp.zeros(scores.shape[:1], scores.dtype)
    label = jnp.clip(label, 0, steps.shape[0] - 1)
    emitted = jnp.where(alive, jnp.take_along_axis(scores, label[..., None], -1)[..., 0], 0).sum(1)
    moved = jnp.where(alive[:, 1:], steps[label[:, :-1], label[:, 1:]], 0).sum(1)
    last = jnp.take_along_axis(label, jnp.maximum(alive.sum(1) - 1, 0)[:, None], 1)[:, 0]
    return start[label[:, 0]] + emitted + moved + end[last]
