"""Ops over arrays whose blocks belong to the ranks, as a dispatcher assigns blocks to pservers. Paddle has none of them.

A shard bucket is an array of which each rank has a row. `spans` says what lies where, six numbers for each block:
(which whole array, which bucket, rank, column, first element in the flattened whole array, number of elements).
A whole array of one element may stand for many: then the numbers of a span say in how many columns it lies. Columns that
hold nothing are zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

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


def _bin_specs(X: tuple[Spec, ...], *, widths: Ints, spans: Ints, **_: Any) -> tuple[Spec, ...]:
    first = {b.bucket: X[b.whole].dtype for b in reversed(blocks_of(spans))}
    return tuple(Spec((width,), first[i]) for i, width in enumerate(widths))


def _row(X: Sequence[Any], blocks: Sequence[Block], width: int) -> Any:
    """One rank's row of a bucket."""
    parts, at = [], 0
    for b in sorted(blocks, key=lambda b: b.at):
        if b.at > at:
            parts.append(jnp.zeros(b.at - at, X[b.whole].dtype))
        flat = jnp.ravel(X[b.whole])
        parts.append(jnp.broadcast_to(flat, (b.size,)) if flat.size == 1 else flat[b.start : b.start + b.size])
        at = b.at + b.size
    if at < width:
        parts.append(jnp.zeros(width - at, X[0].dtype if not blocks else X[blocks[0].whole].dtype))
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts)


def _runs(blocks: Sequence[Block], width: int, ranks: int) -> Iterator[list[Block]]:
    """The blocks of each rank in turn; those of several ranks together where their rows follow one another in one array."""
    by_rank: list[list[Block]] = [[] for _ in range(ranks)]
    for b in blocks:
        by_rank[b.rank].append(b)
    run: list[Block] = []
    for found in by_rank:
        whole = len(found) == 1 and found[0].size == width
        if run and whole and run[0].whole == found[0].whole and run[-1].start + width == found[0].start:
            run += found
            continue
        if run:
            yield run
        run = found if whole else []
        if not whole:
            yield found
    if run:
        yield run


def _rows(X: Sequence[Any], blocks: Sequence[Block], width: int, ranks: int) -> Any:
    """A bucket with all its rows, [ranks, width]."""
    parts = []
    for run in _runs(blocks, width, ranks):
        if len(run) > 1 and run[0].rank != run[-1].rank:
            flat, start = jnp.ravel(X[run[0].whole]), run[0].start
            parts.append(flat[start : start + width * len(run)].reshape(len(run), width))
        else:
            parts.append(_row(X, run, width)[None])
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts)


@op(outs="Out*", infer=_bin_specs, rows=mixes("X"), ranks=collective(scatters=True))
def c_deal(X: list[Array], *, spans: Ints, widths: Ints, nranks: int, ring_id: int = 0):
    """Out[i] = this rank's row of bucket i, of arrays X that are the same on all ranks."""
    found = ring_of("c_deal", nranks)
    blocks, out = blocks_of(spans), []
    for i, width in enumerate(widths):
        mine = [[b for b in blocks if b.bucket == i and b.rank == r] for r in range(nranks)]
        if len(list(_runs([b for bs in mine for b in bs], width, nranks))) == 1:  # all rows follow one another: no copy of the rest
            rows = _rows(X, [b for bs in mine for b in bs], width, nranks)
            out.append(jax.lax.dynamic_index_in_dim(rows, found.rank, 0, keepdims=False))
            continue
        out.append(jax.lax.switch(found.rank, [lambda bs=bs, width=width: _row(X, bs, width) for bs in mine]))
    return out


@op(outs="Out*", infer=_bin_specs, rows=mixes("X"), ranks=collective(scatters=True))
def c_deal_reducescatter(X: list[Array], *, spans: Ints, widths: Ints, nranks: int, ring_id: int = 0):
    """Out[i] = this rank's row of bucket i, of the sums of X over the ranks."""
    found = ring_of("c_deal_reducescatter", nranks)
    blocks, out = blocks_of(spans), []
    for i, width in enumerate(widths):
        rows = _rows(X, [b for b in blocks if b.bucket == i], width, nranks)
        out.append(rows[0] if found.axis is None else jax.lax.psum_scatter(rows, found.axis))
    return out


def _exchanged_specs(X: tuple[Spec, ...], *, widths: Ints, spans: Ints, nranks: int, ring_id: int) -> tuple[Spec, ...]:
    return tuple(Spec((nranks, *s.shape), s.dtype) for s in _bin_specs(X, widths=widths, spans=spans))


