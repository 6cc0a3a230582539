"""Offsets in one block of memory for variables whose lives are known (dynamic storage allocation)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

EXACT = 2500  # Up to so many variables are placed largest first, which takes quadratic time.


class Span(NamedTuple):
    """`size` bytes, needed from op `first` to op `last`, both included."""

    first: int
    last: int
    size: int


def place(spans: Sequence[Span]) -> list[int]:
    """An offset for every span, so that no two that are alive at once overlap.

    Up to EXACT spans go largest first to the tightest hole between those that they meet. More of them are dealt with as
    an allocator would (best fit, neighbours merged), once forwards and once backwards in time; the better one is taken.
    """
    if len(spans) <= EXACT:
        return _largest_first(spans)
    end = max(s.last for s in spans)
    mirrored = [Span(end - s.last, end - s.first, s.size) for s in spans]
    return min((_in_time(spans), _in_time(mirrored)), key=lambda offsets: extent(spans, offsets))


def extent(spans: Sequence[Span], offsets: Sequence[int]) -> int:
    """The size of the block that placed spans need."""
    return max((s.size + at for s, at in zip(spans, offsets, strict=True)), default=0)


def _largest_first(spans: Sequence[Span]) -> list[int]:
    order = sorted(range(len(spans)), key=lambda i: (-spans[i].size, spans[i].first))
    first, last, size = (np.array([spans[i][k] for i in order], np.int64) for k in range(3))
    offset = np.zeros(len(order), np.int64)
    for k in range(len(order)):
        meets = np.nonzero((first[:k] <= last[k]) & (last[:k] >= first[k]))[0]
        meets = meets[np.argsort(offset[meets], kind="stable")]
        ends = np.maximum.accumulate(np.concatenate(([0], offset[meets] + size[meets])))
        holes = offset[meets] - ends[:-1]
        fitting = np.nonzero(holes >= size[k])[0]
        offset[k] = ends[fitting[np.argmin(holes[fitting])]] if fitting.size else ends[-1]
    result = [0] * len(spans)
    for i, at in zip(order, offset.tolist(), strict=True):
        result[i] = at
    return result


class _Holes:
    """Free pieces of a block that grows at its end: the smallest that fits is taken, neighbours are merged."""

    def __init__(self) -> None:
        self.top = 0
        self._sizes: list[tuple[int, int]] = []  # (size, offset), sorted
        self._begins: dict[int, int] = {}  # offset -> end
        self._ends: dict[int, int] = {}  # end -> offset

    def take(self, size: int) -> int:
        at = bisect_left(self._sizes, (size, -1))
        if at < len(self._sizes):
            found, offset = self._sizes[at]
            self._remove(offset)
            self._add(offset + size, offset + found)
            return offset
        offset = self._ends.get(self.top, self.top)
        if offset < self.top:
            self._remove(offset)
        self.top = offset + size
        return offset

    def give(self, offset: int, size: int) -> None:
        end = offset + size
        if offset in self._ends:
            offset = self._remove(self._ends[offset])[0]
        if end in self._begins:
            end = self._remove(end)[1]
        self._add(offset, end)

    def _add(self, offset: int, end: int) -> None:
        if offset < end:
            self._begins[offset], self._ends[end] = end, offset
            insort(self._sizes, (end - offset, offset))

    def _remove(self, offset: int) -> tuple[int, int]:
        end = self._begins.pop(offset)
        del self._ends[end]
        self._sizes.pop(bisect_left(self._sizes, (end - offset, offset)))
        return offset, end


def _in_time(spans: Sequence[Span]) -> list[int]:
    born: dict[int, list[int]] = {}
    dies: dict[int, list[int]] = {}
    for i, s in enumerate(spans):
        born.setdefault(s.first, []).append(i)
        dies.setdefault(s.last, []).append(i)
    holes = _Holes()
    offsets = [0] * len(spans)
    for at in sorted({*born, *dies}):
        for i in sorted(born.get(at, ()), key=lambda i: -spans[i].size):
            offsets[i] = holes.take(spans[i].size)
        for i in dies.get(at, ()):
            holes.give(offsets[i], spans[i].size)
    return offsets
