"""Sizes for unknown dimensions, for an op that does not accept one size for all of them.

A -1 beside a constant may be that constant, or 1, or an attribute's value: an op is refused only if
no guess fits. The guess is then varied, and output dimensions that vary with it are unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice, product
from typing import Any, NamedTuple

GUESSES = 80  # an op is refused after this many
SMALL = range(1, 17)


class Place(NamedTuple):
    """A dimension of an input: slot, index of the variable, index of the dimension."""

    slot: str
    index: int
    dim: int


Sizes = Mapping[Place, int]
Shapes = Mapping[str, tuple[tuple[int, ...], ...]]  # slot -> the shapes of its variables


def unknown(shapes: Shapes) -> list[Place]:
    """The dimensions that are -1."""
    return [
        Place(s, i, d)
        for s, many in shapes.items()
        for i, shape in enumerate(many)
        for d, n in enumerate(shape)
        if n < 0
    ]


def aligned(shapes: Shapes, otherwise: int, from_right: bool = False) -> dict[Place, int]:
    """Every unknown dimension with the size of another input's at the same position, else
    `otherwise`.
    """
    found = {}
    for place in unknown(shapes):
        rank = len(shapes[place.slot][place.index])
        at = place.dim - rank if from_right else place.dim
        sizes = [
            shape[at]
            for slot, many in shapes.items() for i, shape in enumerate(many)
            if (slot, i) != place[:2] and -len(shape) <= at < len(shape) and shape[at] >= 0
        ]  # fmt: skip
        found[place] = sizes[0] if sizes else otherwise
    return found


def guesses(shapes: Shapes, attrs: Mapping[str, Any], free: int) -> Iterator[dict[Place, int]]:
    """Sizes to try, the likeliest first; `free` is one that no other dimension has."""
    places = unknown(shapes)
    for otherwise in (free, 1):
        yield aligned(shapes, otherwise)
        yield aligned(shapes, otherwise, from_right=True)
    for n in (1, 2):
        yield dict.fromkeys(places, n)
    for place in places:  # one dimension of size 1 beside free ones, and one free beside others
        yield {**dict.fromkeys(places, free), place: 1}
        yield {**aligned(shapes, 1), place: free}
    candidates = _candidates(shapes, attrs)
    if len(places) <= 3:
        for sizes in islice(product(candidates, repeat=len(places)), GUESSES):
            yield dict(zip(places, sizes, strict=True))
    for n in candidates:
        yield dict.fromkeys(places, n)
        yield from ({**aligned(shapes, free), place: n} for place in places)


def _candidates(shapes: Shapes, attrs: Mapping[str, Any]) -> list[int]:
    """The sizes that are known, their multiples by attributes (groups, strides), and small ones."""
    known = {n for many in shapes.values() for shape in many for n in shape if n > 0}
    factors = {v for v in attrs.values() if type(v) is int and 1 < v <= 64}
    multiples = {n * f for n in known for f in factors} | {
        n // f for n in known for f in factors if n % f == 0
    }
    return list(dict.fromkeys([*sorted(known), *SMALL, *sorted(multiples)]))


def variations(sizes: Sizes, free: int) -> Iterator[dict[Place, int]]:
    """Other sizes for the same dimensions: all of one size changed together, and each alone."""
    for n in dict.fromkeys(sizes.values()):
        for other in (free, n + 1, 1):
            yield {p: other if m == n else m for p, m in sizes.items()}
    for place, n in sizes.items():
        for other in (free, n + 1, 1):
            yield {**sizes, place: other}


def fitting(
    run: Callable[[Sizes], Any], shapes: Shapes, attrs: Mapping[str, Any], free: int
) -> list[Any]:
    """The results of `run` for the first sizes that fit and their variations; empty if none fit."""
    for sizes in islice(guesses(shapes, attrs, free), GUESSES):
        first = _tried(run, sizes)
        if first is not None:
            others = {tuple(v.items()): v for v in variations(sizes, free)}
            return [first, *(r for v in others.values() if (r := _tried(run, v)) is not None)]
    return []


def _tried(run: Callable[[Sizes], Any], sizes: Sizes) -> Any:
    try:
        return run(sizes)
    except Exception:  # any error of the op or of JAX: these sizes do not fit
        return None