@op(outs="Out*", infer=_exchanged_specs, rows=mixes("X"), ranks=collective(scatters=True))
def c_deal_alltoall(X: list[Array], *, spans: Ints, widths: Ints, nranks: int, ring_id: int = 0):
    """Out[i][t] = this rank's row of bucket i, of rank t's X."""
    found = ring_of("c_deal_alltoall", nranks)
    blocks, out = blocks_of(spans), []
    for i, width in enumerate(widths):
        rows = _rows(X, [b for b in blocks if b.bucket == i], width, nranks)
        out.append(rows if found.axis is None else jax.lax.all_to_all(rows, found.axis, 0, 0))
    return out


@op(outs="Out", infer=lambda *, nranks: Spec((nranks,), "int32"))
def c_arrival_order(*, nranks: int, key: Any):
    """Out = the ranks in the order in which what they sent arrives: a permutation that is drawn anew, the same on all ranks."""
    return jax.random.permutation(key, nranks).astype(jnp.int32)


@op(outs="Out", infer=lambda X, Order, *, at: Spec(X.shape[1:], X.dtype), rows=mixes("X"))
def c_arrived(X: Array, Order: Array, *, at: int = 0):
    """Out = X[Order[at]]: what comes as number `at`, of all ranks' X."""
    return jax.lax.dynamic_index_in_dim(X, Order[at], 0, keepdims=False)


def _answered_specs(X: tuple[Spec, ...], Order: Spec, *, shapes: Ints, spans: Ints, nranks: int, ring_id: int) -> tuple[Spec, ...]:
    return _whole_specs(X[::nranks], shapes=shapes, spans=spans)


@op(outs="Out*", infer=_answered_specs, rows=mixes("X"), ranks=collective(scatters=True))
def c_deal_answer(X: list[Array], Order: Array, *, spans: Ints, shapes: Ints, nranks: int, ring_id: int = 0):
    """Out[i] = the whole array in the buckets, as it was after what this rank sent had come.

    X: of every bucket the row after each arrival, in order (so nranks rows a bucket). Order: as of c_arrival_order.
    """
    found = ring_of("c_deal_answer", nranks)
    place = jnp.argsort(Order)  # at which place each rank's came
    rows = []
    for i in range(0, len(X), nranks):
        by_rank = jnp.stack(X[i : i + nranks])[place]
        rows.append(by_rank if found.axis is None else jax.lax.all_to_all(by_rank, found.axis, 0, 0))
    blocks = blocks_of(spans)
    return [_whole(rows, [b for b in blocks if b.whole == i], shape) for i, shape in enumerate(shapes_of(shapes))]


def _whole_specs(X: tuple[Spec, ...], *, shapes: Ints, spans: Ints, **_: Any) -> tuple[Spec, ...]:
    first = {b.whole: X[b.bucket].dtype for b in blocks_of(spans)}
    return tuple(Spec(shape, first[i]) for i, shape in enumerate(shapes_of(shapes)))


@op(outs="Out*", infer=_whole_specs, rows=mixes("X"), ranks=collective(agree=ALL))
def c_deal_allgather(X: list[Array], *, spans: Ints, shapes: Ints, nranks: int, ring_id: int = 0):
    """Out[i] = the whole array whose blocks are in the buckets X; shapes: as shapes_of reads them."""
    found = ring_of("c_deal_allgather", nranks)
    rows = [x[None] if found.axis is None else jax.lax.all_gather(x, found.axis) for x in X]
    blocks = blocks_of(spans)
    return [_whole(rows, [b for b in blocks if b.whole == i], shape) for i, shape in enumerate(shapes_of(shapes))]


def _whole(rows: Sequence[Any], blocks: Sequence[Block], shape: tuple[int, ...]) -> Any:
    """A whole array out of the rows of buckets."""
    parts: list[Any] = []
    run: list[Block] = []
    ordered = sorted(blocks, key=lambda b: b.start)

    def close() -> None:
        if run:
            first, bucket = run[0], rows[run[0].bucket]
            one = bucket[first.rank, first.at : first.at + first.size]
            parts.append(one if len(run) == 1 else bucket[first.rank : first.rank + len(run)].reshape(-1))
            run.clear()

    for b in ordered:
        full = b.at == 0 and b.size == rows[b.bucket].shape[1]
        follows = run and full and b.bucket == run[-1].bucket and b.rank == run[-1].rank + 1 and run[-1].size == b.size
        if not follows:
            close()
        run.append(b)
    close()
    flat = parts[0] if len(parts) == 1 else jnp.concatenate(parts)
    return flat[: math.prod(shape)].reshape(shape)
