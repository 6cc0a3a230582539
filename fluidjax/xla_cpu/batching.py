"""Selects the small ops of a step that are batched: a model written as a Python loop has thousands
of equal ones.

Two ops are equal if they have the same type, attributes, input shapes and level. The level is the
length of the longest chain of ops that must run before. Ops of one level do not depend on one
another, so equal ones run as one op over their stacked inputs (stacks.py). Paddle runs a `slice` in
a microsecond; XLA takes milliseconds to compile it.

A factorisation model of 6,712 ops (a Python loop over pairs of 39 fields) has its first loss after
5 seconds instead of 57, and a step takes 2 ms instead of 100. Other nets are not changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from ..ir.desc import EMPTY, OpDesc, VarDesc
from ..ops.registry import HINTS, OpDef, lookup
from ..ops.traits import Reduction, RowWise, Runs

LEAST = 16  # fewer equal ops are not worth stacking
SAVED = 100  # ops that batching must save before it may change the order
SMALL = 1 << 12  # elements of an input: moving a larger one costs more than compiling an op

Unit = tuple[OpDesc, ...]  # ops that run at once; usually one
Find = Callable[[str], VarDesc | None]


def units(ops: Sequence[OpDesc], find: Find) -> tuple[Unit, ...] | None:
    """All the ops in an order that groups equal ones; None if too few are equal, or if their order
    is fixed.

    find: gives the variable of a name.
    """
    if sum(map(_may_join, ops)) < SAVED or not all(map(_free, ops)):
        return None
    found: dict[Any, list[OpDesc]] = {}
    for op, level in zip(ops, levels(ops), strict=True):
        likeness = _likeness(op, find) if _may_join(op) else None
        found.setdefault(
            (level, op.uid if likeness is None else likeness, likeness is None), []
        ).append(op)
    parts = sorted(found.items(), key=lambda each: each[0][0])
    if sum(len(equal) - 1 for _, equal in parts if len(equal) >= LEAST) < SAVED:
        return None
    return tuple(
        unit
        for _, equal in parts
        for unit in ([tuple(equal)] if len(equal) >= LEAST else [(op,) for op in equal])
    )


def levels(ops: Iterable[OpDesc]) -> list[int]:
    """The level of each op: the length of the longest chain of ops that ends with it and must run
    in sequence.
    """
    wrote: dict[str, int] = {}
    read: dict[str, int] = {}
    found = []
    for op in ops:
        reads, writes = tuple(op.reads), tuple(op.writes)
        level = 1 + max(
            max((wrote.get(n, 0) for n in (*reads, *writes)), default=0),
            max((read.get(n, 0) for n in writes), default=0),
        )
        read.update((n, max(level, read.get(n, 0))) for n in reads)
        wrote.update((n, level) for n in writes if n != EMPTY)
        found.append(level)
    return found


def _free(op: OpDesc) -> bool:
    """Whether the op's inputs and outputs alone decide when it may run."""
    definition = lookup(op.type)
    ranks = definition.traits.ranks
    return (
        not op.blocks
        and definition.fn is not None
        and definition.traits.runs is Runs.STEP
        and not ranks.together
    )


def _may_join(op: OpDesc) -> bool:
    return _kind_may_join(lookup(op.type))


@cache
def _kind_may_join(definition: OpDef) -> bool:
    forward = lookup(definition.forward) if definition.forward else definition
    rows, traits = forward.traits.rows, forward.traits
    if definition.random or definition.fn is None or forward.forward is not None:
        return False
    if forward.type == "slice":
        return True
    plain = not (
        forward.inplace or forward.random or traits.sizes or traits.update or traits.bounds
    )
    return plain and (isinstance(rows, Reduction) or (isinstance(rows, RowWise) and rows.elements))


def _likeness(op: OpDesc, find: Find) -> Any:
    """The key that equal ops share; None if an input is too large, or if a slot holds several."""
    inputs = {slot: names for slot, names in op.inputs.items() if names}
    outputs = {slot: names for slot, names in op.outputs.items() if names}
    if any(len(names) != 1 for names in (*inputs.values(), *outputs.values())):
        return None
    shapes = frozenset(
        (slot, *_type(find(names[0]))) for slot, names in inputs.items() if names[0] != EMPTY
    )
    cuts = op.type in ("slice", "slice_grad")
    if any(
        math.prod(abs(d) for d in shape) > SMALL
        for slot, shape, _ in shapes
        if not (cuts and slot == "Input")
    ):
        return None
    wanted = frozenset(slot for slot, names in outputs.items() if names[0] != EMPTY)
    attrs = {n: v for n, v in op.attrs.items() if n not in HINTS}
    box = _box(op, attrs) if cuts else ()
    return None if box is None else (op.type, frozenset(attrs.items()), shapes, wanted, box)


def _type(var: VarDesc | None) -> tuple[tuple[int, ...], str | None]:
    return ((), None) if var is None else (tuple(var.shape or ()), var.dtype)


def _box(op: OpDesc, attrs: dict[str, Any]) -> Any:
    """The key of a slice with constant bounds: the value that is sliced, and the sides of the box
    in place of the bounds.
    """
    starts, ends = attrs.pop("starts", ()), attrs.pop("ends", ())
    tensors = any(
        op.inputs.get(s)
        for s in ("StartsTensor", "EndsTensor", "StartsTensorList", "EndsTensorList")
    )
    if (
        tensors
        or not len(starts) == len(ends) == len(attrs["axes"])
        or any(not 0 <= a < b for a, b in zip(starts, ends, strict=True))
    ):
        return None
    return op.input("Input"), tuple(b - a for a, b in zip(starts, ends, strict=True))


def starts_of(op: OpDesc, rank: int) -> list[int]:
    """The start of the box of a slice with constant bounds, on every axis."""
    first = [0] * rank
    for axis, start in zip(op.attrs["axes"], op.attrs["starts"], strict=True):
        first[axis % rank] = start
    return first


def sides_of(op: OpDesc, shape: Sequence[int]) -> list[int]:
    """The sides of the slice's box in a value of this shape."""
    sides = list(shape)
    for axis, start, end in zip(
        op.attrs["axes"], op.attrs["starts"], op.attrs["ends"], strict=True
    ):
        sides[axis % len(shape)] = end - start
    return sides


def fits(op: OpDesc, shape: Sequence[int]) -> bool:
    """Whether the slice's box is within a value of this shape."""
    return all(
        end <= shape[axis % len(shape)]
        for axis, end in zip(op.attrs["axes"], op.attrs["ends"], strict=True)
    )
