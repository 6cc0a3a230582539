"""Samples that show nothing which no earlier sample or extreme case of their op shows: they run
where it is asked for (`make search`). The first sample of an op runs always.

What a sample shows is computed from it: the slots that it fills, differentiates and compares; how
its inputs are shaped (dtypes, ranks, which sizes are 0, 1 or more, which sequences are empty or of
one row); every attribute's value, every pair of two attributes' values and every value beside such
shapes, where numbers of which none is special to an op count as one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

from .extremes import FAMILIES
from .extremes.judge import answered
from .extremes.written import repeated
from .sample import Sample
from .samples import all_samples

SMALL = 3  # integers up to this size are axes, modes, strides and levels; beyond, sizes
# ops whose algorithm has other branches for other numbers of bytes
BY_SIZE = {"hash", "pyramid_hash"}


@cache
def redundant() -> frozenset[str]:
    """Names (FAMILY-OP-NUMBER) of those samples. One that an earlier one's program computes is
    none: it costs nothing.
    """
    seen = of_extremes()
    programs, kept, found = set(), set(), set()
    for family, index, sample in all_samples():
        shows, program = set(shown_by(sample)), sample.program()
        if (
            sample.op in kept
            and shows <= seen[sample.op]
            and program not in programs
            and sample.op not in BY_SIZE
        ):
            found.add(f"{family}-{sample.op}-{index}")
            continue
        seen[sample.op] |= shows
        programs.add(program)
        kept.add(sample.op)
    return frozenset(found)


def of_extremes() -> dict[str, set[Hashable]]:
    """What the cases show that are compared with Paddle at each run: by op."""
    seen: dict[str, set[Hashable]] = defaultdict(set)
    for family in FAMILIES:
        for case in answered(family).values():
            if case.name not in repeated(family):
                seen[case.op] |= set(shown_by(case))
    return seen


def shown_by(sample: Sample) -> Iterator[Hashable]:
    yield (
        tuple(sorted(sample.inputs)),
        tuple(sample.grad),
        tuple(sample.outputs),
        repr(sample.of),
        repr(sample.inplace),
    )
    yield repr(sample.paddle), tuple(sorted(sample.skip.items()))
    if sample.note:
        yield sample.note
    arrays = [
        (slot, [shape(a) for _, a in sample.variables(slot)][:3]) for slot in sorted(sample.inputs)
    ]
    levels = [(slot, lengths(lod)) for slot, lod in sorted(sample.lod.items())]
    attrs = [
        ("", repr((arrays, levels))),
        *sorted((name, kind(value)) for name, value in sample.attrs.items()),
    ]
    yield from attrs
    yield from combinations(attrs, 2)


def shape(array: Any) -> tuple[str, tuple[int, ...]]:
    array = np.asarray(array)
    return str(array.dtype), tuple(min(n, 2) for n in array.shape)


def lengths(lod: Any) -> Any:
    """Of each level the lengths of sequences that occur: 0, 1, more."""
    if isinstance(lod, list | tuple) and lod and not isinstance(lod[0], list | tuple):
        return sorted({min(n, 2) for n in lod})
    return [lengths(level) for level in lod or ()]


def kind(value: Any) -> str:
    """An attribute's value as text, of which no digits are left that a size or a factor alone has."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(kind, value)) + "]"
    if (
        isinstance(value, bool | str)
        or value in (0, 1, -1)
        or (isinstance(value, int) and abs(value) <= SMALL)
    ):
        return repr(value)
    if isinstance(value, int):
        return f"int of {1 + value.bit_length() // 16} halves, {value > 0}"
    return f"float {'>' if value > 0 else '<'} 0" if isinstance(value, float) else repr(value)
