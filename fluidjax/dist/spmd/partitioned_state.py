"""The state of optimizers that need whole arrays, in blocks on the ranks: gathered for an update,
and split again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import ClassVar

from ...devices.shard_layout import ShardLayout
from ...ir import edit
from ...ir.desc import OpDesc, ProgramDesc
from ...ops.registry import traits
from ...passes.base import Params, Pass, Rewrite, did
from .block_partition import Deal, Emission, Group, state_placed
from .shard_buckets import OwnedBlock, buckets
from .updates import Update, on_pservers


@dataclass(frozen=True)
class PartitionedState(Pass):
    """Keep the state of lars_momentum and lamb, which take norms of whole arrays, on the ranks that
    own its blocks.

    Every rank gathers it, makes the same update of the whole parameter, and keeps its own blocks.
    This saves memory only between the steps.
    """

    name: ClassVar[str] = "dealt_state"

    ranks: int
    deal: Deal = field(repr=False)

    def rewrite(self, desc: ProgramDesc, params: Params, keep: frozenset[str]) -> Rewrite:
        groups = _grouped(desc, self.deal, self.ranks)
        if not groups:
            return Rewrite(desc)
        emission = _Whole(desc, self.ranks, groups)
        return Rewrite(emission.rewritten(), notes=tuple(emission.notes))

    def placed(self, before: ProgramDesc, after: ProgramDesc) -> Mapping[str, ShardLayout]:
        """The layout of the state."""
        return state_placed(_grouped(before, self.deal, self.ranks))


@lru_cache(maxsize=16)
def _grouped(desc: ProgramDesc, deal: Deal, ranks: int) -> tuple[Group, ...]:
    vars, assigned = desc.blocks[0].vars, {param: (grad, blocks) for param, grad, blocks in deal}
    found: dict[object, dict[str, Update]] = {}
    for op in desc.blocks[0].ops:
        rule = traits(op.type).update
        if rule is None or rule.elements or not on_pservers(op) or not op.input("Param"):
            continue
        if op.input("Param")[0] not in assigned or op.input("MasterParam"):
            continue
        (param,) = op.input("Param")
        state = {s: n for s in rule.state for n in op.input(s)}
        if state and all(
            vars[n].shape == vars[param].shape and vars[n].persistable for n in state.values()
        ):
            update = Update(
                param,
                assigned[param][0],
                vars[param].shape or (),
                vars[param].dtype or "float32",
                (op,),
                state,
                {},
                (),
            )
            found.setdefault((op.type, update.dtype, tuple(state)), {})[param] = update
    groups, number = (
        [],
        sum(
            len(op.output("Out")) for op in desc.blocks[0].ops if op.type == "c_deal_reducescatter"
        ),
    )
    for members in found.values():
        made = buckets((OwnedBlock(p, *b) for p in members for b in assigned[p][1]), ranks)
        groups.append(Group(members, tuple(made), number))
        number += len(made)
    return tuple(groups)


class _Whole(Emission):
    def emit(self) -> list[OpDesc]:
        out: list[OpDesc] = []
        for group in self.groups:
            wholes = {n: n + "@WHOLE" for u in group.updates.values() for n in u.state.values()}
            self.vars.update(
                {
                    new: replace(self.block.vars[old], name=new, persistable=False)
                    for old, new in wholes.items()
                }
            )
            of = {
                slot: {p: wholes[u.state[slot]] for p, u in group.updates.items()}
                for slot in group.like.state
            }
            for slot, names in of.items():
                for i in range(len(group.buckets)):
                    self.declared(group, i, slot, kept=True)
                out += self.gathered(group, slot, names)
            for update in group.updates.values():
                (op,) = update.ops
                out.append(replace(edit.rename_op(op, wholes), attrs=op.attrs))
                self.notes.append(
                    did(op, f"the state of {update.param} is kept where its blocks are")
                )
            for slot, names in of.items():
                for i, one in enumerate(group.buckets):
                    out.append(
                        self.moved(
                            "c_deal", one, [names[p] for p in one.names], group.array(i, slot)
                        )
                    )
        return out
