"""Sharing of names by variables whose lives do not overlap: largest variables first, each in the
tightest gap.

Among variables of one size (level 0) this is optimal: as many names as variables alive at once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from itertools import groupby
from math import inf, log2

from ..ir.desc import VarDesc
from .lifetimes import Life, elements

Gap = tuple[float, float, int]  # (busy until, busy again from, slot)

# With more distinct sizes, near ones are grouped, which keeps packing nearly linear.
SIZES = 128


def kind(var: VarDesc, level: int) -> tuple[object, ...]:
    """The common key of variables that share a name: dtype and shape at level 0, all except the
    size at level 1.
    """
    if level == 0:
        return var.dtype, var.lod_level, var.shape
    return var.dtype, var.lod_level, sum(n < 0 for n in var.shape or ())


def pack(lives: Iterable[Life], level: int) -> list[list[Life]]:
    """Lives by their shared name: every list holds lives of one kind that do not overlap.

    No two lists can be merged, because some op needs both. The largest of a list comes first,
    except among lives of nearly equal size.
    """
    kinds: dict[tuple[object, ...], list[Life]] = {}
    for life in lives:
        kinds.setdefault(kind(life.var, level), []).append(life)
    return [slot for group in kinds.values() for slot in _pack(group)]


def _pack(lives: list[Life]) -> list[list[Life]]:
    slots: list[list[Life]] = []
    gaps: list[Gap] = []
    measure = _measure(lives)
    for _, group in groupby(
        sorted(lives, key=lambda life: (-measure[life.name], life.first)),
        lambda life: measure[life.name],
    ):
        gaps = _place(group, gaps, slots)
    return slots


def _measure(lives: list[Life]) -> dict[str, float]:
    sizes = {life.name: elements(life.var) for life in lives}
    if len(set(sizes.values())) <= SIZES:
        return dict(sizes)
    return {name: round(4 * log2(n)) for name, n in sizes.items()}


def _place(group: Iterable[Life], gaps: list[Gap], slots: list[list[Life]]) -> list[Gap]:
    """Put lives of one size, in order of their first op, into gaps of the slots or new slots; the
    gaps that are left.

    Among the gaps that are long enough, the one that ends first is taken, and among those the one
    that begins last.
    """
    heapify(gaps)  # those that begin after the current life
    begun: list[tuple[float, float, int]] = []  # (end, begin, slot), sorted
    left: list[Gap] = []
    for life in group:
        while gaps and gaps[0][0] < life.first:
            begin, end, slot = heappop(gaps)
            insort(begun, (end, begin, slot))
        at = bisect_right(begun, (life.last, inf, 0))
        if at < len(begun):
            end, begin, slot = begun.pop(bisect_left(begun, (begun[at][0], inf, 0)) - 1)
        else:
            begin, end, slot = -1.0, inf, len(slots)
            slots.append([])
        slots[slot].append(life)
        if begin + 1 < life.first:
            left.append((begin, life.first, slot))
        if life.last + 1 < end:
            heappush(gaps, (life.last, end, slot))
    return left + gaps + [(begin, end, slot) for end, begin, slot in begun]
