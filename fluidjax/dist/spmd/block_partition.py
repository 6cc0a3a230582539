"""Pservers on a mesh: only rank k holds and updates the blocks assigned to pserver k.

The trainers' gradients are reduce-scattered to the blocks' ranks, the updates run on buckets of
blocks (shard_buckets.py), and the updated parameters are gathered. The printed program shows all of
this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar

from ...devices.shard_layout import ShardLayout, Span
from ...errors import UnsupportedError
from ...ir import edit
from ...ir.desc import FrozenMap, OpDesc, ProgramDesc, VarDesc
from ...ops.build import OpBuilder
from ...ops.registry import lookup
from ...ops.sharding import flat_shapes
from ...passes.base import Note, Params, Pass, Rewrite, did
from ..pserver_plan import PserverPlan
from .shard_buckets import OwnedBlock, ShardBucket, buckets, connected, spans
from .updates import Update, array_of, goes_on, updates

# (parameter, what is sent, ((rank, start, size), ...))
Deal = tuple[tuple[str, str, tuple[tuple[int, int, int], ...]], ...]


def deal_of(plan: PserverPlan, ranks: int) -> Deal:
    """The blocks of each rank: pserver k is rank k, or k mod ranks if there are fewer ranks than
    pservers.
    """
    place = {endpoint: k % ranks for k, endpoint in enumerate(plan.endpoints)}
    return tuple(
        (p.name, p.grad, tuple((place[b.endpoint], b.offset, b.size) for b in p.blocks))
        for p in plan.params
    )


@dataclass(frozen=True)
class PartitionedOptimizer(Pass):
    """Update each block of a parameter on its assigned rank, with the mean of the ranks' gradients.

    It applies to elementwise updates; others are noted, and do not change. ranks: the number of
    trainers.
    """

    name: ClassVar[str] = "dealt_optimizer"

    ranks: int
    deal: Deal = field(repr=False)

    def rewrite(self, desc: ProgramDesc, params: Params, keep: frozenset[str]) -> Rewrite:
        groups, reasons = grouped(desc, self.deal, self.ranks)
        if not groups:
            return Rewrite(desc, notes=tuple(_refusals(desc, reasons)))
        emission = _Sync(desc, self.ranks, groups)
        return Rewrite(emission.rewritten(), notes=(*emission.notes, *_refusals(desc, reasons)))

    def placed(self, before: ProgramDesc, after: ProgramDesc) -> Mapping[str, ShardLayout]:
        """The layout of the updates' state."""
        groups, _ = grouped(before, self.deal, self.ranks)
        return state_placed(groups)


@dataclass(frozen=True)
class Group:
    """Buckets of blocks of parameters with equal updates. number: that of its first bucket in the
    program.
    """

    updates: Mapping[str, Update]
    buckets: tuple[ShardBucket, ...]
    number: int

    @property
    def like(self) -> Update:
        return next(iter(self.updates.values()))

    def array(self, i: int, role: str) -> str:
        """The name of a rank's row of bucket i."""
        return f"@BIN_{self.number + i}.{role}"


@lru_cache(maxsize=16)
def grouped(
    desc: ProgramDesc, deal: Deal, ranks: int
) -> tuple[tuple[Group, ...], Mapping[str, str]]:
    """The updates in groups with their buckets, and the reasons for excluding others."""
    found, reasons = updates(desc, {param: grad for param, grad, _ in deal})
    blocks = {param: [OwnedBlock(param, *b) for b in assigned] for param, _, assigned in deal}
    by_signature: dict[object, list[Update]] = {}
    for update in found:
        by_signature.setdefault(update.signature(), []).append(update)
    groups, number = [], 0
    for members in by_signature.values():
        made = buckets((b for u in members for b in blocks[u.param]), ranks)
        groups.append(Group({u.param: u for u in members}, tuple(made), number))
        number += len(made)
    return tuple(groups), FrozenMap(reasons)


def state_placed(groups: Iterable[Group]) -> dict[str, ShardLayout]:
    """The layout of every variable of the updates' state, by its name."""
    found: dict[str, list[Span]] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for group in groups:
        for i, one in enumerate(group.buckets):
            for block, at in one.blocks:
                update = group.updates[block.name]
                for slot, name in update.state.items():
                    shapes[name] = update.shape
                    found.setdefault(name, []).append(
                        Span(group.array(i, slot), block.rank, at, block.start, block.size)
                    )
    return {
        n: ShardLayout(shapes[n], tuple(sorted(s, key=lambda one: one.start)))
        for n, s in found.items()
    }


