"""Ops over arrays with one shard on each rank. Paddle has none of them.

The shards of an array are equal parts of its elements in order, padded with zeros to a multiple of
the ranks; rank r has part r, a flat array.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .collective import ring_of
from .infer import Spec
from .registry import Array, Ints, op
from .traits import ALL, collective, mixes


def piece_size(size: int, ranks: int) -> int:
    """The number of elements of each rank's shard of an array of `size`."""
    return -(-size // ranks)


def _pieces(x: Any, ranks: int) -> Any:
    """All shards, [ranks, size]."""
    each = piece_size(x.size, ranks)
    return jnp.pad(jnp.ravel(x), (0, each * ranks - x.size)).reshape(ranks, each)


def _piece_spec(x: Spec, nranks: int) -> Spec:
    return Spec(
        (-1,) if any(d < 0 for d in x.shape) else (piece_size(math.prod(x.shape), nranks),), x.dtype
    )


@op(
    outs="Out",
    infer=lambda X, *, nranks, ring_id: _piece_spec(X, nranks),
    rows=mixes("X"),
    ranks=collective(scatters=True),
)
def c_piece(X: Array, *, nranks: int, ring_id: int = 0):
    """Out = this rank's shard of X, which is equal on all ranks."""
    found = ring_of("c_piece", nranks)
    return jax.lax.dynamic_index_in_dim(_pieces(X, nranks), found.rank, 0, keepdims=False)


# elements: a larger array has its own message, which costs less than copying it
ALONE = 8192


def _messages(values: Sequence[Any], sizes: Sequence[int]) -> Iterator[list[int]]:
    """The groups of arrays that share a message: large ones alone, the others by dtype."""
    small: dict[Any, list[int]] = {}
    for i, (value, size) in enumerate(zip(values, sizes, strict=True)):
        if size >= ALONE:
            yield [i]
        else:
            small.setdefault(value.dtype, []).append(i)
    yield from small.values()


@op(
    outs="Out*",
    infer=lambda X, *, nranks, ring_id: tuple(_piece_spec(x, nranks) for x in X),
    rows=mixes("X"),
    ranks=collective(scatters=True),
)
def c_fused_reducescatter(X: list[Array], *, nranks: int, ring_id: int = 0):
    """Out[i] = this rank's shard of the sum of X[i] over the ranks; small arrays in one message."""
    found = ring_of("c_fused_reducescatter", nranks)
    done: dict[int, Any] = {}
    for members in _messages(X, [x.size for x in X]):
        cut = [_pieces(X[i], nranks) for i in members]
        joined = cut[0] if len(cut) == 1 else jnp.concatenate(cut, axis=1)
        mine = joined[0] if found.axis is None else jax.lax.psum_scatter(joined, found.axis)
        at = 0
        for i, part in zip(members, cut, strict=True):
            done[i] = mine[at : at + part.shape[1]]
            at += part.shape[1]
    return [done[i] for i in range(len(X))]


def shapes_of(flat: Sequence[int]) -> list[tuple[int, ...]]:
    """Shapes from a list with the rank and the dimensions of each: [2, 3, 4, 1, 5] is (3, 4), (5,)."""
    shapes, at = [], 0
    while at < len(flat):
        rank = flat[at]
        shapes.append(tuple(flat[at + 1 : at + 1 + rank]))
        at += 1 + rank
    return shapes


def flat_shapes(shapes: Sequence[Sequence[int]]) -> list[int]:
    """The list that shapes_of reads."""
    return [n for shape in shapes for n in (len(shape), *shape)]


def _whole_specs(
    X: tuple[Spec, ...], *, nranks: int, shapes: Ints, ring_id: int
) -> tuple[Spec, ...]:
    return tuple(Spec(shape, x.dtype) for shape, x in zip(shapes_of(shapes), X, strict=True))


@op(outs="Out*", infer=_whole_specs, rows=mixes("X"), ranks=collective(agree=ALL))
def c_fused_allgather(X: list[Array], *, nranks: int, shapes: Ints, ring_id: int = 0):
    """Out[i] = the array whose shards are X[i] of all ranks, small ones in one message; shapes: as
    shapes_of reads them.
    """
    found = ring_of("c_fused_allgather", nranks)
    wanted = shapes_of(shapes)
    done: dict[int, Any] = {}
    for members in _messages(X, [math.prod(shape) for shape in wanted]):
        mine = X[members[0]] if len(members) == 1 else jnp.concatenate([X[i] for i in members])
        rows = mine[None] if found.axis is None else jax.lax.all_gather(mine, found.axis)
        at = 0
        for i in members:
            each, shape = X[i].shape[0], wanted[i]
            done[i] = rows[:, at : at + each].reshape(-1)[: math.prod(shape)].reshape(shape)
            at += each
    return [done[i] for i in range(len(X))]
