"""The data-parallel rewrite: every device runs the program on its part of the batch, and gradients
are summed over all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ...ir import edit
from ...ir.desc import FrozenMap, OpDesc, ProgramDesc
from ...lower.open import batch_of
from ...ops.build import OpBuilder
from ...ops.statistics import fixed_statistics
from ...passes.base import Note, Params, Pass, Rewrite, did
from ..inner_updates import refuse_inner_updates, refuse_own_gradients
from .summing import summed

COEFF_NUM_DEVICE, ONE, CUSTOMIZED = "CoeffNumDevice", "One", "Customized"


@dataclass(frozen=True)
class DataParallel(Pass):
    """Sum every parameter's gradient over the ranks, and scale the loss gradient so that the sum is
    the mean.

    After the op that completes a parameter's gradient (its op_role_var names the pair) the gradient
    is summed in place: by c_allreduce_sum, or with `fuse` the small ones together by
    c_fused_allreduce_sum, before anything reads them.

    ranks: their number. scale: each rank's loss gradient: CoeffNumDevice (1 / ranks; in a program
    traced at an open batch the rank's share of its rows), One (1), Customized (fed as
    ``<loss>@GRAD``). sync_batch_norm: batch_norm ops in training mode take their statistics from
    all ranks.
    """

    name: ClassVar[str] = "data_parallel"

    ranks: int
    scale: str = COEFF_NUM_DEVICE
    fuse: bool = True
    sync_batch_norm: bool = False

    def rewrite(self, desc: ProgramDesc, params: Params, keep: frozenset[str]) -> Rewrite:
        refuse_inner_updates(desc, "data parallelism")
        if self.ranks > 1:
            refuse_own_gradients(desc, "data parallelism")
        made = OpBuilder.after(desc)
        notes: list[Note] = []
        ops: list[OpDesc] = []
        rows = batch_of(desc)
        for op in desc.blocks[0].ops:
            if self.sync_batch_norm:
                op = synchronised(op)
            if op.type == "optax_update" and op.input("Loss"):
                desc, mean = _mean_loss(desc, op, self.ranks, rows, made)
                ops += mean
                continue
            ops += self._scaled(op, rows, made, notes) if _starts(op) else [op]
        if self.scale == CUSTOMIZED:
            desc = _fed(desc, [op for op in desc.blocks[0].ops if _starts(op)])
        ops = summed(desc, ops, self.fuse, made, notes)
        return Rewrite(edit.replace_ops(desc, 0, ops), notes=tuple(notes))

    def _scaled(
        self, op: OpDesc, rows: str | None, made: OpBuilder, notes: list[Note]
    ) -> list[OpDesc]:
        """The op that begins the backward part, with ops that set the gradient of the loss by
        `scale`.
        """
        if self.scale == CUSTOMIZED:
            notes.append(did(op, "dropped, since the gradient of the loss is fed"))
            return []
        if self.scale == ONE or self.ranks == 1:
            return [op]
        (loss,) = op.output("Out")
        by = f"1 / {self.ranks}" if rows is None else f"each rank's part of {rows}"
        notes.append(did(op, f"scaled by {by}"))
        return [op, _share(made, loss, loss, op, self.ranks, rows, edit.BACKWARD | edit.LOSS)]


def _share(
    made: OpBuilder, x: str, out: str, at: OpDesc, ranks: int, rows: str | None, role: int
) -> OpDesc:
    """A rank's value, weighted by its share in the mean over the batch."""
    if rows is None:
        return made.over("scale", [x], at, [out], scale=1.0 / ranks, op_role=role)
    return made.over("c_share", [x], at, [out], rows=rows, op_role=role)


def _mean_loss(
    desc: ProgramDesc, op: OpDesc, ranks: int, rows: str | None, made: OpBuilder
) -> tuple[ProgramDesc, list[OpDesc]]:
    """An optimizer op that takes the loss, changed to take its mean over the ranks."""
    (loss,) = op.input("Loss")
    mean = loss + "@MEAN"
    desc = edit.add_vars(desc, 0, [replace(desc.blocks[0].vars[loss], name=mean)])
    share = _share(made, loss, mean, op, ranks, rows, edit.OPTIMIZE)
    total = made.over("c_allreduce_sum", [mean], op, op_role=edit.OPTIMIZE)
    return desc, [share, total, replace(op, inputs=FrozenMap({**op.inputs, "Loss": (mean,)}))]


def _starts(op: OpDesc) -> bool:
    """Whether the op begins the backward part by setting the loss's gradient."""
    return edit.role(op) == edit.BACKWARD | edit.LOSS and op.type == "fill_constant"


def _fed(desc: ProgramDesc, starts: Sequence[OpDesc]) -> ProgramDesc:
    """The gradients of the losses as data variables; a feed holds those of all ranks."""
    found = [desc.blocks[0].vars[n] for op in starts for n in op.writes]
    return edit.add_vars(
        desc, 0, [replace(v, is_data=True, shape=(-1, *(v.shape or ())[1:])) for v in found]
    )


def synchronised(op: OpDesc) -> OpDesc:
    """A batch_norm, or its gradient, changed to take its statistics from all ranks if it uses its
    batch's.
    """
    if op.type not in ("batch_norm", "batch_norm_grad"):
        return op
    return op if fixed_statistics(op.attrs) else replace(op, type=f"sync_{op.type}")
