"""Asynchronous pservers on a mesh: gradients are applied one after another, in a new random order
for every step.

In Fluid no process waits: a pserver updates with each trainer's gradient as it arrives, and that
trainer continues with the values that it then receives. Here all ranks take a step at once, so the
second gradient was computed without the first one's update: the staleness is up to ranks - 1
updates, and reproducible by the seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from ...base.dtypes import enum_of
from ...devices.shard_layout import ShardLayout, Span
from ...errors import UnsupportedError
from ...ir import edit
from ...ir.desc import BlockDesc, BlockRef, FrozenMap, OpDesc, ProgramDesc, VarDesc
from ...ops.sharding import flat_shapes
from ...passes.base import Params, Pass, Rewrite
from .block_partition import Deal, Emission, Group, grouped, state_placed
from .shard_buckets import connected, spans

ORDER = "@ARRIVALS"
# the rank of the current gradient, its position, the number of gradients, whether more follow
NOW, AT, END, MORE = (f"{ORDER}.{name}" for name in ("NOW", "AT", "END", "MORE"))


@dataclass(frozen=True)
class PartitionedAsync(Pass):
    """Update each block on its rank with the ranks' gradients one after another.

    answers: every rank continues with the parameters after its own gradient (async), so each has
    its own copy; otherwise all get those after the last one (half-async). compensated: gradients
    are corrected by (param - the rank's version of param) * grad * grad (enable_dc_asgd). A
    learning rate's schedule counts the batches of all ranks. Raises UnsupportedError for an update
    that cannot run on blocks.
    """

    name: ClassVar[str] = "dealt_async"

    ranks: int
    deal: Deal = field(repr=False)
    answers: bool = True
    compensated: bool = False

    def rewrite(self, desc: ProgramDesc, params: Params, keep: frozenset[str]) -> Rewrite:
        groups, reasons = grouped(desc, self.deal, self.ranks)
        for param, reason in reasons.items():
            raise UnsupportedError(
                f"parameter {param!r} cannot be updated asynchronously in a job of processes, since"
                f" {reason}; fluid.dist.LocalJob runs it in one process"
            )
        if not groups:
            return Rewrite(_counting(desc, self.ranks))
        emission = _Async(desc, self, groups)
        return Rewrite(_counting(emission.rewritten(), self.ranks), notes=tuple(emission.notes))

    def placed(self, before: ProgramDesc, after: ProgramDesc) -> Mapping[str, ShardLayout]:
        """The layout of the state; in async mode also of the pservers' parameters, of which every
        rank has a copy.
        """
        groups, _ = grouped(before, self.deal, self.ranks)
        found = state_placed(groups)
        if self.answers:
            found |= _params_placed(groups, self.ranks)
        return found


def _params_placed(groups: tuple[Group, ...], ranks: int) -> dict[str, ShardLayout]:
    found: dict[str, list[Span]] = {}
    for group in groups:
        for i, one in enumerate(group.buckets):
            for b, at in one.blocks:
                found.setdefault(b.name, []).append(
                    Span(group.array(i, "Param"), b.rank, at, b.start, b.size)
                )
    shapes = {u.param: u.shape for g in groups for u in g.updates.values()}
    wholes = {
        n: ShardLayout(shapes[n], tuple(sorted(s, key=lambda one: one.start)))
        for n, s in found.items()
    }
    return {
        n: replace(p, copies=tuple(Span(n, r, 0, 0, p.size) for r in range(ranks)))
        for n, p in wholes.items()
    }


def _counting(desc: ProgramDesc, ranks: int) -> ProgramDesc:
    """The program whose schedule counts the batches of all ranks."""

    def counted(op: OpDesc) -> OpDesc:
        schedules = edit.role(op) in (edit.LRSCHED, edit.LRSCHED | edit.OPTIMIZE)
        if op.type != "increment" or not schedules:
            return op
        return replace(op, attrs=op.attrs.set(step=float(op.attrs.get("step", 1.0)) * ranks))

    return edit.replace_ops(desc, 0, map(counted, desc.blocks[0].ops))


class _Async(Emission):
    def __init__(
        self, desc: ProgramDesc, options: PartitionedAsync, groups: tuple[Group, ...]
    ) -> None:
        super().__init__(desc, options.ranks, groups)
        self.options = options
        self.body: list[OpDesc] = []
        self.inside: dict[str, VarDesc] = {}  # the body's own variables

    def rewritten(self) -> ProgramDesc:
        """The program with the updates' ops replaced by a loop over the arrivals."""
        desc = super().rewritten()
        body = BlockDesc(FrozenMap(self.inside), tuple(self.body), 0)
        return replace(desc, blocks=(*desc.blocks, body))

    def emit(self) -> list[OpDesc]:
        """A loop instead of the ranks' ops in sequence, which would be thousands."""
        for name, shape, dtype in (
            (ORDER, self.ranks, "int32"), (NOW, 1, "int32"), (AT, 1, "int64"), (END, 1, "int64"), (MORE, 1, "bool")
        ):  # fmt: skip
            self.vars[name] = VarDesc(name, (shape,), dtype, stop_gradient=True)
        out = [
            self.new("c_arrival_order", [], [ORDER], nranks=self.ranks),
            self.filled(AT, (1,), "int64", 0),
            self.filled(END, (1,), "int64", self.ranks),
            self.new("less_than", [AT], [MORE], {"Y": [END]}),
        ]
        for group in self.groups:
            for i in range(len(group.buckets)):
                out += self.received(group, i)
                if self.options.answers:
                    out.append(self.answers(group, i))
        outside = {*self.block.vars, *(n for op in out for n in op.writes)}
        self.body = [self.new("gather", [ORDER], [NOW], {"Index": [AT]})]
        for group in self.groups:
            for i in range(len(group.buckets)):
                self.body += self.arrived(group, i)
        self.body += [
            *self.powers(),
            self.new("increment", [AT], [AT], step=1.0),
            self.new("less_than", [AT], [MORE], {"Y": [END]}),
        ]
        out.append(self.loop(outside | {n for n, v in self.vars.items() if v.persistable}))
        for group in self.groups:
            out += (
                self.answered(group)
                if self.options.answers
                else self.gathered(group, "Param", {p: p for p in group.updates})
            )
        return out

    def loop(self, outside: set[str]) -> OpDesc:
        """The loop; names that nothing else writes are local to the body."""
        reads = dict.fromkeys(n for op in self.body for n in op.reads)
        writes = dict.fromkeys(n for op in self.body for n in op.writes)
        self.inside = {n: self.vars.pop(n) for n in writes if n in self.vars and n not in outside}
        scopes = "@ARRIVALS.SCOPES"
        self.vars[scopes] = VarDesc(scopes, None, None, "STEP_SCOPES")
        given = {
            "X": [n for n in reads if n not in self.inside and n != MORE],
            "Condition": [MORE],
        }
        made = {"Out": [n for n in writes if n not in self.inside], "StepScopes": [scopes]}
        block = BlockRef(len(self.desc.blocks))
        return self.made.op("while", given, made, edit.OPTIMIZE, self.at, sub_block=block)

    def filled(self, name: str, shape: tuple[int, ...], dtype: str, value: int) -> OpDesc:
        attrs: dict[str, Any] = {"shape": shape, "dtype": enum_of(dtype), "value": float(value)}
        return self.new("fill_constant", [], [name], **attrs)

    def answers(self, group: Group, i: int) -> OpDesc:
        """The values of a bucket to return to the ranks, a row for each arrival."""
        name, width = self.declared(group, i, "Answers"), group.buckets[i].width
        self.vars[name] = replace(self.vars[name], shape=(self.ranks, width))
        return self.filled(name, (self.ranks, width), group.like.dtype, 0)

    def received(self, group: Group, i: int) -> list[OpDesc]:
        """The gradients from all ranks for the blocks of a bucket, a row for each; and the blocks
        themselves.
        """
        one, names = group.buckets[i], list(group.buckets[i].names)
        out = [self.exchanged(group, i, "Grads", [group.updates[p].grad for p in names])]
        if self.options.compensated:
            out.append(self.exchanged(group, i, "Seen", names))
        param = self.declared(group, i, "Param", kept=self.options.answers)
        return out if self.options.answers else [*out, self.moved("c_deal", one, names, param)]

    def exchanged(self, group: Group, i: int, role: str, x: list[str]) -> OpDesc:
        name = self.declared(group, i, role)
        self.vars[name] = replace(self.vars[name], shape=(self.ranks, group.buckets[i].width))
        return self.moved("c_deal_alltoall", group.buckets[i], x, name)

    def arrived(self, group: Group, i: int) -> list[OpDesc]:
        """The update of a bucket with the current gradient."""
        names, out = self.mapping(group, i)
        grad, param = self.declared(group, i, "Grad"), group.array(i, "Param")
        out.append(self.taken_in(group, i, "Grads", grad))
        if self.options.compensated:
            out += self.compensated(group, i, grad)
        out += self.updated(group, i, {**names, group.like.param: param, group.like.grad: grad})
        if self.options.answers:
            row, answers = self.declared(group, i, "Answer"), group.array(i, "Answers")
            self.vars[row] = replace(self.vars[row], shape=(1, group.buckets[i].width))
            out += [
                self.new("unsqueeze", [param], [row], axes=(0,)),
                self.new("scatter", [answers], [answers], {"Ids": [AT], "Updates": [row]}),
            ]
        return out

    def taken_in(self, group: Group, i: int, role: str, to: str) -> OpDesc:
        return self.new("c_arrived", [group.array(i, role)], [to], {"Order": [NOW]})

    def compensated(self, group: Group, i: int, grad: str) -> list[OpDesc]:
        """grad += (param - the rank's version of param) * grad * grad."""
        late = self.declared(group, i, "Late")
        param = group.array(i, "Param")
        steps = [
            ("sub", param, late, late),
            ("mul", late, grad, late),
            ("mul", late, grad, late),
            ("add", grad, late, grad),
        ]
        ops = [
            self.new(f"elementwise_{kind}", [x], [to], {"Y": [y]}, axis=-1)
            for kind, x, y, to in steps
        ]
        return [self.taken_in(group, i, "Seen", late), *ops]

    def answered(self, group: Group) -> list[OpDesc]:
        """The ops that give every rank the parameters after its own gradient."""
        out = []
        for members in connected(group.buckets):
            found = [group.buckets[i] for i in members]
            names = list(dict.fromkeys(n for one in found for n in one.names))
            shapes = tuple(flat_shapes([group.updates[n].shape for n in names]))
            attrs: dict[str, Any] = {"nranks": self.ranks, "ring_id": 0, "shapes": shapes}
            rows = [group.array(i, "Answers") for i in members]
            where = spans(found, {n: k for k, n in enumerate(names)})
            out.append(
                self.new("c_deal_answer", rows, names, {"Order": [ORDER]}, spans=where, **attrs)
            )
        return out
