"""Connected components."""

from __future__ import annotations

from collections.abc import Hashable, Iterable


def components(found: Iterable[Iterable[Hashable]]) -> list[list[int]]:
    """The positions of these sets in groups, each in order, and the groups by their first members.
    Two sets that share an element are in one group.
    """
    parents: list[int] = []
    holders: dict[Hashable, int] = {}  # element -> the first set that holds it

    def root(i: int) -> int:
        while parents[i] != i:
            parents[i] = parents[parents[i]]
            i = parents[i]
        return i

    for i, elements in enumerate(found):
        parents.append(i)
        for element in elements:
            a, b = root(holders.setdefault(element, i)), root(i)
            parents[max(a, b)] = min(a, b)
    groups: dict[int, list[int]] = {}
    for i in range(len(parents)):
        groups.setdefault(root(i), []).append(i)
    return list(groups.values())
