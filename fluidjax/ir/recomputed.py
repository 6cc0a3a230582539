"""Recognizes recomputed ops: ops of the backward pass that recompute values that the forward pass
did not keep.

A recomputed value ``x`` is ``x.subprog_k`` in the k-th segment of the backward pass, counted from
the loss.
"""

from __future__ import annotations

import re

from .desc import OpDesc, ProgramDesc
from .edit import BACKWARD, role

SUFFIX = ".subprog_"
HOST = "@HOST"  # the suffix of a value that waits on the host for the backward pass
_NAME = re.compile(r"(.+)\.subprog_(\d+)")


def original(name: str) -> str:
    """The name of a value in the forward pass: x for ``x.subprog_0``; any other name unchanged."""
    found = _NAME.fullmatch(name)
    return name if found is None else found[1]


def segment(op: OpDesc) -> int | None:
    """The segment that an op recomputes; None for any other op."""
    if not role(op) & BACKWARD:
        return None
    found = (_NAME.fullmatch(n) for n in op.writes if SUFFIX in n)
    return next((int(m[2]) for m in found if m is not None), None)


def first_time(desc: ProgramDesc, op: OpDesc) -> OpDesc:
    """The op of the forward pass that a recomputed op repeats; the op itself if there is none."""
    names = [original(n) for n in op.writes]
    return next(
        (
            o
            for o in desc.blocks[0].ops
            if o.type == op.type and segment(o) is None and [*o.writes] == names
        ),
        op,
    )
