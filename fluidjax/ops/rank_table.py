"""Rank tables: the value of a LOD_RANK_TABLE within a step, by which a loop over time splits
sequences.

The sequences of a LoD level are sorted by descending length, so the sequences with a step t are the
first ones; their number is data, and padding follows them in a time step (docs/control-flow.md).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet, MixesRows, UnsupportedError
from .forms import Each
from .ragged import ROWS, Ragged, copied, segments, some_rows
from .tensor_array import Listed, Stacked, entry_key, stacked


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("order", "lengths", "offsets", "alive"),
    meta_fields=("longest", "capacity", "key", "padded", "each"),
)
@dataclass(frozen=True)
class RankTable:
    """order: [N] int32, the sequence number of each rank; lengths: their lengths, descending. The
    other fields are the LoD of the table's value, down to the level of these sequences, as in a
    Ragged; capacity: room for entries of the last level.
    """

    order: Any
    lengths: Any
    offsets: tuple[Any, ...]
    longest: tuple[int, ...]
    capacity: int
    key: Hashable
    padded: bool
    each: Hashable = None
    alive: Any = None

    @property
    def level(self) -> int:
        return len(self.offsets) - 1

    @property
    def sequences(self) -> int:
        return self.order.shape[0]

    @property
    def active(self) -> Each:
        """The key of entries whose entry t has a row for each sequence with a step t."""
        return Each(("active", self.key))

    def going_on(self, step: Any) -> Any:
        """The number of sequences with a row at this time, a scalar."""
        return jnp.sum(self.lengths > step, dtype=jnp.int32)

    def ranks(self) -> Any:
        """The rank of each sequence, [N]."""
        return (
            jnp.zeros_like(self.order)
            .at[self.order]
            .set(jnp.arange(self.sequences, dtype=jnp.int32))
        )


def table_of(x: Ragged, level: int) -> RankTable:
    """The table of a LoD level. Raises EnforceNotMet if x has no such level."""
    if not 0 <= level < len(x.offsets):
        raise EnforceNotMet(
            f"op 'lod_rank_table' takes level {level} of a LoD that has {len(x.offsets)}"
        )
    lengths = jnp.diff(jnp.asarray(x.offsets[level]))
    order = jnp.argsort(-lengths, stable=True).astype(jnp.int32)
    last = level == len(x.offsets) - 1
    capacity = x.capacity if last else x.offsets[level + 1].shape[0] - 1
    key = x.key if last else ("levels", level + 1, x.key)
    return RankTable(
        order,
        lengths[order],
        x.offsets[: level + 1],
        x.longest[: level + 1],
        capacity,
        key,
        x.padded,
        x.each,
        x.alive,
    )


def _fitting(op: str, x: Any, table: RankTable) -> Ragged:
    """x, checked to have the table's sequences, as far as is known."""
    if not isinstance(x, Ragged) or x.bare or len(x.offsets) <= table.level:
        has = len(x.offsets) if isinstance(x, Ragged) and not x.bare else 0
        raise EnforceNotMet(
            f"input X of op '{op}' has {has} LoD levels, but the rank table is of level"
            f" {table.level}"
        )
    key = x.key if len(x.offsets) == table.level + 1 else ("levels", table.level + 1, x.key)
    if key != table.key and (x.padded or table.padded):
        raise MixesRows(f"op '{op}' takes X by a rank table of another LoD")
    if x.offsets[table.level].shape[0] - 1 != table.sequences:
        raise EnforceNotMet(
            f"op '{op}' takes an X with the {table.sequences} sequences of the rank table, but it"
            f" has {x.offsets[table.level].shape[0] - 1}"
        )
    if len(x.offsets) > table.level + 2:
        raise UnsupportedError(
            f"op '{op}' takes apart two levels of a LoD at most, but X has"
            f" {len(x.offsets) - table.level} from there on"
        )
    return x


# -- a sequence as its rows, time by time ----------------------------------------------------------


def taken_apart(x: Any, table: RankTable, gradient: bool) -> Stacked:
    """Entry t: row t of each sequence that has one, by rank; if a LoD level remains, sequence t of
    each.

    gradient: padded rows are zero; else they are copies of true ones.
    """
    x = _fitting("lod_tensor_to_array", x, table)
    steps = jnp.arange(table.longest[-1], dtype=jnp.int32)[:, None]
    goes_on = steps < table.lengths  # [steps, N]
    at = x.offsets[table.level][:-1][table.order] + jnp.minimum(
        steps, jnp.maximum(table.lengths - 1, 0)
    )
    counts = jnp.sum(goes_on, 1, dtype=jnp.int32)
    take = _rows_at if len(x.offsets) == table.level + 1 else _parts_at
    entries = take(x, at, goes_on, counts, gradient)
    if isinstance(entries, Ragged):
        entries = replace(entries, **_keys(x, table, entries.bare))
    written = counts > 0 if table.padded else np.ones(table.longest[-1], bool)
    return Stacked(entries, written)


