"""Positions of the boxes of a directed graph: in layers from top to bottom, near their
neighbours.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

ABREAST = 6  # nodes without edges that are shown side by side
SWEEPS = 6  # how often the layers are ordered by their neighbours


@dataclass(frozen=True)
class Layout:
    """layer, place: of each node. bends: for each edge, its places in the layers between its ends.
    widths: nodes in each layer.
    """

    layer: tuple[int, ...]
    place: tuple[int, ...]
    bends: dict[tuple[int, int], tuple[int, ...]]
    widths: tuple[int, ...]


def arranged(count: int, edges: Iterable[tuple[int, int]]) -> Layout:
    """As `layered`, with the nodes without edges below the others, several in a row."""
    pairs = list(edges)
    tied = sorted({n for a, b in pairs if a != b for n in (a, b)})
    at = {n: i for i, n in enumerate(tied)}
    loose = [n for n in range(count) if n not in at]
    own = layered(len(tied), [(at[a], at[b]) for a, b in pairs if a != b])
    layer, place, below = [0] * count, [0] * count, len(own.widths)
    for n, i in at.items():
        layer[n], place[n] = own.layer[i], own.place[i]
    for i, n in enumerate(loose):
        layer[n], place[n] = below + i // ABREAST, i % ABREAST
    widths = [min(ABREAST, len(loose) - i) for i in range(0, len(loose), ABREAST)]
    bends = {(tied[a], tied[b]): bend for (a, b), bend in own.bends.items()}
    return Layout(tuple(layer), tuple(place), bends, (*own.widths, *widths))


def layered(count: int, edges: Iterable[tuple[int, int]]) -> Layout:
    """Layers of `count` nodes. Every edge leads down, from a lower to a higher number; an edge back
    up counts as reversed.

    A node is one layer below the lowest node that it depends on. Edges over several layers take a
    place in each, so that no edge crosses a box. Within a layer nodes are ordered by the mean place
    of their neighbours, alternately from above and below.
    """
    downward = sorted({(min(a, b), max(a, b)) for a, b in edges if a != b})
    layer = [0] * count
    # sorted by a, and every edge into a comes from a lower number, so a's layer is final
    for a, b in downward:
        layer[b] = max(layer[b], layer[a] + 1)
    rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    for node, at in enumerate(layer):
        rows[at].append(node)
    above: dict[int, list[int]] = {}
    below: dict[int, list[int]] = {}
    chains: dict[tuple[int, int], list[int]] = {}
    made = count
    for a, b in downward:
        chain = [a]
        for at in range(layer[a] + 1, layer[b]):
            rows[at].append(made)
            chain.append(made)
            made += 1
        chain.append(b)
        chains[a, b] = chain[1:-1]
        for upper, lower in itertools.pairwise(chain):
            below.setdefault(upper, []).append(lower)
            above.setdefault(lower, []).append(upper)
    place = _ordered(rows, above, below)
    bends = {edge: tuple(place[n] for n in chain) for edge, chain in chains.items()}
    return Layout(tuple(layer), tuple(place[n] for n in range(count)), bends, tuple(map(len, rows)))


def _ordered(
    rows: Sequence[list[int]], above: dict[int, list[int]], below: dict[int, list[int]]
) -> dict[int, int]:
    place = {node: i for row in rows for i, node in enumerate(row)}
    for sweep in range(SWEEPS):
        near, order = (above, rows) if sweep % 2 == 0 else (below, rows[::-1])
        for row in order:
            row.sort(
                key={
                    n: _mean([place[m] for m in near.get(n, ())], place[n]) for n in row
                }.__getitem__
            )
            place.update((node, i) for i, node in enumerate(row))
    return place


def _mean(places: list[int], own: int) -> float:
    return sum(places) / len(places) if places else own
