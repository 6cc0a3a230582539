"""Whether a run of a program leaves all persistable variables as they are."""

from __future__ import annotations

from ..ir import walk
from ..ir.desc import OpDesc
from .step import Step

NORMS = frozenset({"batch_norm", "sync_batch_norm"})


def is_read_only(step: Step) -> bool:
    """Whether the step writes no persistable variable, or only moving averages that it does not move (a test program)."""
    kept = set(step.writes)
    return all(_leaves(op) or kept.isdisjoint(walk.writes_with_subblocks(step.desc, op) if op.blocks else op.writes) for op in step.ops)


def _leaves(op: OpDesc) -> bool:
    """Whether it is a batch_norm that takes its moving averages as they are (ops/norm.py), and gives them back."""
    fixed = op.attrs.get("use_global_stats") or (op.attrs.get("is_test") and not op.attrs.get("trainable_statistics"))
    same = all(op.output(out) == op.input(source) for out, source in (("MeanOut", "Mean"), ("VarianceOut", "Variance")))
    return op.type in NORMS and bool(fixed) and same
