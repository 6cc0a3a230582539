"""The part of a training program that an op belongs to, for readers."""

from __future__ import annotations

from ..base.roles import OP_ROLE, OpRole
from ..ir.desc import OpDesc
from ..ops.catalog import traits
from ..ops.traits import Runs

SECTIONS = ("forward", "backward", "optimize", "communication", "schedule")


def section_of(op: OpDesc) -> str:
    """One of SECTIONS: communication ops by their type and their role, all others by their role."""
    role = op.attrs.get(OP_ROLE, 0)
    role = role if type(role) is int and role >= 0 else 0
    if role & (OpRole.RPC | OpRole.Dist) or talks(op.type):
        return "communication"
    if role & OpRole.LRSched:
        return "schedule"
    if role & OpRole.Optimize:
        return "optimize"
    return "backward" if role & OpRole.Backward else "forward"


def talks(kind: str) -> bool:
    """Whether ops of this type communicate with other ranks or processes."""
    found = traits(kind)
    return found.ranks.together or found.runs is Runs.REMOTE
