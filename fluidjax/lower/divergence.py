"""Which persistable variables come to differ between the ranks that run one program on their own data."""

from __future__ import annotations

from collections.abc import Iterable

from ..ir import walk
from ..ir.desc import OpDesc
from ..ops.registry import lookup
from ..ops.traits import ALL
from .env import drawn_alike
from .step import Step


def divergent(step: Step, already: Iterable[str] = ()) -> frozenset[str]:
    """Names of persistable variables of which every rank has its own value after a step, or before it (`already`).

    A value differs if it is fed, drawn anew by each rank, or computed from one that differs; a collective makes it alike
    again. Such a variable makes those different that are computed from it in the next step, so this goes round until
    nothing changes.
    """
    own = frozenset(already)
    while True:
        differs = {**dict.fromkeys(step.feeds, True), **dict.fromkeys(own, True)}
        for op in step.ops:
            _follow(step, op, differs)
        now = own | {n for n in step.writes if differs.get(n, False)}
        if now == own:
            return own
        own = now


def _follow(step: Step, op: OpDesc, differs: dict[str, bool]) -> None:
    if op.type == "conditional_block" and not any(differs.get(n, False) for n in op.input("Cond")):
        inside = dict(differs)  # all ranks run the block, or none does
        for below in step.desc.blocks[op.attrs["sub_block"].idx].ops:
            _follow(step, below, inside)
        differs.update({n: inside.get(n, False) or differs.get(n, False) for n in walk.writes_with_subblocks(step.desc, op)})
        return
    reads = walk.reads_with_subblocks(step.desc, op) if op.blocks else op.reads
    ranks = lookup(op.type).traits.ranks
    here = any(differs.get(n, False) for n in reads) or ranks.scatters or _draws(step, op)
    followed = {out: any(differs.get(n, False) for n in op.input(source)) for out, source in ranks.follows.items()}
    for name in walk.writes_with_subblocks(step.desc, op) if op.blocks else op.writes:
        differs[name] = here
    for slot in op.outputs if ranks.agree == ALL else ranks.agree:
        differs.update(dict.fromkeys(op.output(slot), False))
    for out, value in followed.items():
        differs.update(dict.fromkeys(op.output(out), value))


def _draws(step: Step, op: OpDesc) -> bool:
    below = (o for i in walk.nested(step.desc, op.blocks) for o in step.desc.blocks[i].ops) if op.blocks else ()
    return any(lookup(o.type).random and not drawn_alike(o) for o in (op, *below))
