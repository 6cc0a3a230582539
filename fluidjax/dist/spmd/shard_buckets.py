"""Blocks of arrays that belong to ranks, placed side by side so that all ranks can run the same op.

A bucket is an array with one row for each rank. Each large block of a rank has its own bucket, the
largest first; its small blocks share one. If the ranks' loads are about equal, so are the lengths
of the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...base.components import components
from ...ops.sharding import ALONE


@dataclass(frozen=True)
class OwnedBlock:
    """A block of a flattened array: `size` elements from `start` on belong to `rank`."""

    name: str
    rank: int
    start: int
    size: int


@dataclass(frozen=True)
class ShardBucket:
    """The layout: (block, its first column), rank by rank. width: the longest row."""

    blocks: tuple[tuple[OwnedBlock, int], ...]
    width: int

    @property
    def names(self) -> tuple[str, ...]:
        """The arrays with a block here, in the order of their first blocks."""
        return tuple(dict.fromkeys(b.name for b, _ in self.blocks))


def buckets(blocks: Iterable[OwnedBlock], ranks: int) -> list[ShardBucket]:
    """The buckets of these blocks."""
    large: list[list[OwnedBlock]] = [[] for _ in range(ranks)]
    small: list[list[OwnedBlock]] = [[] for _ in range(ranks)]
    for block in blocks:
        (large if block.size >= ALONE else small)[block.rank].append(block)
    for found in large:
        found.sort(key=lambda b: -b.size)  # stable: equal ones keep the order of the arrays
    made = []
    for level in range(max(map(len, large), default=0)):
        here = [found[level] for found in large if level < len(found)]
        made.append(ShardBucket(tuple((b, 0) for b in here), max(b.size for b in here)))
    if any(small):
        made.append(_joined(small))
    return made


def _joined(rows: Sequence[Sequence[OwnedBlock]]) -> ShardBucket:
    blocks, width = [], 0
    for row in rows:
        at = 0
        for block in row:
            blocks.append((block, at))
            at += block.size
        width = max(width, at)
    return ShardBucket(tuple(blocks), width)


def connected(found: Sequence[ShardBucket]) -> list[list[int]]:
    """The numbers of the buckets in groups: two that share an array are in one group."""
    return components(one.names for one in found)


def spans(
    found: Sequence[ShardBucket], wholes: Mapping[str, int], single: bool = False
) -> tuple[int, ...]:
    """The attribute `spans` (ops/dealing.py) of these buckets; wholes: the position of each array
    among the op's.

    single: the arrays have one element each, repeated for the whole block.
    """
    return tuple(
        n
        for i, one in enumerate(found)
        for b, at in one.blocks
        for n in (wholes[b.name], i, b.rank, at, 0 if single else b.start, b.size)
    )
