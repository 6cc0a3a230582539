"""Gradients summed over the ranks when the backward part completes them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ...ir import edit, walk
from ...ir.desc import OpDesc, ProgramDesc
from ...ops.build import OpBuilder
from ...passes.base import Note, did

# elements: a gradient up to this size shares a message, because a message costs more than a copy
SMALL = 8192


def pairs(op: OpDesc) -> Iterator[tuple[str, str]]:
    """(parameter, gradient) of the gradients that a backward op completes."""
    if edit.role(op) & edit.BACKWARD:
        names = edit.role_names(op)
        yield from zip(names[::2], names[1::2], strict=False)


def summed(
    desc: ProgramDesc, ops: Sequence[OpDesc], fuse: bool, made: OpBuilder, notes: list[Note]
) -> list[OpDesc]:
    """The ops with a sum over the ranks after every completed gradient; small ones wait for each
    other, if `fuse`.
    """
    out: list[OpDesc] = []
    # which also sums them
    scattered = {n for op in ops if op.type == "c_fused_reducescatter" for n in op.reads}
    waiting: dict[str, OpDesc] = {}
    attrs = {"ring_id": 0, "op_role": edit.BACKWARD}

    def send() -> None:
        if not waiting:
            return
        last = list(waiting.values())[-1]
        kind = "c_allreduce_sum" if len(waiting) == 1 else "c_fused_allreduce_sum"
        out.append(made.over(kind, list(waiting), last, **attrs))
        waiting.clear()

    for op in ops:
        touched = (
            (*walk.reads_with_subblocks(desc, op), *walk.writes_with_subblocks(desc, op))
            if op.blocks
            else (*op.reads, *op.writes)
        )
        if any(n in waiting for n in touched):
            send()
        out.append(op)
        for param, grad in pairs(op):
            if grad not in op.writes or grad in scattered:
                continue
            notes.append(did(op, f"{grad} of {param} summed over the ranks"))
            if fuse and _elements(desc, param) <= SMALL and not _sparse(desc, grad):
                waiting[grad] = op
            else:
                out.append(made.over("c_allreduce_sum", [grad], op, **attrs))
    send()
    return out


def _sparse(desc: ProgramDesc, grad: str) -> bool:
    var = desc.find_var(grad)
    return var is not None and var.kind == "SELECTED_ROWS"


def _elements(desc: ProgramDesc, param: str) -> float:
    var = desc.find_var(param)
    shape = None if var is None else var.shape
    return math.inf if shape is None or any(d < 0 for d in shape) else math.prod(shape)
