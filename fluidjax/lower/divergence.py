"""The persistable variables that diverge between the ranks that run one program on their own data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..ir import walk
from ..ir.desc import OpDesc, ProgramDesc
from ..ops.registry import lookup
from ..ops.traits import ALL
from .env import same_on_all_ranks
from .step import Step


def divergent(step: Step, already: Iterable[str] = ()) -> frozenset[str]:
    """Names of persistable variables with a value per rank after a step, or before it (`already`).

    A value differs if it is fed, sampled by each rank, or computed from one that differs; a
    collective makes it equal again. In the next step, variables computed from one that differs also
    differ, so this is repeated until nothing changes.
    """
    own = frozenset(already)
    while True:
        differs = {**dict.fromkeys(step.feeds, True), **dict.fromkeys(own, True)}
        for op in step.ops:
            _follow(step.desc, op, differs)
        now = own | {n for n in step.writes if differs.get(n, False)}
        if now == own:
            return own
        own = now


@dataclass(frozen=True)
class _Ranks:
    """The argument of a control op's own rule (the protocol ``Ranks`` of ops/control_interface.py)."""

    desc: ProgramDesc
    op: OpDesc
    differs: dict[str, bool]

    def any(self, names: Iterable[str]) -> bool:
        return any(self.differs.get(n, False) for n in names)

    def through(self, idx: int) -> Mapping[str, bool]:
        inside = dict(self.differs)
        for below in self.desc.blocks[idx].ops:
            _follow(self.desc, below, inside)
        return inside

    def alone(self) -> None:
        _each_alone(self.desc, self.op, self.differs)


def _follow(desc: ProgramDesc, op: OpDesc, differs: dict[str, bool]) -> None:
    own_rule = lookup(op.type).control.divergence
    if own_rule is None:
        _each_alone(desc, op, differs)
    else:
        own_rule(_Ranks(desc, op, differs))


def _each_alone(desc: ProgramDesc, op: OpDesc, differs: dict[str, bool]) -> None:
    """The rule by the op's traits: an output differs if an input does or the op samples random
    numbers, except for outputs that a collective makes the same.
    """
    reads = walk.reads_with_subblocks(desc, op) if op.blocks else op.reads
    ranks = lookup(op.type).traits.ranks
    here = any(differs.get(n, False) for n in reads) or ranks.scatters or _samples(desc, op)
    followed = {
        out: any(differs.get(n, False) for n in op.input(source))
        for out, source in ranks.follows.items()
    }
    for name in walk.writes_with_subblocks(desc, op) if op.blocks else op.writes:
        differs[name] = here
    for slot in op.outputs if ranks.agree == ALL else ranks.agree:
        differs.update(dict.fromkeys(op.output(slot), False))
    for out, value in followed.items():
        differs.update(dict.fromkeys(op.output(out), value))


def _samples(desc: ProgramDesc, op: OpDesc) -> bool:
    ops = (op, *walk.below(desc, [op]))
    return any(lookup(o.type).is_random(o.attrs) and not same_on_all_ranks(o) for o in ops)
