"""Loops that end after one iteration or never, because their block changes nothing that the
condition depends on.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.desc import OpDesc
from .registry import lookup
from .traits import Runs


def decided_outside(ops: Sequence[OpDesc], condition: str) -> set[str] | None:
    """The variables from which a block of these ops, run repeatedly, computes the same condition
    each time; None if it may change.

    Such a condition depends, through deterministic ops, on variables that the block does not write;
    assigning a variable to itself is not a write.
    """
    moving = [op for op in ops if not (op.type == "assign" and list(op.reads) == list(op.writes))]
    wanted, behind = {condition}, list[OpDesc]()
    while len(found := [op for op in moving if not wanted.isdisjoint(op.writes)]) > len(behind):
        behind = found
        wanted.update(n for op in behind for n in op.reads)
    if not all(map(_computes, behind)):
        return None
    written: set[str] = set()
    before: set[str] = set()  # read before they are written
    for op in behind:
        before.update(n for n in op.reads if n not in written)
        written.update(op.writes)
    return before if before.isdisjoint(written) else None


def _computes(op: OpDesc) -> bool:
    """Whether an op gives equal outputs for equal inputs."""
    found = lookup(op.type)
    return found.control.lower is None and not found.random and found.traits.runs is Runs.STEP
