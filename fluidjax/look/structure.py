"""Nested parts of a graph of ops, found only from its edges.

Ops are in the program's order. A *place* is between two consecutive ops; values that are written
before it and read behind it cross it. If at most one value crosses a place, all later ops depend on
earlier ones only by that value: the graph is cut there, into a **series**. A part that no such
place cuts is a set of independent branches (**parallel**), possibly with the op that joins them at
the end. Otherwise values skip over it, as the input of a residual block does: those that reach
farthest are ignored, as few as needed, until a place cuts the part. The same search is repeated
within each part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..base.components import components
from .groups import Group

# ops of a part that no place cuts: a larger part is not a block of a net, and becomes a series
LARGE = 48
DEEPEST = 60  # nesting of parts; deeper ones are a series of ops

OUTSIDE = -1  # stands for the writer of values that are passed to a block

Edge = tuple[int, int, str]


class Structure:
    """The edges of a block, and the parts found among some of its ops."""

    def __init__(self, labels: Sequence[str], edges: Iterable[Edge]) -> None:
        """labels: one for each op; equal ops have equal labels."""
        self.labels = labels
        self.reads: list[list[tuple[int, str]]] = [[] for _ in labels]
        for a, b, name in edges:
            self.reads[b].append((a, name))

    def found(self, members: Sequence[int]) -> Group:
        """The ops `members` as a group of groups; its leaves are single ops."""
        return self._region(list(members), frozenset(), 0)

    # -- one region --------------------------------------------------------------------------------

    def _region(self, ops: list[int], past: frozenset[tuple[int, str]], depth: int) -> Group:
        """past: values that are ignored."""
        if len(ops) == 1:
            return self._leaf(ops[0])
        if depth > DEEPEST:
            return self._group("series", list(map(self._leaf, ops)))
        apart = self._components(ops, past)
        if len(apart) > 1:
            return self._group("parallel", [self._region(c, past, depth + 1) for c in apart])
        parts, skipped = self._cut(ops, past, 0)
        if len(parts) > 1:
            return self._series(parts, past, depth)
        branches = self._components(ops[:-1], past)
        if len(branches) > 1:
            inner = [self._region(c, past, depth + 1) for c in branches]
            return self._group("series", [*inner, self._leaf(ops[-1])])
        parts, skipped = self._cut(ops, past, None)
        return self._series(parts, past | skipped, depth)

    def _series(
        self, parts: list[list[int]], past: frozenset[tuple[int, str]], depth: int
    ) -> Group:
        made: list[Group] = []
        for part in parts:
            group = self._region(part, past, depth + 1)
            large = group.kind == "series" and len(part) > LARGE
            made += group.parts if large else [group]
        return self._group("series", made)

    def _leaf(self, op: int) -> Group:
        return Group(self.labels[op], (op,), (), "op", hash(self.labels[op]))

    def _group(self, kind: str, parts: list[Group]) -> Group:
        ops = tuple(sorted(i for part in parts for i in part.ops))
        return Group("", ops, tuple(parts), kind, self._likeness(ops))

    def _likeness(self, ops: Sequence[int]) -> int:
        """A key that is equal for the same ops in the same order, connected in the same way."""
        at = {op: i for i, op in enumerate(ops)}
        return hash(
            tuple(
                (self.labels[op], tuple(sorted(at[a] for a, _ in self.reads[op] if a in at)))
                for op in ops
            )
        )

    # -- components --------------------------------------------------------------------------------

    def _components(self, ops: Sequence[int], past: frozenset[tuple[int, str]]) -> list[list[int]]:
        """Ops that values connect, in the order of their first ones."""
        there = set(ops)
        found = components(
            [op, *(v[0] for v in self.reads[op] if v[0] in there and v not in past)] for op in ops
        )
        return [[ops[i] for i in members] for members in found]

    # -- places ------------------------------------------------------------------------------------

    def _cut(
        self, ops: list[int], past: frozenset[tuple[int, str]], most: int | None
    ) -> tuple[list[list[int]], frozenset[tuple[int, str]]]:
        """The ops cut at places that at most one value crosses, after ignoring at most `most`
        values (None: as few as needed), and the ignored values.
        """
        ranges = self._ranges(ops, past)
        order = sorted(ranges, key=lambda v: (ranges[v][0] - ranges[v][1], v))  # the farthest first
        low, high = 0, len(order) if most is None else most
        while low < high:
            middle = (low + high) // 2
            if len(_places(len(ops), ranges, order[middle:])) > 0:
                high = middle
            else:
                low = middle + 1
        parts, start = [], 0
        for place in _places(len(ops), ranges, order[low:]):
            parts.append(ops[start : place + 1])
            start = place + 1
        return [*parts, ops[start:]], frozenset(order[:low])

    def _ranges(
        self, ops: Sequence[int], past: frozenset[tuple[int, str]]
    ) -> dict[tuple[int, str], tuple[int, int]]:
        """For each value that is read: the position where it is written (-1: before), and its last
        read.
        """
        at = {op: i for i, op in enumerate(ops)}
        return {
            value: (at.get(value[0], -1), i)
            for i, op in enumerate(ops)
            for value in self.reads[op]
            if value not in past
        }


def _places(
    count: int,
    ranges: Mapping[tuple[int, str], tuple[int, int]],
    kept: Iterable[tuple[int, str]],
) -> list[int]:
    """The places that at most one of the values `kept` crosses; place i is behind op i."""
    change = [0] * (count + 1)
    for value in kept:
        start, end = ranges[value]
        change[max(start, 0)] += 1
        change[end] -= 1
    crossing, found = 0, []
    for i in range(count - 1):
        crossing += change[i]
        if crossing <= 1:
            found.append(i)
    return found


__all__ = ["Structure"]
