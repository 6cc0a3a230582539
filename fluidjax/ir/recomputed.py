"""How to recognize recomputed ops: ops of the backward pass that compute again what the forward
pass did not keep.

Of a value ``x`` that is computed again the backward pass has ``x.subprog_k`` in the k-th of its
segments, counted from the loss.
"""

from __future__ import annotations

import re

from .desc import OpDesc, ProgramDesc
from .edit import BACKWARD, role

SUFFIX = ".subprog_"
HOST = "@HOST"  # ends the name of a value that waits on the host for the backward pass
_NAME = re.compile(r"(.+)\.subprog_(\d+)")


def original(name: str) -> str:
    """The name that a value had in the forward pass: x of ``x.subprog_0``; any other name as
    it is.
    """
    found = _NAME.fullmatch(name)
    return name if found is None else found[1]


def segment(op: OpDesc) -> int | None:
    """The segment that an op computes again; None for any other op."""
    if not role(op) & BACKWARD:
        return None
    found = (_NAME.fullmatch(n) for n in op.writes if SUFFIX in n)
    return next((int(m[2]) for m in found if m is not None), None)


def first_time(desc: ProgramDesc, op: OpDesc) -> OpDesc:
    """Of an op that computes again what it computed in the forward pass, the op that did; the op
    itself where there is none.
    """
    names = [original(n) for n in op.writes]
    return next(
        (
            o
            for o in desc.blocks[0].ops
            if o.type == op.type and segment(o) is None and [*o.writes] == names
        ),
        op,
    )
