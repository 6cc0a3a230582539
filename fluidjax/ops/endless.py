"""Loops that never end, or after one iteration: nothing that their condition follows from changes
in their block.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.desc import OpDesc
from .registry import lookup
from .traits import Runs


def decided_outside(ops: Sequence[OpDesc], condition: str) -> set[str] | None:
    """What a block of these ops, run again and again, reads to give its condition one value each
    time; None where it may change.

    Such a condition follows from ops that compute, of what the block does not write; a variable
    assigned to itself is not written.
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
    """Whether an op gives the same for the same inputs."""
    found = lookup(op.type)
    return found.control.lower is None and not found.random and found.traits.runs is Runs.STEP
