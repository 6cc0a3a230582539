"""The data-parallel rewrite: every device runs the program on its part of the batch, and gradients are summed over all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ..ir import edit, walk
from ..ir.desc import FrozenMap, OpDesc, ProgramDesc, slots
from ..ops.registry import lookup
from ..passes.base import Note, Params, Pass, Rewrite, did

COEFF_NUM_DEVICE, ONE, CUSTOMIZED = "CoeffNumDevice", "One", "Customized"
SMALL = 8192  # elements: a gradient up to this size shares a message, since a message costs more than a copy


@dataclass(frozen=True)
class DataParallel(Pass):
    """Sum every parameter's gradient over the ranks, and scale the loss gradient so that the sum is the mean.

    After the op that completes a parameter's gradient (its op_role_var names the pair) the gradient is summed in place:
    by c_allreduce_sum, or with `fuse` the small ones together by c_fused_allreduce_sum, before anything reads them.

    ranks: how many. scale: what each rank's loss gradient is: CoeffNumDevice (1 / ranks), One (1), Customized (fed as
    ``<loss>@GRAD``). sync_batch_norm: batch_norm ops in training mode take their statistics from all ranks.
    """

    name: ClassVar[str] = "data_parallel"

    ranks: int
    scale: str = COEFF_NUM_DEVICE
    fuse: bool = True
    sync_batch_norm: bool = False

    def rewrite(self, desc: ProgramDesc, params: Params, keep: frozenset[str]) -> Rewrite:
        made = _Ops(edit.max_uid(desc))
        notes: list[Note] = []
        ops: list[OpDesc] = []
        for op in desc.blocks[0].ops:
            if self.sync_batch_norm and op.type in ("batch_norm", "batch_norm_grad"):
                op = _synchronised(op)
            ops += self._scaled(op, made, notes) if _starts(op) else [op]
        if self.scale == CUSTOMIZED:
            desc = _fed(desc, [op for op in desc.blocks[0].ops if _starts(op)])
        summed = _summed(desc, ops, self.fuse, made, notes)
        return Rewrite(edit.replace_ops(desc, 0, summed), notes=tuple(notes))

    def _scaled(self, op: OpDesc, made: _Ops, notes: list[Note]) -> list[OpDesc]:
        """The op that begins the backward part, with what makes the gradient of the loss what `scale` says."""
        if self.scale == CUSTOMIZED:
            notes.append(did(op, "dropped, since the gradient of the loss is fed"))
            return []
        if self.scale == ONE or self.ranks == 1:
            return [op]
        (loss,) = op.output("Out")
        notes.append(did(op, f"scaled by 1 / {self.ranks}"))
        attrs = {"scale": 1.0 / self.ranks, "bias": 0.0, "bias_after_scale": True, "op_role": edit.BACKWARD | edit.LOSS}
        return [op, made("scale", [loss], attrs, op)]


class _Ops:
    """Makes new ops with uids of their own."""

    def __init__(self, uid: int) -> None:
        self.uid = uid

    def __call__(self, kind: str, x: Sequence[str], attrs: Mapping[str, object], at: OpDesc) -> OpDesc:
        """An op that writes X in place."""
        self.uid += 1
        full = FrozenMap({**lookup(kind).defaults, **attrs})
        return OpDesc(self.uid, kind, slots({"X": x}), slots({"Out": x}), full, at.loc)


def _starts(op: OpDesc) -> bool:
    """Whether the op begins the backward part: it gives the loss its gradient."""
    return edit.role(op) == edit.BACKWARD | edit.LOSS and op.type == "fill_constant"


def _fed(desc: ProgramDesc, starts: Sequence[OpDesc]) -> ProgramDesc:
    """The gradients of the losses as data variables, of which a feed holds those of all ranks."""
    found = [desc.blocks[0].vars[n] for op in starts for n in op.writes]
    return edit.add_vars(desc, 0, [replace(v, is_data=True, shape=(-1, *(v.shape or ())[1:])) for v in found])


def _synchronised(op: OpDesc) -> OpDesc:
    trains = not (op.attrs.get("is_test", False) or op.attrs.get("use_global_stats", False))
    return replace(op, type=f"sync_{op.type}") if trains else op


def pairs(op: OpDesc) -> Iterator[tuple[str, str]]:
    """(parameter, gradient) of the gradients that a backward op completes."""
    if edit.role(op) & edit.BACKWARD:
        names = op.attrs.get("op_role_var") or ()
        yield from zip(names[::2], names[1::2], strict=True)


def _summed(desc: ProgramDesc, ops: Sequence[OpDesc], fuse: bool, made: _Ops, notes: list[Note]) -> list[OpDesc]:
    """The ops with a sum over the ranks after every completed gradient; small ones wait for each other, if `fuse`."""
    out: list[OpDesc] = []
    waiting: dict[str, OpDesc] = {}
    attrs = {"ring_id": 0, "op_role": edit.BACKWARD}

    def send() -> None:
        if not waiting:
            return
        last = list(waiting.values())[-1]
        kind = "c_allreduce_sum" if len(waiting) == 1 else "c_fused_allreduce_sum"
        out.append(made(kind, list(waiting), attrs, last))
        waiting.clear()

    for op in ops:
        touched = (*walk.reads_with_subblocks(desc, op), *walk.writes_with_subblocks(desc, op)) if op.blocks else (*op.reads, *op.writes)
        if any(n in waiting for n in touched):
            send()
        out.append(op)
        for param, grad in pairs(op):
            if grad not in op.writes:
                continue
            notes.append(did(op, f"{grad} of {param} summed over the ranks"))
            if fuse and _elements(desc, param) <= SMALL and not _sparse(desc, grad):
                waiting[grad] = op
            else:
                out.append(made("c_allreduce_sum", [grad], attrs, op))
    send()
    return out


def _sparse(desc: ProgramDesc, grad: str) -> bool:
    var = desc.find_var(grad)
    return var is not None and var.kind == "SELECTED_ROWS"


def _elements(desc: ProgramDesc, param: str) -> float:
    var = desc.find_var(param)
    shape = None if var is None else var.shape
    return math.inf if shape is None or any(d < 0 for d in shape) else math.prod(shape)

