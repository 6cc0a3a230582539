"""Ragged: the value of a LoDTensor within a step, see docs/lod.md.

Rows are packed sequence after sequence and padded at the end; offsets give the beginnings of
sequences. Ops that know sequences work on row numbers (:meth:`Ragged.sequence`) or on a padded view
[N, longest, ...] (:func:`view`, :func:`pack`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet, MixesRows

ROWS = "rows"


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("rows", "offsets", "alive"),
    meta_fields=("longest", "key", "padded", "bare", "most", "each", "nothing"),
)
@dataclass(frozen=True)
class Ragged:
    """Packed rows and the offsets of their sequences.

    rows: [capacity, ...]; the first ``count`` are true. offsets: for each level an int32 array of N
    + 1 entries from 0 to the number of entries of the next level (of true rows, for the last).
    longest: for each level an upper bound of the lengths. key: equal for two values exactly if
    their offsets are. padded: capacity and longest may exceed the true sizes. bare: a plain array
    for the program, with known padding. most: for each level an upper bound of the rows of a
    sequence, if it is tighter than `longest`. In padded values, a level below the first may end
    with empty filler sequences; the level above gives the true number. alive: the number of true
    sequences of the first level, if that has fillers too. each: the key of values with a row for
    each sequence then; ROWS: this is such a value itself, or another array with only that many true
    rows. nothing: a number that is fetched as [[nothing]] in one sequence if there are no rows; ops
    see no row.
    """

    rows: Any
    offsets: tuple[Any, ...]
    longest: tuple[int, ...]
    key: Hashable
    padded: bool = False
    bare: bool = False
    most: tuple[int, ...] | None = None
    each: Hashable = None
    alive: Any = None
    nothing: float | None = None

    @property
    def capacity(self) -> int:
        return self.rows.shape[0]

    @property
    def dtype(self) -> Any:
        return self.rows.dtype

    @property
    def sequences(self) -> int:
        """The number of sequences of the last level."""
        return self.offsets[-1].shape[0] - 1

    @property
    def count(self) -> Any:
        """The number of true rows, a scalar."""
        return self.offsets[-1][-1]

    @property
    def lengths(self) -> Any:
        """The length of each sequence of the last level, [N]."""
        return self.offsets[-1][1:] - self.offsets[-1][:-1]

    @property
    def form(self) -> tuple[Any, ...]:
        """Everything that a compiled step is specialised to."""
        sizes = tuple(level.shape[0] for level in self.offsets)
        return (
            self.rows.shape,
            self.rows.dtype,
            sizes,
            self.longest,
            self.key,
            self.padded,
            self.most,
            self.each,
            self.alive is None,
        )

    def rows_in(self, level: int) -> int:
        """The largest number of rows of a sequence of a level."""
        return min(
            self.capacity,
            math.prod(self.longest[level:]) if self.most is None else self.most[level],
        )

    def kept(self) -> Any:
        """Which rows are true, [capacity]."""
        return jnp.arange(self.capacity, dtype=jnp.int32) < self.count

    def sequence(self) -> Any:
        """The sequence number of each row, [capacity]; N for a padded row."""
        return segments(self.offsets[-1], self.capacity)

    def with_rows(self, rows: Any, bare: bool | None = None) -> Ragged:
        """Other rows of the same sequences."""
        return replace(self, rows=rows, bare=self.bare if bare is None else bare, nothing=None)


def some_rows(rows: Any, count: Any, key: Hashable) -> Ragged:
    """A plain array whose first `count` rows are true."""
    offsets = jnp.stack([jnp.zeros((), jnp.int32), jnp.asarray(count).astype(jnp.int32)])
    return Ragged(rows, (offsets,), (rows.shape[0],), key, padded=True, bare=True, each=ROWS)


def by_sequence(x: Ragged, rows: Any) -> Any:
    """A row for each sequence of x's last level, without its LoD: a plain array, or one in which
    rows of filler sequences are padding.
    """
    if x.alive is None:
        return rows
    return (
        some_rows(rows, x.alive, x.each)
        if len(x.offsets) == 1
        else replace(above(x, rows), bare=True)
    )


def above(x: Ragged, rows: Any) -> Ragged:
    """A row for each sequence of the last of several levels, in the sequences of the level above."""
    return Ragged(
        rows, x.offsets[:-1], x.longest[:-1], ("above", x.key), x.padded, each=x.each, alive=x.alive
    )


def segments(offsets: Any, count: int) -> Any:
    """The sequence that contains each of 0, 1, ... count - 1: [count] integers; N beyond the last."""
    return jnp.searchsorted(
        offsets[1:], jnp.arange(count, dtype=jnp.int32), side="right", method="scan_unrolled"
    )


_MADE = count()


def bounded(rows: Any, offsets: Any, longest: int) -> Ragged:
    """A value of one LoD level whose sizes are data: `rows` may have room for more than the true
    rows. Its key is unique.

    rows: [capacity, ...]; copies of true rows, or anything finite, follow the true ones. longest:
    no sequence is longer.
    """
    return Ragged(rows, (jnp.asarray(offsets, jnp.int32),), (longest,), made_key(), padded=True)


def made_key() -> Hashable:
    """A key that no other value has."""
    return "made", next(_MADE)


def by_data(x: Ragged) -> bool:
    """Whether the number of true rows is data, with room for the largest possible number."""
    return isinstance(x.key, tuple) and x.key[:1] == ("made",) and x.padded


def chosen(x: Ragged, keep: Any) -> Ragged:
    """The rows of one LoD level where `keep` [capacity] is true, in their sequences."""
    keep = keep & x.kept()
    ends = jnp.cumsum(keep, dtype=jnp.int32)
    offsets = jnp.concatenate([jnp.zeros((1,), jnp.int32), ends])[x.offsets[-1]]
    at = jnp.searchsorted(
        ends, jnp.arange(1, x.capacity + 1, dtype=jnp.int32), method="scan_unrolled"
    )
    return bounded(jnp.take(x.rows, at, axis=0, mode="clip"), offsets, x.longest[-1])


def rows_of(value: Any) -> Any:
    """The array of a value, with its padding; also for lists and None."""
    if isinstance(value, list | tuple):
        return [rows_of(v) for v in value]
    return value.rows if isinstance(value, Ragged) else value


def like(value: Any, rows: Any) -> Any:
    """`rows` with the offsets of `value`, if it has any; also for lists."""
    if isinstance(value, list | tuple):
        return [like(v, r) for v, r in zip(value, rows, strict=True)]
    return value.with_rows(rows) if isinstance(value, Ragged) else rows


def sequences_of(op: str, slot: str, value: Any, levels: int | None = None) -> Ragged:
    """`value`, if it has a LoD (of `levels` levels). Otherwise raises EnforceNotMet with advice how
    to feed one.
    """
    if not isinstance(value, Ragged) or value.bare:
        raise EnforceNotMet(
            f"input {slot} of op '{op}' holds no LoD, so it has no sequences; feed what it comes"
            " from as a LoDTensor, such as fluid.create_lod_tensor(data, [lengths], place)"
        )
    if levels is not None and len(value.offsets) != levels:
        raise EnforceNotMet(
            f"input {slot} of op '{op}' has {len(value.offsets)} LoD levels, but the op takes"
            f" {levels}"
        )
    return value


def same_sequences(op: str, values: dict[str, Ragged]) -> None:
    """Raises unless all have equal offsets: MixesRows if padding hides whether they fit, else
    EnforceNotMet.
    """
    (first, one), *others = values.items()
    for name, other in others:
        if other.key == one.key:
            continue
        if one.padded or other.padded:
            raise MixesRows(f"op '{op}' takes {first} and {name} with different LoDs")
        if other.sequences != one.sequences or other.capacity != one.capacity:
            raise EnforceNotMet(
                f"op '{op}' takes {first} and {name} row by row, but {first} has {one.capacity}"
                f" rows in {one.sequences} sequences and {name} {other.capacity} in"
                f" {other.sequences}"
            )


def counted(op: str, **values: Any) -> Ragged | None:
    """The value that gives the true rows of an op that takes these row by row; None if none has
    padding.

    Raises MixesRows if padding hides whether their rows fit.
    """
    padded = [v for v in values.values() if isinstance(v, Ragged) and v.padded]
    if not padded:
        return None
    for slot, value in values.items():
        if value is not None and not (isinstance(value, Ragged) and value.key == padded[0].key):
            raise MixesRows(
                f"op '{op}' takes {', '.join(values)} row by row, and {slot} has other rows than"
                " the padded ones"
            )
    return padded[0]


def beside(padded: Ragged | None, rows: Any) -> Any:
    """An output with the rows of the result of :func:`counted`, without their LoD; unchanged if
    that is None.
    """
    return rows if padded is None else padded.with_rows(rows, bare=True)


def mask(x: Ragged) -> Any:
    """Which cells of the view hold a row, [N, longest]."""
    return jnp.arange(x.longest[-1], dtype=jnp.int32) < x.lengths[:, None]


def view(x: Ragged, reverse: bool = False) -> Any:
    """[N, longest, ...]: cell (n, t) is row t of sequence n, counted from its end if `reverse`; 0
    beyond its length.
    """
    if not x.capacity:
        return jnp.zeros((x.sequences, x.longest[-1], *x.rows.shape[1:]), x.dtype)
    return _moved(x.rows, *_rows_of_cells(x, reverse), *_cells_of_rows(x, reverse))


def pack(x: Ragged, cells: Any, reverse: bool = False) -> Any:
    """The inverse of :func:`view`: [capacity, ...] from [N, longest, ...]; 0 in padded rows."""
    if not (x.sequences and x.longest[-1]):
        return jnp.zeros((x.capacity, *cells.shape[2:]), cells.dtype)
    return _moved(cells, *_cells_of_rows(x, reverse), *_rows_of_cells(x, reverse))


def _rows_of_cells(x: Ragged, reverse: bool) -> tuple[tuple[Any, ...], Any]:
    """The row of each cell of the view, and which cells have one; both [N, longest]."""
    at = jnp.arange(x.longest[-1], dtype=jnp.int32)
    first, end = x.offsets[-1][:-1, None], x.offsets[-1][1:, None]
    rows = jnp.clip(end - 1 - at if reverse else first + at, 0, max(x.capacity - 1, 0))
    return (rows,), mask(x)


def _cells_of_rows(x: Ragged, reverse: bool) -> tuple[tuple[Any, ...], Any]:
    """The cell of each row in the view, and which rows are true; all [capacity]."""
    number = jnp.arange(x.capacity, dtype=jnp.int32)
    sequence = jnp.minimum(x.sequence(), x.sequences - 1)
    at = x.offsets[-1][sequence + 1] - 1 - number if reverse else number - x.offsets[-1][sequence]
    return (sequence, jnp.clip(at, 0, x.longest[-1] - 1)), x.kept()


@jax.custom_jvp
def _moved(x: Any, source: Any, has: Any, target: Any, stays: Any) -> Any:
    """x[source] where `has`, else 0. `target` is the inverse: the positions of x's rows in the
    result, by which the gradient is gathered too. JAX's own gradient would be a scatter, on a CPU a
    loop with an iteration per row.
    """
    moved = x[source]
    return jnp.where(_spread(has, moved.ndim), moved, np.zeros((), x.dtype))


@_moved.defjvp
def _moved_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    (_, _, has, target, stays), given = primals, tangents[0]
    kept = jnp.where(_spread(stays, given.ndim), given, np.zeros((), given.dtype))
    zeros = jnp.zeros((*has.shape, *given.shape[stays.ndim :]), given.dtype)
    return _moved(*primals), zeros.at[target].add(kept)


def without_fillers(x: Ragged) -> Ragged:
    """The value without filler sequences, if its offsets are known. Its rows keep their padding."""
    count = x.offsets[0].shape[0] - 1 if x.alive is None else int(x.alive)
    offsets = []
    for level in x.offsets:
        offsets.append(np.asarray(level)[: count + 1])
        count = int(offsets[-1][-1])
    return replace(x, offsets=tuple(offsets), each=None, alive=None)


def trimmed(x: Ragged) -> Ragged:
    """The value with exact sizes, if the sizes are known."""
    exact = without_fillers(x)
    longest = tuple(int(np.diff(level).max(initial=0)) for level in exact.offsets)
    rows = x.rows[: int(exact.offsets[-1][-1])]
    return replace(exact, rows=rows, longest=longest, padded=False)


def filled(x: Ragged, value: Any) -> Any:
    """The rows with `value` in place of the padding."""
    return (
        jnp.where(_spread(x.kept(), x.rows.ndim), x.rows, np.asarray(value, x.dtype))
        if x.padded
        else x.rows
    )


def copied(x: Ragged) -> Any:
    """The rows with copies of the last true one in place of the padding, so that results there are
    as finite as elsewhere.
    """
    if not x.padded or not x.capacity:
        return x.rows
    last = jax.lax.dynamic_index_in_dim(x.rows, jnp.maximum(x.count - 1, 0), keepdims=True)
    return jnp.where(_spread(x.kept(), x.rows.ndim), x.rows, jax.lax.stop_gradient(last))


def _spread(flags: Any, ndim: int) -> Any:
    return flags.reshape(flags.shape + (1,) * (ndim - flags.ndim))