def _refusals(desc: ProgramDesc, reasons: Mapping[str, str]) -> Iterator[Note]:
    for op in desc.blocks[0].ops:
        for name in op.input("Param"):
            if name in reasons:
                yield did(op, f"{name} is updated on every rank, since {reasons[name]}")


class Emission:
    """The rewriting of one program."""

    def __init__(self, desc: ProgramDesc, ranks: int, groups: Sequence[Group]) -> None:
        self.desc, self.ranks, self.groups = desc, ranks, groups
        self.block = desc.blocks[0]
        self.made = OpBuilder.after(desc)
        self.vars: dict[str, VarDesc] = {}
        self.notes: list[Note] = []
        self.taken = {op.uid for g in groups for u in g.updates.values() for op in u.ops}
        self.state = {n for g in groups for u in g.updates.values() for n in u.state.values()}
        self.params = {p: self.block.vars[p] for g in groups for p in g.updates}

    def rewritten(self) -> ProgramDesc:
        """The program with the updates' ops replaced, at the position of the last of them."""
        at = [i for i, op in enumerate(self.block.ops) if op.uid in self.taken]
        self._refuse_between(
            [op for op in self.block.ops[at[0] : at[-1]] if op.uid not in self.taken]
        )
        out: list[OpDesc] = []
        for i, op in enumerate(self.block.ops):
            if op.uid not in self.taken:
                out.append(op)
            if i == at[-1]:
                self.at = op
                out += self.emit()
        vars = {n: v for n, v in self.block.vars.items() if n not in self.state}
        desc = edit.replace_block(self.desc, 0, replace(self.block, vars=FrozenMap(vars)))
        return edit.add_vars(edit.replace_ops(desc, 0, out), 0, self.vars.values())

    def _refuse_between(self, ops: Sequence[OpDesc]) -> None:
        """Make ops between updates read the old parameters, as on a trainer. Raises
        UnsupportedError for an op that writes one.
        """
        for op in ops:
            written = [n for n in op.writes if n in self.params]
            if written:
                raise UnsupportedError(
                    f"op '{op.type}' ({op.loc}) writes {written[0]!r} between the updates of"
                    " parameters, which a job of processes does at once; put it before minimize or"
                    " after it"
                )

    def emit(self) -> list[OpDesc]:
        """The ops that replace the updates."""
        raise NotImplementedError

    # -- what emissions have in common -------------------------------------------------------------

    def new(
        self,
        kind: str,
        x: Sequence[str],
        out: Sequence[str],
        inputs: Mapping[str, Sequence[str]] | None = None,
        **attrs: object,
    ) -> OpDesc:
        """An op from X, if given, and other inputs to Out."""
        given = {**({"X": x} if x else {}), **(inputs or {})}
        return self.made.op(kind, given, {"Out": out}, edit.OPTIMIZE, self.at, **attrs)

    def moved(
        self, kind: str, one: ShardBucket, x: Sequence[str], out: str, single: bool = False
    ) -> OpDesc:
        """An op from whole arrays, one for each name of the bucket, to a row of it."""
        wholes = {name: i for i, name in enumerate(one.names)}
        attrs: dict[str, Any] = {
            "nranks": self.ranks,
            "ring_id": 0,
            "widths": (one.width,),
            "spans": spans([one], wholes, single),
        }
        return self.new(kind, x, [out], **attrs)

    def declared(
        self, group: Group, i: int, role: str, kept: bool = False, width: int | None = None
    ) -> str:
        """A new variable for a row of a bucket."""
        name = group.array(i, role)
        self.vars[name] = array_of(
            name, group.buckets[i].width if width is None else width, group.like.dtype, kept
        )
        return name

    def mapping(self, group: Group, i: int) -> tuple[dict[str, str], list[OpDesc]]:
        """A map from the names of the group's first update to those of a bucket, except Param and
        Grad; and the ops that make them.
        """
        like, one, out = group.like, group.buckets[i], list[OpDesc]()
        names = {n: self.declared(group, i, slot, kept=True) for slot, n in like.state.items()}
        names |= {n: self.declared(group, i, f"Temp{k}") for k, n in enumerate(like.temps)}
        for slot, name in like.powers.items():
            own = [group.updates[p].powers[slot] for p in one.names]
            if len(own) == 1:
                names[name] = own[0]
                continue
            alone = all(at == 0 for _, at in one.blocks)
            row = (
                ShardBucket(tuple((replace(b, size=1), at) for b, at in one.blocks), 1)
                if alone
                else one
            )
            names[name] = self.declared(group, i, slot, width=row.width)
            out.append(self.moved("c_deal", row, own, names[name], single=True))
        return names, out

    def updated(self, group: Group, i: int, names: Mapping[str, str]) -> list[OpDesc]:
        """The ops of an update on a bucket."""
        ops = []
        for op in group.like.ops:
            written = [s for s in goes_on(op.type) if op.output(s)]  # not read: see `powers`
            unread = {
                s: (self.declared(group, i, s, width=self._width(op, s, names)),) for s in written
            }
            inside = edit.rename_op(replace(op, outputs=FrozenMap({**op.outputs, **unread})), names)
            ops.append(
                replace(
                    inside,
                    uid=self.made.uid(),
                    attrs=FrozenMap({**op.attrs, "op_role_var": group.buckets[i].names}),
                )
            )
        self.notes.append(
            did(
                group.like.optimizer,
                f"bucket {group.number + i} holds blocks of {', '.join(group.buckets[i].names)}",
            )
        )
        return ops

    def _width(self, op: OpDesc, slot: str, names: Mapping[str, str]) -> int:
        """The form of a number that an optimizer op updates: one, or one per element."""
        row = self.vars.get(names[op.input(goes_on(op.type)[slot][0])[0]])
        return 1 if row is None else (row.shape or (1,))[0]

    def powers(self) -> list[OpDesc]:
        """The ops that update the numbers that optimizer ops would have written, once per
        parameter.
        """
        out = []
        for update in (u for g in self.groups for u in g.updates.values()):
            for slot, (source, attr) in goes_on(update.optimizer.type).items():
                if update.optimizer.output(slot):
                    name, beta = (
                        update.powers[source],
                        update.optimizer.attrs.get(
                            attr, lookup(update.optimizer.type).defaults[attr]
                        ),
                    )
                    out.append(
                        self.new(
                            "scale", [name], [name], scale=beta, bias=0.0, bias_after_scale=True
                        )
                    )
        return out

    def gathered(self, group: Group, role: str, wholes: Mapping[str, str]) -> list[OpDesc]:
        """The ops that gather whole arrays on every rank; wholes: parameter -> the array of its
        shape stored in rows `role`.
        """
        out = []
        for members in connected(group.buckets):
            found = [group.buckets[i] for i in members]
            names = list(dict.fromkeys(n for one in found for n in one.names))
            shapes = tuple(flat_shapes([group.updates[n].shape for n in names]))
            where = spans(found, {n: k for k, n in enumerate(names)})
            attrs: dict[str, Any] = {
                "nranks": self.ranks,
                "ring_id": 0,
                "shapes": shapes,
                "spans": where,
            }
            out.append(
                self.new(
                    "c_deal_allgather",
                    [group.array(i, role) for i in members],
                    [wholes[n] for n in names],
                    **attrs,
                )
            )
        return out


class _Sync(Emission):
    """Every step waits for all ranks: the mean of the gradients, one update, and the same
    parameters for all.
    """

    def emit(self) -> list[OpDesc]:
        out: list[OpDesc] = []
        for group in self.groups:
            for i, one in enumerate(group.buckets):
                grads = [group.updates[p].grad for p in one.names]
                grad, param = self.declared(group, i, "Grad"), self.declared(group, i, "Param")
                out.append(self.moved("c_deal_reducescatter", one, grads, grad))
                out.append(
                    self.new(
                        "scale",
                        [grad],
                        [grad],
                        scale=1.0 / self.ranks,
                        bias=0.0,
                        bias_after_scale=True,
                    )
                )
                out.append(self.moved("c_deal", one, list(one.names), param))
        for group in self.groups:
            for i in range(len(group.buckets)):
                names, before = self.mapping(group, i)
                names |= {
                    group.like.param: group.array(i, "Param"),
                    group.like.grad: group.array(i, "Grad"),
                }
                out += before + self.updated(group, i, names)
        out += self.powers()
        for group in self.groups:
            out += self.gathered(group, "Param", {p: p for p in group.updates})
        return out