def _keys(x: Ragged, table: RankTable, bare: bool) -> dict[str, Hashable]:
    if bare:
        return {"key": table.active, "each": ROWS}
    return {
        "key": Each(Parts(x.key, table.key, x.capacity, x.longest, x.padded, x.most)),
        "each": table.active,
    }


class Parts(NamedTuple):
    """The origin of entries that are sequences; joined entries get its LoD again."""

    whole: Hashable
    table: Hashable
    capacity: int
    longest: tuple[int, ...]
    padded: bool
    most: tuple[int, ...] | None


def _rows_at(x: Ragged, at: Any, goes_on: Any, counts: Any, gradient: bool) -> Any:
    rows = (
        jnp.take(x.rows, at, axis=0, mode="clip")
        if x.capacity
        else jnp.zeros((*at.shape, *x.rows.shape[1:]), x.dtype)
    )
    if gradient:
        return jnp.where(
            goes_on.reshape(*at.shape, *(1,) * (rows.ndim - 2)), rows, np.zeros((), x.dtype)
        )
    return jax.vmap(lambda r, n: some_rows(r, n, ROWS))(rows, counts)


def _parts_at(x: Ragged, at: Any, goes_on: Any, counts: Any, gradient: bool) -> Ragged:
    """The sequences `at` of the level below."""
    below, count = x.offsets[-1], at.shape[1]
    room = min(x.capacity, count * x.longest[-1])
    begin = below[jnp.minimum(at, below.shape[0] - 2)]
    lengths = jnp.where(goes_on, below[jnp.minimum(at, below.shape[0] - 2) + 1] - begin, 0)
    offsets = jnp.concatenate(
        [jnp.zeros((at.shape[0], 1), jnp.int32), jnp.cumsum(lengths, 1, dtype=jnp.int32)], 1
    )
    row = jnp.arange(room, dtype=jnp.int32)

    def entry(begin: Any, offsets: Any) -> Any:
        # copies of the last true row follow the true ones
        inside = jnp.minimum(row, jnp.maximum(offsets[-1] - 1, 0))
        sequence = jnp.minimum(
            jnp.searchsorted(offsets[1:], inside, side="right", method="scan_unrolled"), count - 1
        )
        rows = jnp.take(x.rows, begin[sequence] + inside - offsets[sequence], axis=0, mode="clip")
        return (
            jnp.where((row < offsets[-1]).reshape(-1, *(1,) * (rows.ndim - 1)), rows, 0).astype(
                x.dtype
            )
            if gradient
            else rows
        )

    return Ragged(
        jax.vmap(entry)(begin, offsets),
        (offsets,),
        x.longest[-1:],
        ROWS,
        padded=True,
        each=ROWS,
        alive=counts,
    )


def other_lengths(x: Any, table: RankTable) -> Any:
    """Whether the lengths of x's sequences differ from the table's: a scalar; None if x has the
    table's LoD, or too few levels.
    """
    if (
        not isinstance(x, Ragged)
        or x.bare
        or len(x.offsets) != table.level + 1
        or x.key == table.key
        or x.padded
    ):
        return None
    lengths = jnp.diff(jnp.asarray(x.offsets[table.level]))
    return (
        None
        if lengths.shape != table.order.shape
        else jnp.any(lengths[table.order] != table.lengths)
    )


def other_rows(array: Stacked, table: RankTable) -> Any:
    """Whether the entries' numbers of rows differ from the numbers of sequences at their times: a
    scalar; None if they match by construction.
    """
    entries = array.rows
    if isinstance(entries, Ragged) and (not entries.bare or entries.key == table.active):
        return None
    steps = jnp.arange(max(array.capacity, table.longest[-1]), dtype=jnp.int32)
    wanted = jnp.sum(table.lengths > steps[:, None], 1, dtype=jnp.int32)
    counts = (
        entries.offsets[-1][:, -1]
        if isinstance(entries, Ragged)
        else jnp.full(array.capacity, entries.shape[1], jnp.int32)
    )
    has = jnp.pad(jnp.where(array.written, counts, 0), (0, steps.shape[0] - array.capacity))
    return jnp.any(has != wanted)


