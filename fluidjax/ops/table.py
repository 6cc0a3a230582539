"""Embedding tables whose rows are divided over the ranks of a ring.

These ops are fluidjax's own. The payload depends on the batch alone: all ranks get all ids, a
reduce-scatter returns the rows (one rank has each row, the others add zeros), and gradients go to
all ranks as (ids, values), of which each rank uses its own. No array of the table's height is made.
All ranks have equally many ids.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet, FluidValueError, ShapeError
from .bounds import table_height
from .collective import ring_of
from .infer import Spec
from .registry import Array, Int64, Ints, Longs, grad_of, op
from .ring import Ring
from .selected import SelectedRows
from .traits import Bounds, collective, mixes, row_wise


@dataclass(frozen=True)
class Split:
    """The layout of `height` rows over `count` ranks. A table has parts.

    With `dealt`, the rows are assigned round-robin, as in Fluid's is_distributed tables: row r is
    row r // n of part r % n. Otherwise the parts are consecutive runs that begin at `starts`
    (default: of equal length). owners: the rank of each part, default the part's number; a rank
    with several parts has them one after another.
    """

    height: int
    count: int
    dealt: bool = False
    owners: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.height < 1 or self.count < 1:
            raise FluidValueError(
                f"a table of {self.height} rows cannot be split over {self.count} devices"
            )
        wrong = [rank for rank in self.owners if not 0 <= rank < self.count]
        if wrong:
            raise FluidValueError(
                f"a part of a table is on rank {wrong[0]}, but there are {self.count} ranks"
            )
        runs = (*self.starts, self.height)
        if self.starts and (
            len(self.starts) != len(self.owners) or runs[0] or list(runs) != sorted(runs)
        ):
            raise FluidValueError(
                f"{len(self.owners)} parts of {self.height} rows cannot begin at the rows"
                f" {list(self.starts)}"
            )

    @property
    def parts(self) -> int:
        return len(self.owners) or self.count

    @cached_property
    def runs(self) -> tuple[tuple[int, int], ...]:
        """First row and number of rows of each part; a round-robin part has every parts-th row."""
        if self.dealt:
            return tuple((k, len(range(k, self.height, self.parts))) for k in range(self.parts))
        starts = self.starts or tuple(min(k * self._equal, self.height) for k in range(self.parts))
        return tuple((a, b - a) for a, b in zip(starts, (*starts[1:], self.height), strict=True))

    @cached_property
    def places(self) -> tuple[tuple[int, int], ...]:
        """The rank of each part, and its first row there."""
        free = [0] * self.count
        found = []
        for rank, (_, size) in zip(self.owners or range(self.count), self.runs, strict=True):
            found.append((rank, free[rank]))
            free[rank] += size
        return tuple(found)

    @property
    def _equal(self) -> int:
        return -(-self.height // self.parts)

    @cached_property
    def each(self) -> int:
        """The number of rows of every rank: the largest needed. Spare rows are zeros that are never
        read.
        """
        return max(at + size for (_, at), (_, size) in zip(self.places, self.runs, strict=True))

    def _part(self, rows: Any) -> Any:
        if self.dealt:
            return rows % self.parts
        if not self.starts:
            return rows // self._equal
        where = jnp if isinstance(rows, jax.Array) else np
        return where.searchsorted(np.asarray(self.starts, rows.dtype), rows, side="right") - 1

    def owner(self, rows: Any) -> Any:
        """The rank of each row."""
        part = self._part(rows)
        return _chosen(self.owners, part) if self.owners else part

    def place(self, rows: Any) -> Any:
        """The position of each row on its rank."""
        part = self._part(rows)
        if self.dealt:
            inside = rows // self.parts
        else:
            inside = rows - _chosen(self.starts, part) if self.starts else rows % self._equal
        return inside + _chosen([at for _, at in self.places], part) if self.owners else inside

    def rows_of(self, rank: int) -> np.ndarray:
        """The row numbers of a rank in order, [each] int64; those from `height` on are spare."""
        mine = np.full(self.each, self.height, np.int64)
        for (owner, at), (first, size) in zip(self.places, self.runs, strict=True):
            if owner == rank:
                mine[at : at + size] = first + np.arange(size) * (self.parts if self.dealt else 1)
        return mine

    def joined(self, shards: Any) -> np.ndarray:
        """The whole table [height, ...] on the host, from the shards one after another [count *
        each, ...].
        """
        shards = np.asarray(shards)
        order = np.concatenate([self.rows_of(k) for k in range(self.count)])
        table = np.empty((self.height, *shards.shape[1:]), shards.dtype)
        table[order[order < self.height]] = shards[order < self.height]
        return table

    def attrs(self) -> dict[str, Any]:
        """The attributes that describe the split to an op."""
        return {
            "nranks": self.count,
            "height": self.height,
            "dealt": self.dealt,
            "owners": self.owners,
            "starts": self.starts,
        }


def _chosen(values: Any, index: Any) -> Any:
    """values[index], in range for every existing row; in the index's dtype, unless a row number is
    too large for it.
    """
    known = np.asarray(values, np.int64)
    if known.max(initial=0) <= np.iinfo(index.dtype).max:
        known = known.astype(index.dtype)
    return (
        jnp.asarray(known).at[index].get(mode="clip")
        if isinstance(index, jax.Array)
        else known[np.minimum(index, len(known) - 1)]
    )


def lookup(shard: Any, ids: Any, split: Split, axis: str | None, padding_idx: int = -1) -> Any:
    """Out[..., :] = table[ids[...], :], 0 where the id is padding_idx (-1: none). ids are those of
    this rank.

    axis: the mesh axis of the ranks; None: there is one.
    """
    asked = _of_all(_narrow(ids.reshape(-1), split), axis)
    mine = (
        (split.owner(asked) == _rank(axis))
        & (asked != padding_idx)
        & (asked >= 0)
        & (asked < split.height)
    )
    found = (
        jnp.asarray(shard).at[jnp.where(mine, split.place(asked), 0)].get(mode="promise_in_bounds")
    )
    answers = jnp.where(mine[:, None], found, np.zeros((), shard.dtype))
    rows = answers if axis is None else jax.lax.psum_scatter(answers, axis, tiled=True)
    return rows.reshape(*ids.shape, shard.shape[1])


def owned(grad: SelectedRows, split: Split, axis: str | None, scale: float = 1.0) -> SelectedRows:
    """The sum over the ranks of a sparse gradient, times `scale`, restricted to this rank's rows,
    as rows of the shard.
    """
    if grad.height != split.height:
        raise FluidValueError(
            f"the gradient is of a table with {grad.height} rows, but {split.height} are split over"
            " the devices"
        )
    rows, values = _of_all(_narrow(grad.rows, split), axis), _of_all(grad.values, axis)
    mine = (split.owner(rows) == _rank(axis)) & (rows >= 0) & (rows < split.height)
    values = values if scale == 1.0 else values * np.asarray(scale, values.dtype)
    return SelectedRows(
        jnp.where(mine, split.place(rows), split.each),
        jnp.where(mine[:, None], values, np.zeros((), values.dtype)),
        split.each,
    )


def _of_all(x: Any, axis: str | None) -> Any:
    return x if axis is None else jax.lax.all_gather(x, axis, tiled=True)


def _rank(axis: str | None) -> Any:
    return 0 if axis is None else jax.lax.axis_index(axis)


def _narrow(rows: Any, split: Split) -> Any:
    rows = jnp.asarray(rows)
    return rows.astype(np.int32) if 2 * split.count * split.each < 2**31 else rows


# -- ops -------------------------------------------------------------------------------------------


def _split(
    kind: str, nranks: int, height: int, dealt: bool, owners: Any, starts: Any
) -> tuple[Split, Ring]:
    return Split(height, nranks, dealt, tuple(owners), tuple(starts)), ring_of(kind, nranks)


def _shard(kind: str, W: Any, split: Split) -> Any:
    if W.shape[0] != split.each:
        raise ShapeError(
            f"op '{kind}' takes the {split.each} rows of W that a rank holds, not {W.shape[0]}"
        )
    return W


def _looked_up(W: Spec, Ids: Spec, *, last_one: bool, **_attrs: Any) -> Spec:
    return Spec((*(Ids.shape[:-1] if last_one else Ids.shape), W.shape[1]), W.dtype)


@op(
    outs="Out",
    infer=_looked_up,
    rows=row_wise("Ids"),
    ranks=collective(),
    bounds=Bounds("Ids", "ids", table_height),
)
def c_table_lookup(
    W: Array, Ids: Array, *, nranks: int, height: Int64, dealt: bool = False, owners: Ints = (), starts: Longs = (),
    padding_idx: Int64 = -1, last_one: bool = False, ring_id: int = 0,
):  # fmt: skip
    """Out[..., :] = table[Ids[...], :], 0 where the id is padding_idx (-1: none); W: this rank's
    rows of the table.

    height: rows of the table. dealt, owners, starts: the layout of the rows (ops/table.py, Split).
    last_one: Ids is [..., 1], as in lookup_table, and Out lacks that dimension.
    """
    split, ring = _split("c_table_lookup", nranks, height, dealt, owners, starts)
    if last_one:
        if Ids.shape[-1:] != (1,):
            raise ShapeError(
                f"op 'c_table_lookup' takes ids of shape [..., 1], not {list(Ids.shape)}"
            )
        Ids = Ids.reshape(Ids.shape[:-1])
    return lookup(_shard("c_table_lookup", W, split), Ids, split, ring.axis, padding_idx)


@grad_of("c_table_lookup", "W Ids", nograd="Ids")
def _lookup_grad(W: Array, Ids: Array, d_Out: Array, *, height: Int64):
    """d_W = the sparse rows d_Out of the whole table at Ids, from this rank's part of the batch,
    including padding as in Paddle.
    """
    return SelectedRows(Ids.reshape(-1), d_Out.reshape(-1, W.shape[1]), height)


def _each(
    X: Spec, *, nranks: int, height: int, dealt: bool, owners: Any, starts: Any, **_attrs: Any
) -> Spec:
    return replace(
        X, shape=(Split(height, nranks, dealt, tuple(owners), tuple(starts)).each, *X.shape[1:])
    )


@op(outs="Out", infer=_each, rows=mixes("X"), ranks=collective())
def c_table_owned(
    X: Array | SelectedRows, *, nranks: int, height: Int64, dealt: bool = False, owners: Ints = (), starts: Longs = (),
    scale: float = 1.0, ring_id: int = 0,
):  # fmt: skip
    """Out = scale * the sum of the sparse X over the ranks, restricted to this rank's rows, as rows
    of its shard.
    """
    split, ring = _split("c_table_owned", nranks, height, dealt, owners, starts)
    if not isinstance(X, SelectedRows):
        raise EnforceNotMet(
            "op 'c_table_owned' takes sparse rows, such as the gradient of an embedding with"
            " is_sparse, not a plain array"
        )
    return owned(X, split, ring.axis, scale)


@op(outs="Out", infer=_each, rows=mixes("X"), ranks=collective())
def c_table_rows(
    X: Array,
    *,
    nranks: int,
    height: Int64,
    dealt: bool = False,
    owners: Ints = (),
    starts: Longs = (),
    ring_id: int = 0,
):
    """Out = this rank's rows of the table X, which is equal on all ranks; zeros in spare rows."""
    split, ring = _split("c_table_rows", nranks, height, dealt, owners, starts)
    rows = jnp.asarray(np.stack([split.rows_of(k) for k in range(nranks)]))[ring.rank]
    return jnp.asarray(X).at[rows].get(mode="fill", fill_value=0)
