"""Ops over arrays whose blocks belong to the ranks, as a dispatcher assigns blocks to pservers.
Paddle has none of them.

A shard bucket is an array with one row per rank. `spans` describes its layout by six numbers for
each block: (whole array, bucket, rank, column, first element in the flattened whole array, number
of elements). A whole array of one element may be repeated: its span then covers several columns.
Unused columns are zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from . import loops
from .collective import ring_of
from .infer import Spec
from .registry import Array, Ints, op
from .sharding import shapes_of
from .traits import ALL, collective, mixes


class Block(NamedTuple):
    """One span, in words."""

    whole: int
    bucket: int
    rank: int
    at: int
    start: int
    size: int


def blocks_of(spans: Sequence[int]) -> list[Block]:
    """The spans, six numbers each."""
    return [Block(*spans[i : i + 6]) for i in range(0, len(spans), 6)]


def _grouped(
    blocks: Sequence[Block], field: Literal["whole", "bucket"], count: int
) -> list[list[Block]]:
    """The blocks of each whole array, or of each bucket."""
    found: list[list[Block]] = [[] for _ in range(count)]
    for b in blocks:
        found[getattr(b, field)].append(b)
    return found


def _bin_specs(X: tuple[Spec, ...], *, widths: Ints, spans: Ints, **_: Any) -> tuple[Spec, ...]:
    first = {b.bucket: X[b.whole].dtype for b in reversed(blocks_of(spans))}
    return tuple(Spec((width,), first[i]) for i, width in enumerate(widths))


_Like = tuple[tuple[int, int, int], ...]


def _like(row: Sequence[Block]) -> _Like:
    """The properties that a rank's row may share with others: the whole array, column and number of
    elements of each block.
    """
    return tuple((b.whole, b.at, b.size) for b in row)


def _by_rank(blocks: Sequence[Block], ranks: int) -> list[list[Block]]:
    """The blocks of each rank, by their columns."""
    found: list[list[Block]] = [[] for _ in range(ranks)]
    for b in blocks:
        found[b.rank].append(b)
    return [sorted(row, key=lambda b: b.at) for row in found]


def _joined(parts: list[Any], axis: int = 0) -> Any:
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts, axis)


def _row(
    X: Sequence[Any],
    like: _Like,
    width: int,
    elements: Callable[[int, Any, int], Any],
    many: tuple[int, ...] = (),
) -> Any:
    """Equally divided rows, [*many, width]. elements: (number of the block, flat array, size) ->
    the block's elements in these rows.
    """
    parts, end = [], 0
    dtype = X[like[0][0]].dtype if like else X[0].dtype
    for k, (whole, at, size) in enumerate(like):
        if at > end:
            parts.append(jnp.zeros((*many, at - end), dtype))
        flat = jnp.ravel(X[whole])
        parts.append(
            jnp.broadcast_to(flat, (*many, size)) if flat.size == 1 else elements(k, flat, size)
        )
        end = at + size
    if end < width:
        parts.append(jnp.zeros((*many, width - end), dtype))
    return _joined(parts, len(many))


def _runs(
    X: Sequence[Any], rows: Sequence[Sequence[Block]]
) -> Iterator[tuple[_Like, int, Sequence[Block]]]:
    """(shared properties, number of ranks, first rank) of equally divided rows of consecutive
    ranks, in the order of their elements.
    """
    like, many, first = _like(rows[0]), 1, rows[0]
    for row in rows[1:]:
        found = _like(row)
        if found == like and all(
            b.start == a.start + many * a.size or X[a.whole].size == 1
            for a, b in zip(first, row, strict=True)
        ):
            many += 1
            continue
        yield like, many, first
        like, many, first = found, 1, row
    yield like, many, first


def _rows(X: Sequence[Any], blocks: Sequence[Block], width: int, ranks: int) -> Any:
    """A bucket with all its rows, [ranks, width]. The number of slices is that of the runs, not of
    the ranks.
    """
    parts = []
    for like, many, first in _runs(X, _by_rank(blocks, ranks)):

        def elements(
            k: int, flat: Any, size: int, many: int = many, first: Sequence[Block] = first
        ) -> Any:
            return flat[first[k].start : first[k].start + many * size].reshape(many, size)

        parts.append(_row(X, like, width, elements, (many,)))
    return _joined(parts)


def _own(X: Sequence[Any], blocks: Sequence[Block], width: int, ranks: int, rank: Any) -> Any:
    """The row of one rank, known at run time: one branch per kind of row, which looks up where the
    rank's blocks begin.
    """
    rows = _by_rank(blocks, ranks)
    likes = [_like(row) for row in rows]
    kinds = list(dict.fromkeys(likes))

    def branch(kind: _Like) -> Callable[[Any], Any]:
        starts = np.array(
            [
                [b.start for b in row] if like == kind else [0] * len(kind)
                for row, like in zip(rows, likes, strict=True)
            ]
        )

        def own(rank: Any) -> Any:
            return _row(
                X,
                kind,
                width,
                lambda k, flat, size: jax.lax.dynamic_slice(
                    flat, (jnp.asarray(starts[:, k])[rank],), (size,)
                ),
            )

        return own

    branches = [branch(kind) for kind in kinds]
    if len(branches) == 1:
        return branches[0](rank)
    number = {kind: i for i, kind in enumerate(kinds)}
    return loops.switch(jnp.asarray([number[like] for like in likes])[rank], branches, rank)


@op(outs="Out*", infer=_bin_specs, rows=mixes("X"), ranks=collective(scatters=True))
def c_deal(X: list[Array], *, spans: Ints, widths: Ints, nranks: int, ring_id: int = 0):
    """Out[i] = this rank's row of bucket i, from arrays X that are equal on all ranks."""
    found = ring_of("c_deal", nranks)
    by_bucket = _grouped(blocks_of(spans), "bucket", len(widths))
    return [
        _own(X, of_bucket, width, nranks, found.rank)
        for of_bucket, width in zip(by_bucket, widths, strict=True)
    ]