def side_by_side(array: Listed, table: RankTable) -> Stacked:
    """The entries in buffers with room for a row of each sequence, if they are plain arrays with
    different numbers of rows.
    """
    items = [v for v in array.items if v is not None]
    most = max(
        (jnp.shape(v)[0] for v in items if not isinstance(v, Ragged) and jnp.ndim(v)), default=0
    )
    if (
        any(isinstance(v, Ragged) or jnp.ndim(v) < 1 for v in items)
        or len({jnp.shape(v)[0] for v in items}) < 2
    ):
        return stacked(array, array.length)
    if most > table.sequences:
        raise EnforceNotMet(
            f"op 'array_to_lod_tensor' takes entries of {table.sequences} rows at most, one a"
            f" sequence, but one has {most}"
        )
    spare = [None if v is None else table.sequences - jnp.shape(v)[0] for v in array.items]
    padded = [
        None if n is None else jnp.pad(v, ((0, n), *[(0, 0)] * (jnp.ndim(v) - 1)))
        for v, n in zip(array.items, spare, strict=True)
    ]
    key = Each(("side by side", table.key))
    counted = [
        None if n is None else some_rows(v, table.sequences - n, key)
        for v, n in zip(padded, spare, strict=True)
    ]
    return stacked(Listed(tuple(counted)), array.length)


def put_together(array: Stacked, table: RankTable, gradient: bool, made: Hashable) -> Ragged:
    """The inverse: rows of the sequences of the table's value. made: a unique key for the offsets."""
    entries = array.rows
    number = jnp.arange(table.capacity, dtype=jnp.int32)
    offsets, count = table.offsets[-1], table.sequences
    sequence = jnp.minimum(segments(offsets, table.capacity), max(count - 1, 0))
    step = jnp.clip(number - offsets[sequence], 0, array.capacity - 1)
    rank = table.ranks()[sequence]
    whole = partial(Ragged, alive=table.alive, each=table.each)
    if isinstance(entries, Ragged) and not entries.bare:
        rows, offsets, longest = _joined(entries, table, step, rank)
        parts = entries.key.key if isinstance(entries.key, Each) else None
        if isinstance(parts, Parts) and parts.table == table.key:
            rows = _as_large(rows, parts.capacity)
            found = whole(rows, offsets, parts.longest, parts.whole, parts.padded, most=parts.most)
        else:
            found = whole(rows, offsets, longest, ("made", made), True)
        return _zero_behind(found) if gradient else found
    rows = entries.rows if isinstance(entries, Ragged) else entries
    found = whole(rows[step, rank], table.offsets, table.longest, table.key, table.padded)
    return _zero_behind(found) if gradient else found.with_rows(copied(found))


def _zero_behind(x: Ragged) -> Ragged:
    """The rows with zeros as padding."""
    return x.with_rows(
        jnp.where(x.kept().reshape(-1, *(1,) * (x.rows.ndim - 1)), x.rows, np.zeros((), x.dtype))
    )


def _as_large(rows: Any, capacity: int) -> Any:
    """The first rows, or the rows followed by copies of the last; the true ones come first."""
    spare = capacity - rows.shape[0]
    return (
        rows[:capacity]
        if spare <= 0
        else jnp.concatenate([rows, jnp.broadcast_to(rows[-1:], (spare, *rows.shape[1:]))])
    )


def _joined(
    entries: Ragged, table: RankTable, step: Any, rank: Any
) -> tuple[Any, tuple[Any, ...], tuple[int, ...]]:
    """Rows, offsets and longest lengths of entries that are sequences themselves."""
    (below,) = entries.offsets  # [steps, N + 1]
    kept = jnp.arange(table.capacity, dtype=jnp.int32) < table.offsets[-1][-1]
    begin = below[step, rank]
    lengths = jnp.where(kept, below[step, rank + 1] - begin, 0)
    offsets = jnp.concatenate([jnp.zeros((1,), jnp.int32), jnp.cumsum(lengths, dtype=jnp.int32)])
    room = min(entries.rows.shape[0] * entries.rows.shape[1], table.capacity * entries.longest[-1])
    inside = jnp.minimum(jnp.arange(room, dtype=jnp.int32), jnp.maximum(offsets[-1] - 1, 0))
    part = jnp.minimum(
        jnp.searchsorted(offsets[1:], inside, side="right", method="scan_unrolled"),
        table.capacity - 1,
    )
    rows = entries.rows[
        step[part], jnp.clip(begin[part] + inside - offsets[part], 0, entries.rows.shape[1] - 1)
    ]
    return rows, (*table.offsets, offsets), (*table.longest, entries.longest[-1])


