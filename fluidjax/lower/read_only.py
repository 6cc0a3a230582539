"""Whether a run of a program leaves all persistable variables unchanged."""

from __future__ import annotations

from collections.abc import Collection

from ..ir import walk
from ..ir.desc import OpDesc, ProgramDesc
from ..ops.registry import traits
from .step import Step


def is_read_only(step: Step) -> bool:
    """Whether the step writes no persistable variable, or only moving averages that it does not
    change (a test program).
    """
    kept = set(step.writes)
    return all(_leaves(op, step.desc, kept) for op in step.ops)


def _leaves(op: OpDesc, desc: ProgramDesc, kept: Collection[str]) -> bool:
    """Whether it writes none of these, or returns averages unchanged (a batch_norm in test mode).

    An op with blocks writes the outputs of its blocks' ops, so one of those must return the
    averages unchanged.
    """
    below = [inner for i in op.blocks for inner in desc.blocks[i].ops]
    if not all(_leaves(inner, desc, kept) for inner in below):
        return False
    unchanged = traits(op.type).unchanged
    if unchanged is not None and unchanged.holds(op):
        return True
    written = {n for inner in walk.below(desc, [op]) for n in inner.writes}
    return {n for n in op.writes if n in kept} <= written