@op(outs="Out*", infer=_bin_specs, rows=mixes("X"), ranks=collective(scatters=True))
def c_deal_reducescatter(
    X: list[Array], *, spans: Ints, widths: Ints, nranks: int, ring_id: int = 0
):
    """Out[i] = this rank's row of bucket i, from the sums of X over the ranks."""
    found = ring_of("c_deal_reducescatter", nranks)
    out = []
    for of_bucket, width in zip(
        _grouped(blocks_of(spans), "bucket", len(widths)), widths, strict=True
    ):
        rows = _rows(X, of_bucket, width, nranks)
        out.append(rows[0] if found.axis is None else jax.lax.psum_scatter(rows, found.axis))
    return out


def _exchanged_specs(
    X: tuple[Spec, ...], *, widths: Ints, spans: Ints, nranks: int, ring_id: int
) -> tuple[Spec, ...]:
    return tuple(
        Spec((nranks, *s.shape), s.dtype) for s in _bin_specs(X, widths=widths, spans=spans)
    )


@op(outs="Out*", infer=_exchanged_specs, rows=mixes("X"), ranks=collective(scatters=True))
def c_deal_alltoall(X: list[Array], *, spans: Ints, widths: Ints, nranks: int, ring_id: int = 0):
    """Out[i][t] = this rank's row of bucket i, from rank t's X."""
    found = ring_of("c_deal_alltoall", nranks)
    out = []
    for of_bucket, width in zip(
        _grouped(blocks_of(spans), "bucket", len(widths)), widths, strict=True
    ):
        rows = _rows(X, of_bucket, width, nranks)
        out.append(rows if found.axis is None else jax.lax.all_to_all(rows, found.axis, 0, 0))
    return out


@op(outs="Out", infer=lambda *, nranks: Spec((nranks,), "int32"))
def c_arrival_order(*, nranks: int, key: Any):
    """Out = the ranks in the order in which their messages arrive: a new random permutation, equal
    on all ranks.
    """
    return jax.random.permutation(key, nranks).astype(jnp.int32)


@op(outs="Out", infer=lambda X, Order, *, at: Spec(X.shape[1:], X.dtype), rows=mixes("X"))
def c_arrived(X: Array, Order: Array, *, at: int = 0):
    """Out = X[Order[at]]: the X, of all ranks', that arrives as number `at`."""
    return jax.lax.dynamic_index_in_dim(X, Order[at], 0, keepdims=False)


def _answered_specs(
    X: tuple[Spec, ...], Order: Spec, *, shapes: Ints, spans: Ints, nranks: int, ring_id: int
) -> tuple[Spec, ...]:
    return _whole_specs(X, shapes=shapes, spans=spans)


@op(outs="Out*", infer=_answered_specs, rows=mixes("X"), ranks=collective(scatters=True))
def c_deal_answer(
    X: list[Array], Order: Array, *, spans: Ints, shapes: Ints, nranks: int, ring_id: int = 0
):
    """Out[i] = the whole array in the buckets after this rank's message arrived.

    X: the row of every bucket after each arrival, in order, [nranks, width]. Order: the output of
    c_arrival_order.
    """
    found = ring_of("c_deal_answer", nranks)
    place = jnp.argsort(Order)  # the position of each rank's arrival
    by_rank = [x[place] for x in X]
    rows = [x if found.axis is None else jax.lax.all_to_all(x, found.axis, 0, 0) for x in by_rank]
    wanted = shapes_of(shapes)
    by_whole = _grouped(blocks_of(spans), "whole", len(wanted))
    return [_whole(rows, of_whole, shape) for of_whole, shape in zip(by_whole, wanted, strict=True)]


def _whole_specs(X: tuple[Spec, ...], *, shapes: Ints, spans: Ints, **_: Any) -> tuple[Spec, ...]:
    first = {b.whole: X[b.bucket].dtype for b in blocks_of(spans)}
    return tuple(Spec(shape, first[i]) for i, shape in enumerate(shapes_of(shapes)))


@op(outs="Out*", infer=_whole_specs, rows=mixes("X"), ranks=collective(agree=ALL))
def c_deal_allgather(X: list[Array], *, spans: Ints, shapes: Ints, nranks: int, ring_id: int = 0):
    """Out[i] = the whole array whose blocks are in the buckets X; shapes: as shapes_of reads
    them.
    """
    found = ring_of("c_deal_allgather", nranks)
    rows = [x[None] if found.axis is None else jax.lax.all_gather(x, found.axis) for x in X]
    wanted = shapes_of(shapes)
    by_whole = _grouped(blocks_of(spans), "whole", len(wanted))
    return [_whole(rows, of_whole, shape) for of_whole, shape in zip(by_whole, wanted, strict=True)]


def _whole(rows: Sequence[Any], blocks: Sequence[Block], shape: tuple[int, ...]) -> Any:
    """A whole array from the rows of buckets, with one slice per run of blocks that lie below one
    another.
    """
    parts: list[Any] = []
    ordered = sorted(blocks, key=lambda b: b.start)
    first, many = ordered[0], 0
    for b in [*ordered, None]:
        if b is not None and (b.bucket, b.at, b.size, b.rank) == (
            first.bucket,
            first.at,
            first.size,
            first.rank + many,
        ):
            many += 1
            continue
        parts.append(
            rows[first.bucket][
                first.rank : first.rank + many, first.at : first.at + first.size
            ].reshape(-1)
        )
        if b is not None:
            first, many = b, 1
    return _joined(parts)[: math.prod(shape)].reshape(shape)