# -- the order of ranks ----------------------------------------------------------------------------


def shrunk(x: Any, table: RankTable, step: Any, token: Hashable) -> Ragged:
    """The rows, or the sequences, of x (by rank) that have a step at this time; padding follows
    them, copies as in x.
    """
    count, key = table.going_on(step), entry_key(table.active, token)
    if isinstance(x, Ragged) and not x.bare:
        if x.offsets[0].shape[0] - 1 != table.sequences:
            raise _other_number("shrink_rnn_memory", x.offsets[0].shape[0] - 1, table)
        end, offsets = count, []
        for level in x.offsets:
            end = level[end]
            offsets.append(jnp.minimum(level, end))
        cut = Ragged(
            x.rows,
            tuple(offsets),
            x.longest,
            ("shrunk", x.key, table.key, token),
            True,
            each=key,
            alive=count,
        )
        return cut.with_rows(copied(cut))
    rows = jnp.asarray(x.rows if isinstance(x, Ragged) else x)
    if rows.shape[0] != table.sequences:
        raise _other_number("shrink_rnn_memory", rows.shape[0], table)
    keeps = jnp.arange(table.sequences, dtype=jnp.int32) < count
    return some_rows(
        jnp.where(keeps.reshape(-1, *(1,) * (rows.ndim - 1)), rows, rows[:1]), count, key
    )


def _other_number(op: str, has: int, table: RankTable) -> Exception:
    if table.alive is not None:
        return MixesRows(f"op '{op}' takes an X with a row for each sequence of the rank table")
    return EnforceNotMet(
        f"op '{op}' takes an X with a row for each of the {table.sequences} sequences of the rank"
        f" table, but it has {has}"
    )


def by_rank(x: Any, table: RankTable) -> Any:
    """The rows of x, or its sequences of the first level, in the order of ranks."""
    if not isinstance(x, Ragged) or x.bare:
        rows = x.rows if isinstance(x, Ragged) else jnp.asarray(x)
        if rows.shape[0] != table.sequences or (isinstance(x, Ragged) and x.each != ROWS):
            raise _other_number("reorder_lod_tensor_by_rank", rows.shape[0], table)
        return x.with_rows(rows[table.order]) if isinstance(x, Ragged) else rows[table.order]
    return _permuted(x, table.order, ("by rank", x.key, table.key))


def by_number(x: Any, table: RankTable) -> Any:
    """The inverse of by_rank, for a gradient: rows or sequences in their original order."""
    ranks = table.ranks()
    if not isinstance(x, Ragged) or x.bare:
        return x.with_rows(x.rows[ranks]) if isinstance(x, Ragged) else jnp.asarray(x)[ranks]
    return _permuted(
        x,
        ranks,
        (
            x.key[1]
            if isinstance(x.key, tuple) and x.key[:1] == ("by rank",)
            else ("by number", x.key, table.key)
        ),
    )


def _permuted(x: Ragged, order: Any, key: Hashable) -> Ragged:
    """Sequence n of the first level is sequence order[n] of x."""
    if x.offsets[0].shape[0] - 1 != order.shape[0]:
        raise EnforceNotMet(
            f"op 'reorder_lod_tensor_by_rank' takes an X with the {order.shape[0]} sequences of the"
            f" rank table, but it has {x.offsets[0].shape[0] - 1}"
        )
    offsets: list[Any] = []
    source = order
    for level in x.offsets:
        lengths = (level[1:] - level[:-1])[source]
        new = jnp.concatenate([jnp.zeros((1,), jnp.int32), jnp.cumsum(lengths, dtype=jnp.int32)])
        room = (
            x.capacity
            if len(offsets) == len(x.offsets) - 1
            else x.offsets[len(offsets) + 1].shape[0] - 1
        )
        number = jnp.arange(room, dtype=jnp.int32)
        holder = jnp.minimum(segments(new, room), max(lengths.shape[0] - 1, 0))
        moved = level[source][holder] + number - new[holder] if lengths.shape[0] else number
        # padding stays: copies are copies, and zeros are zeros
        source = jnp.where(number < new[-1], moved, number)
        offsets.append(new)
    return replace(
        x, rows=jnp.take(x.rows, source, axis=0, mode="clip"), offsets=tuple(offsets), key=key
    )
