"""beam_search_decode: the sentences of a beam search, read backwards from the last step along the
prefixes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import EnforceNotMet
from .. import loops
from ..control_interface import Call, ControlOp
from ..infer import Spec
from ..ragged import Ragged, made_key
from ..registry import Attr, control_op
from ..tensor_array import Listed, Stacked, is_array, stacked
from ..traits import Runs


def _steps(call: Call, slot: str) -> Stacked:
    """The entries of a slot's array. Raises EnforceNotMet unless they are rows with a LoD of two
    levels.
    """
    (name,) = call.op.input(slot)
    array = call.read(name)
    if not is_array(array) or (
        isinstance(array, Listed) and not any(v is not None for v in array.items)
    ):
        what = "is not an array" if not is_array(array) else "has no entries"
        raise EnforceNotMet(
            "op 'beam_search_decode' takes an array of what beam_search selected in each step, but"
            f" {name!r} {what}"
        )
    found = stacked(array, 0)
    rows = found.rows
    if not isinstance(rows, Ragged) or rows.bare or len(rows.offsets) != 2:
        raise EnforceNotMet(
            f"op 'beam_search_decode' takes entries with a LoD of two levels, but those of {name!r}"
            " have another"
        )
    return found


def decode(call: Call) -> None:
    """SentenceIds and SentenceScores of all sources, the best sentence of each first."""
    op = call.op
    ids, scores = _steps(call, "Ids"), _steps(call, "Scores")
    if ids.capacity != scores.capacity or ids.rows.rows.shape[1] != scores.rows.rows.shape[1]:
        raise EnforceNotMet(
            f"op 'beam_search_decode' takes as many Scores as Ids, not {scores.capacity} entries"
            f" beside {ids.capacity}"
        )
    entry = jax.tree.map(lambda v: v[0], ids.rows)
    marks = scores.rows.rows.reshape(scores.capacity, -1)
    found = _read_back(ids.rows, marks, ids.length, int(op.attrs["end_id"]), entry.rows_in(0))
    shape, order = _packed(found)
    for slot, cells in (("SentenceIds", found.ids), ("SentenceScores", found.scores)):
        call.env[op.output(slot)[0]] = shape.with_rows(
            jnp.moveaxis(cells, 0, -1).reshape(-1)[order]
        )


class _Found(NamedTuple):
    """The sentences of each source, [N, sentences], and their tokens step by step, [steps, N,
    sentences].

    kept: which steps have a token. count [N]: the number of true sentences. best [N, sentences]:
    the score of the last token.
    """

    ids: Any
    scores: Any
    kept: Any
    count: Any
    best: Any


def _read_back(rows: Ragged, scores: Any, length: Any, end_id: int, most: int) -> _Found:
    """rows: the ids of all steps, scores [steps, rows]; the first `length` steps are true. A source
    has `most` sentences at most.

    A source's sentences are the candidates of its last step that has any. A sentence ends at its
    first end_id.
    """
    sources = rows.offsets[0].shape[1] - 1
    cells = jnp.arange(most, dtype=jnp.int32)

    def step(
        carry: tuple[Any, Any, Any], now: tuple[Any, ...]
    ) -> tuple[tuple[Any, Any, Any], tuple[Any, Any, Any]]:
        (row, count, best), (ids, marks, high, low, number) = carry, now
        begin, end = low[high[:-1]], low[high[1:]]
        new, there = (count == 0)[:, None], number < length
        row = jnp.where(new, begin[:, None] + cells, row)
        count = jnp.where(there & new[:, 0], end - begin, count)
        at = jnp.clip(row, 0, ids.shape[0] - 1)
        token, mark = ids[at], marks[at]
        kept = there & (cells < count[:, None]) & (new | (token != end_id))
        best = jnp.where(new & there, mark, best)
        prefix = jnp.searchsorted(low[1:], row, side="right", method="scan_unrolled").astype(
            jnp.int32
        )
        return (jnp.where(there, prefix, row), count, best), (token, mark, kept)

    start = (
        jnp.zeros((sources, most), jnp.int32),
        jnp.zeros((sources,), jnp.int32),
        jnp.zeros((sources, most), scores.dtype),
    )
    ids = rows.rows.reshape(rows.rows.shape[0], -1)
    given = (ids, scores, *rows.offsets, jnp.arange(ids.shape[0], dtype=jnp.int32))
    (_, count, best), (tokens, marks, kept) = loops.scan(step, start, given, reverse=True)
    return _Found(tokens, marks, kept, count, best)


def _packed(found: _Found) -> tuple[Ragged, Any]:
    """The LoD of the sentences, the best of each source first, and the cell number [N, sentences,
    steps] of every row.
    """
    sources, most = found.best.shape
    steps = found.kept.shape[0]
    there = jnp.arange(most, dtype=jnp.int32) < found.count[:, None]
    order = jnp.argsort(jnp.where(there, -found.best, np.inf), axis=1, stable=True)
    kept = jnp.take_along_axis(jnp.moveaxis(found.kept, 0, -1), order[..., None], 1)
    ends = jnp.cumsum(kept.reshape(-1), dtype=jnp.int32)
    size = sources * most * steps
    # padding: copies of the last
    rows = jnp.minimum(jnp.arange(1, size + 1, dtype=jnp.int32), ends[-1])
    cell = jnp.minimum(jnp.searchsorted(ends, rows, method="scan_unrolled"), size - 1)
    source, rank = cell // (most * steps), cell // steps % most
    taken = (source * most + order[source, rank]) * steps + cell % steps
    high = _offsets(found.count)
    sentence = jnp.where(
        there, high[:-1, None] + jnp.arange(most, dtype=jnp.int32), sources * most
    ).reshape(-1)
    lengths = (
        jnp.zeros((sources * most,), jnp.int32)
        .at[sentence]
        .set(jnp.sum(kept, 2, dtype=jnp.int32).reshape(-1), mode="drop")
    )
    shape = Ragged(taken, (high, _offsets(lengths)), (most, steps), made_key(), padded=True)
    return shape, taken


def _offsets(lengths: Any) -> Any:
    return jnp.concatenate([jnp.zeros((1,), jnp.int32), jnp.cumsum(lengths, dtype=jnp.int32)])


ATTRS = {"beam_size": Attr("beam_size", "INT"), "end_id": Attr("end_id", "INT")}

control_op(
    "beam_search_decode", ins="Ids Scores", outs="SentenceIds SentenceScores", attrs=ATTRS, runs=Runs.STEP,
    infer=lambda Ids, Scores, **_: (Spec((), Ids.dtype), Spec((), Scores.dtype)),
    doc="SentenceIds, SentenceScores = the sentences of the steps' Ids and Scores, as a LoD of two levels: source, sentence.",
    control=ControlOp(lower=decode),
)  # fmt: skip
