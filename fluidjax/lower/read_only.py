"""Whether a run of a program leaves all persistable variables as they are."""

from __future__ import annotations

from ..ir import walk
from ..ir.desc import OpDesc
from ..ops.registry import traits
from .step import Step


def is_read_only(step: Step) -> bool:
    """Whether the step writes no persistable variable, or only moving averages that it does not move (a test program)."""
    kept = set(step.writes)
    return all(_leaves(op) or kept.isdisjoint(walk.writes_with_subblocks(step.desc, op) if op.blocks else op.writes) for op in step.ops)


def _leaves(op: OpDesc) -> bool:
    """Whether it gives back the averages that it takes (a batch_norm in test mode)."""
    unchanged = traits(op.type).unchanged
    return unchanged is not None and unchanged.holds(op)
