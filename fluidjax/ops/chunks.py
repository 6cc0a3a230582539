"""chunk_eval: precision, recall and F1 of the chunks that tags of sequences mark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet
from .checking import Objection
from .infer import Spec
from .outside import outside
from .ragged import Ragged, same_sequences, sequences_of
from .registry import Array, Ints, op
from .traits import FREE, knows_rows

# scheme -> number of tags of a type, and which of them begin, are inside of, end, and are a chunk
# (-1: none)
SCHEMES = {
    "IOB": (2, 0, 1, -1, -1),
    "IOE": (2, -1, 0, 1, -1),
    "IOBES": (4, 0, 1, 2, 3),
    "plain": (1, -1, -1, -1, -1),
}
OUTS = "Precision Recall F1-Score NumInferChunks NumLabelChunks NumCorrectChunks"


def _specs(Inference: Spec, Label: Spec, SeqLength: Spec | None, **_: Any) -> tuple[Spec, ...]:
    return *(Spec((1,), "float32"),) * 3, *(Spec((1,), "int64"),) * 3


def _no_tags(inputs: Mapping[str, Any], attrs: Mapping[str, Any]) -> Iterator[Objection]:
    """Tags beyond the tag for "in no chunk", among the rows that count."""
    if attrs["chunk_scheme"] not in SCHEMES:
        return
    high, length = (
        attrs["num_chunk_types"] * SCHEMES[attrs["chunk_scheme"]][0] + 1,
        inputs.get("SeqLength"),
    )
    for slot in ("Inference", "Label"):
        tags = inputs[slot]
        if length is None:
            yield from outside("tag", tags, 0, high)
        elif not isinstance(tags, Ragged) and tags.ndim > 1:
            behind = np.arange(tags.shape[1], dtype=np.int32) >= length.reshape(-1, 1)
            yield from outside("tag", tags.reshape(tags.shape[:2]), 0, high, behind)


@op(
    outs=OUTS,
    infer=_specs,
    rows=knows_rows(each="", by_offsets=True),
    bounds=FREE,
    refuses=_no_tags,
)
def chunk_eval(
    Inference: Array | Ragged,
    Label: Array | Ragged,
    SeqLength: Array | None,
    *,
    num_chunk_types: int,
    chunk_scheme: str = "IOB",
    excluded_chunk_types: Ints = (),
):
    """The number of chunks in Inference, in Label, and in both equally (int64 [1]); precision,
    recall and F1 (float32 [1]).

    A tag is type * (tags of a type) + place; types from num_chunk_types up and excluded types are
    not chunks. Inference, Label: [rows, 1], one LoD level; or [N, T, 1] with SeqLength [N, 1].
    """
    if chunk_scheme not in SCHEMES:
        raise EnforceNotMet(
            f"op 'chunk_eval' knows no chunk_scheme {chunk_scheme!r}; it is one of"
            f" {', '.join(SCHEMES)}"
        )
    begins, last, there = _places(Inference, Label, SeqLength)
    guessed, true = (_flat(v).reshape(-1) for v in (Inference, Label))
    marks = [
        _marks(t, begins, last, there, num_chunk_types, SCHEMES[chunk_scheme], excluded_chunk_types)
        for t in (guessed, true)
    ]
    (types_a, start_a, ends_a), (types_b, start_b, ends_b) = marks
    correct = ends_a & ends_b & (start_a == start_b) & (types_a == types_b)
    counts = [jnp.sum(flags, dtype=np.int64).reshape(1) for flags in (ends_a, ends_b, correct)]
    return *_scores(*counts), *counts


def _scores(guessed: Any, true: Any, correct: Any) -> tuple[Any, Any, Any]:
    """Precision, recall and F1; 0 where they would be 0 / 0."""

    def ratio(part: Any, whole: Any) -> Any:
        return jnp.where(whole > 0, part / jnp.where(whole > 0, whole, 1), 0)

    precision, recall = (ratio(correct.astype(np.float64), n) for n in (guessed, true))
    f1 = ratio(2 * precision * recall, precision + recall)
    return tuple(v.astype(np.float32) for v in (precision, recall, f1))


def _flat(value: Any) -> Any:
    return value.rows if isinstance(value, Ragged) else value


def _places(guessed: Any, true: Any, length: Any) -> tuple[Any, Any, Any]:
    """For every tag, in one row: whether it is the first of a sequence, the last, and not padding."""
    if length is not None:
        if isinstance(guessed, Ragged) or guessed.ndim < 2:
            raise EnforceNotMet(
                "op 'chunk_eval' with SeqLength takes Inference and Label as batches [N, T, 1],"
                " without LoD"
            )
        at = jnp.broadcast_to(jnp.arange(guessed.shape[1], dtype=jnp.int32), guessed.shape[:2])
        size = length.reshape(-1, 1)
        return (at == 0).reshape(-1), (at == size - 1).reshape(-1), (at < size).reshape(-1)
    x = sequences_of("chunk_eval", "Inference", guessed, 1)
    same_sequences(
        "chunk_eval", {"Inference": x, "Label": sequences_of("chunk_eval", "Label", true, 1)}
    )
    sequence = jnp.minimum(x.sequence(), max(x.sequences - 1, 0))
    at = jnp.arange(x.capacity, dtype=jnp.int32)
    return at == x.offsets[0][sequence], at == x.offsets[0][sequence + 1] - 1, x.kept()


def _marks(
    tags: Any, begins: Any, last: Any, there: Any, types: int, scheme: Any, excluded: Ints
) -> tuple[Any, Any, Any]:
    """The type of each tag, the position where its chunk begins, and whether a chunk that counts
    ends there.
    """
    per_type, begin, inside, end, single = scheme
    place = tags % per_type
    kind = jnp.where(there, jnp.minimum(tags // per_type, types), types)
    kind_before = jnp.where(begins, types, jnp.roll(kind, 1))
    before = jnp.where(begins, -1, jnp.roll(place, 1))
    same = (kind == kind_before) & (kind != types)
    cut = _cut(before, place, (begin, inside, end, single))
    starts = (kind != types) & (~same | cut)
    at = jnp.arange(tags.shape[0], dtype=jnp.int32)
    start = jax.lax.cummax(jnp.where(starts, at, -1))
    goes_on = jnp.where(last, False, jnp.roll(same & ~cut, -1))
    counts = ~jnp.isin(kind, np.asarray(excluded, kind.dtype)) if len(excluded) else True
    return kind, start, (kind != types) & ~goes_on & counts


def _cut(before: Any, place: Any, scheme: Any) -> Any:
    """Whether a chunk ends between two places of one type."""
    begin, inside, end, single = scheme
    opens = (place == begin) | (place == single)
    return (((before == begin) | (before == inside)) & opens) | (before == end) | (before == single)
