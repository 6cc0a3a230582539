"""beam_search: one step of a search. beam_search_decode (control/) reads the sentences from all
steps.

The rows of a step are prefixes, packed by source. A source has at most beam_size prefixes after a
step, so the outputs have a bound of beam_size rows per source; the number of true rows is data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet, ShapeError
from .checking import VALUE, Objection
from .greatest import first_greatest
from .infer import Spec
from .ragged import Ragged, made_key, rows_of, sequences_of
from .registry import Array, op
from .traits import Attrs, knows_rows


def _specs(
    pre_ids: Spec,
    pre_scores: Spec,
    ids: Spec | None,
    scores: Spec,
    *,
    beam_size: int,
    level: int,
    **_: Any,
) -> tuple[Spec, ...]:
    if beam_size < 1:
        raise ShapeError(f"op 'beam_search' takes a beam_size of 1 or more, not {beam_size}")
    if len(scores.shape) != 2 or (ids is not None and not _fits(ids.shape, scores.shape)):
        raise ShapeError(
            "op 'beam_search' takes scores [rows, K] and ids of the same shape, not"
            f" {list(scores.shape)} and {list(ids.shape) if ids is not None else None}"
        )
    for slot, spec in (("pre_ids", pre_ids), ("pre_scores", pre_scores)):
        if len(spec.shape) != 2 or spec.shape[1] not in (-1, 1):
            raise ShapeError(f"op 'beam_search' takes {slot} [rows, 1], not {list(spec.shape)}")
    return Spec((-1, 1), pre_ids.dtype), Spec((-1, 1), pre_scores.dtype), Spec((-1,), "int32")


def _fits(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return len(one) == len(other) and all(
        a == b or -1 in (a, b) for a, b in zip(one, other, strict=True)
    )


def _levels(levels: Any, attrs: Attrs) -> dict[str, int]:
    return {"selected_ids": 0, "selected_scores": 0}


def _other_counts(inputs: Mapping[str, Any], attrs: Attrs) -> Iterator[Objection]:
    """The inputs whose number of rows differs from that of scores."""
    scores = inputs["scores"]
    for slot in ("pre_ids", "pre_scores", "ids"):
        value = inputs.get(slot)
        if (
            isinstance(scores, Ragged)
            and value is not None
            and getattr(value, "key", None) != scores.key
        ):
            count = value.count if isinstance(value, Ragged) else value.shape[0]
            yield (
                count != scores.count,
                f"takes {slot} with a row for each of scores, but it has {VALUE} rows",
                count,
            )


@op(
    outs="selected_ids selected_scores parent_idx?",
    infer=_specs,
    rows=knows_rows(_levels),
    refuses=_other_counts,
)
def beam_search(
    pre_ids: Array | Ragged, pre_scores: Array | Ragged, ids: Array | Ragged | None, scores: Ragged, *, level: int,
    beam_size: int, end_id: int, is_accumulated: bool = True,
):  # fmt: skip
    """The beam_size best candidates of each source: selected_ids, selected_scores [rows, 1], and
    the rows that they extend.

    Row r of scores [rows, K] holds K candidates to extend prefix r with, ids[r, k] (k without ids),
    and their scores: of the sentence so far, or probabilities whose logarithms are added to
    pre_scores[r] (is_accumulated False). A prefix that ended (pre_ids[r] = end_id) has one
    candidate, itself. Sources are the sequences of LoD level `level` of scores; a source with only
    ended prefixes gives no rows. Between equal scores a later prefix wins, and within a prefix the
    earlier candidate (the last place goes to the last of them). The outputs have a LoD of two
    levels: the prefixes of each source, the selected candidates of each prefix. parent_idx [rows]
    int32.
    """
    x = sequences_of("beam_search", "scores", scores)
    if not 0 <= level < len(x.offsets):
        raise EnforceNotMet(
            f"op 'beam_search' takes a level from 0 to {len(x.offsets) - 1} here, not {level}"
        )
    begins = x.offsets[level]
    for below in x.offsets[level + 1 :]:
        begins = below[begins]
    _same_rows(x, {"pre_ids": pre_ids, "pre_scores": pre_scores, "ids": ids})
    before, so_far = rows_of(pre_ids).reshape(-1), rows_of(pre_scores).reshape(-1, 1)
    ended_before = before == end_id
    totals = x.rows if is_accumulated else so_far + jnp.log(x.rows)
    most = x.rows_in(level)  # no source has more prefixes
    first = jnp.arange(totals.shape[1]) == 0
    totals = jnp.where(
        ended_before[:, None], jnp.where(first, so_far.astype(totals.dtype), -np.inf), totals
    )
    prefix, place, score, there = _Candidates(totals, ended_before, begins, most).best(beam_size)
    names = (
        jnp.broadcast_to(jnp.arange(totals.shape[1]), totals.shape) if ids is None else rows_of(ids)
    )
    over = ended_before[prefix]
    chosen = jnp.where(over, end_id, names[prefix, place]).astype(before.dtype)
    done = jnp.all(~there | ((chosen == end_id) & over), axis=1, keepdims=True)
    extends = jnp.where(there & ~done, prefix, x.capacity).reshape(-1)
    count = jnp.sum(extends < x.capacity)
    order = jnp.argsort(extends, stable=True)
    # padding: copies of the last
    order = order[jnp.minimum(jnp.arange(order.shape[0]), jnp.maximum(count - 1, 0))]
    counts = jnp.zeros((x.capacity,), jnp.int32).at[extends].add(1, mode="drop")
    low = jnp.concatenate([jnp.zeros((1,), jnp.int32), jnp.cumsum(counts, dtype=jnp.int32)])
    shape = Ragged(
        order,
        (begins.astype(jnp.int32), low),
        (most, beam_size),
        made_key(),
        padded=True,
        most=(beam_size, beam_size),
    )

    def rows(of: Any) -> Any:
        return of.reshape(-1)[order]

    picked = (
        shape.with_rows(rows(chosen)[:, None]),
        shape.with_rows(rows(score).astype(rows_of(pre_scores).dtype)[:, None]),
    )
    return *picked, shape.with_rows(rows(prefix).astype(np.int32), bare=True)


def _same_rows(x: Ragged, others: dict[str, Any]) -> None:
    for slot, value in others.items():
        rows = rows_of(value)
        if rows is not None and rows.shape[0] != x.capacity:
            raise EnforceNotMet(
                f"op 'beam_search' takes {slot} with a row for each of scores, but it has"
                f" {rows.shape[0]} rows and scores {x.capacity}"
            )


class _Candidates:
    """The best candidates of every prefix, [rows, K'], and those of each source side by side, from
    its last prefix to its first.
    """

    def __init__(self, scores: Any, ended: Any, begins: Any, most: int) -> None:
        rows, width = scores.shape
        self.scores, self.ended = scores, ended
        first, end = begins[:-1, None], begins[1:, None]
        prefix = end - 1 - jnp.arange(most, dtype=jnp.int32)
        self.prefix, self.inside = jnp.clip(prefix, 0, max(rows - 1, 0)), prefix >= first
        # a prefix that ended has one candidate
        self.there = ~ended[:, None] | (jnp.arange(width) == 0)

    def best(self, count: int) -> tuple[Any, Any, Any, Any]:
        """The prefix, place, score and presence of each of the `count` best candidates of every
        source, [N, count].
        """
        level = jnp.where(self.scores == 0, 0, self.scores)  # -0.0 is no less than 0.0
        top, place = jax.lax.top_k(level, min(count, self.scores.shape[1]))
        n, width = self.prefix.shape[0], top.shape[1]
        there = (self.there[:, :width][self.prefix] & self.inside[..., None]).reshape(n, -1)
        score, row = top[self.prefix].reshape(n, -1), jnp.repeat(self.prefix, width, axis=1)
        columns = (~there, -score, row, place[self.prefix].reshape(n, -1), score)
        ordered = jax.lax.sort(columns, dimension=1, num_keys=2, is_stable=True)
        absent, _, row, place, score = (_sized(v, count) for v in ordered)
        there = ~absent & (jnp.arange(count) < min(count, columns[0].shape[1]))
        candidates = jnp.sum(jnp.where(self.inside, jnp.sum(self.there, 1)[self.prefix], 0), 1)
        last = self._last(row, place[:, -1], score)
        return (
            row,
            place.at[:, -1].set(jnp.where(candidates > count, last, place[:, -1])),
            score,
            there,
        )

    def _last(self, row: Any, place: Any, score: Any) -> Any:
        """The position, in its row, of the last selected candidate if equal ones compete for that
        place: the last of these, unless a better one follows in its row or in a later one.
        """
        line, least = self.scores[row[:, -1]], score[:, -1:]
        at = line.shape[1] - 1 - first_greatest((line >= least)[:, ::-1], axis=1)
        equal = jnp.take_along_axis(line, at[:, None], 1)[:, 0] == least[:, 0]
        behind = jnp.any((row > row[:, -1:]) & (score >= least), axis=1)
        return jnp.where(equal & ~behind & ~self.ended[row[:, -1]], at, place).astype(place.dtype)


def _sized(value: Any, count: int) -> Any:
    """The first `count` columns, padded if there are fewer."""
    value = value[:, :count]
    return jnp.pad(value, ((0, 0), (0, count - value.shape[1])))
