"""Tables of a parameter-server job on a mesh: each rank holds the rows of its pservers. Rank k is
pserver k.

With more pservers than ranks, pserver k is rank k % ranks; with fewer, the other ranks hold no
rows. A table of is_distributed lookups is distributed row by row and updated by plain sgd with the
sum of the trainers' gradients; one of is_sparse lookups is split into the blocks that the
dispatcher assigned, and updated by its optimizer with their average.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ...devices.shard_layout import ShardLayout, Span
from ...errors import UnsupportedError
from ...ir import edit, walk
from ...ir.desc import FrozenMap, OpDesc, ProgramDesc, VarDesc
from ...ops.build import OpBuilder
from ...ops.kinds import is_lookup, is_lookup_grad, kind_of_output
from ...ops.registry import lookup, traits
from ...ops.selected import KIND
from ...ops.table import Split
from ...passes.base import Note, Params, Pass, Rewrite, did, refused
from ..pserver_plan import PlannedParam, PlannedTable, PserverPlan

# Ops of regularizers, which work on a rank's rows as on the whole. Not all elementwise ops qualify:
# a clip multiplies by a norm, which must be that of the whole.
_DECAY = frozenset({"scale", "sign", "sum"})


@dataclass(frozen=True)
class Table:
    """A table to shard: its name, its gradient (`main`'s name of the sent one), and the rows of
    each rank.

    scale: the factor of the sum of the ranks' gradients. rate: the variable of the learning rate of
    plain sgd, which replaces the program's optimizer; "" keeps the optimizer.
    """

    name: str
    grad: str
    split: Split
    scale: float = 1.0
    rate: str = ""


@dataclass(frozen=True)
class Uses:
    """The ops of the main block that use a table, and the state of its optimizer with the table's
    shape.
    """

    lookups: tuple[OpDesc, ...]
    grads: tuple[OpDesc, ...]
    updates: tuple[OpDesc, ...]
    state: tuple[str, ...]


def tables_of(plan: PserverPlan, ranks: int) -> tuple[Table, ...]:
    """The tables of a job that are sharded over its ranks.

    An is_sparse table with other uses, or that its optimizer cannot update in parts, is replicated
    instead. Raises UnsupportedError for such an is_distributed one. In asynchronous jobs every
    gradient is applied separately; with plain sgd that equals their sum in any order, and other
    updates are not sharded.
    """
    found = []
    for table in plan.tables:
        reason = objection(plan.main, table.name, table.grad, plain=True)
        if reason is not None:
            raise UnsupportedError(
                f"the rows of the distributed table {table.name!r} cannot be distributed over the"
                f" ranks: {reason}"
            )
        found.append(
            Table(table.name, table.grad, _split_of(plan, table, ranks), 1.0, table.learning_rate)
        )
    for param in plan.params:
        if ranks > 1 and param.remote and _reason(plan, param) is None:
            scale = 1.0 / plan.trainers if plan.mode == "sync" else 1.0
            found.append(Table(param.name, param.grad, _runs(plan, param, ranks), scale))
    return tuple(found)


def _reason(plan: PserverPlan, param: PlannedParam) -> str | None:
    """Why an is_sparse table cannot be sharded, or None."""
    updates = [op.type for op in uses(plan.main, param.name).updates]
    if plan.mode != "sync" and updates != ["sgd"]:
        return f"the order in which gradients come matters to its update ({', '.join(updates)})"
    return objection(plan.main, param.name, param.grad)


def _split_of(plan: PserverPlan, table: PlannedTable, ranks: int) -> Split:
    owners = tuple(k % ranks for k in range(len(plan.endpoints)))
    return Split(table.shape[0], ranks, True, owners) if ranks > 1 else Split(table.shape[0], 1)


def _runs(plan: PserverPlan, param: PlannedParam, ranks: int) -> Split:
    owners = tuple(plan.index(b.endpoint) % ranks for b in param.blocks)
    return Split(param.shape[0], ranks, False, owners, tuple(b.rows.start for b in param.blocks))


def uses(desc: ProgramDesc, name: str) -> Uses:
    """The uses of a table in a program, in order."""
    ops = desc.blocks[0].ops
    updates = tuple(
        op for op in ops if edit.role(op) == edit.OPTIMIZE and edit.role_names(op)[:1] == (name,)
    )
    shape = desc.blocks[0].vars[name].shape
    mine = dict.fromkeys(n for op in updates for n in op.reads if n != name)
    state = tuple(n for n in mine if (v := desc.blocks[0].vars[n]).persistable and v.shape == shape)
    return Uses(
        tuple(op for op in ops if is_lookup(op.type) and op.input("W") == (name,)),
        tuple(op for op in ops if is_lookup_grad(op.type) and op.input("W") == (name,)),
        updates,
        state,
    )


def objection(desc: ProgramDesc, name: str, grad: str, plain: bool = False) -> str | None:
    """Why a table cannot be sharded, or None. plain: it is updated by plain sgd, whatever its
    optimizer is.
    """
    used = uses(desc, name)
    known = {id(op) for op in (*used.lookups, *used.grads, *used.updates)}
    for n in (name, *used.state):
        other = next(
            (
                op
                for _, op in walk.ops(desc)
                if id(op) not in known and n in (*op.reads, *op.writes)
            ),
            None,
        )
        if other is not None:
            return f"op '{other.type}' ({other.loc}) uses {n!r}"
    steps = [op for op in used.updates if name in op.output("ParamOut")]
    if len(steps) != 1:
        return f"{len(steps)} ops update it"
    return None if plain else _unfit(used, steps[0], name, grad)


def _unfit(used: Uses, step: OpDesc, name: str, grad: str) -> str | None:
    """Why an optimizer cannot update some rows separately, or None."""
    rule = traits(step.type).update
    if rule is None or not rule.elements:
        return f"op '{step.type}' updates it as a whole"
    others = [
        op
        for op in used.updates
        if op is not step and {name, grad, *step.input("Grad")} & {*op.reads, *op.writes}
    ]
    if bad := [op.type for op in others if op.type not in _DECAY]:
        return f"op '{bad[0]}' takes part in its update"
    if step.input("Grad") == (grad,) and not any(
        slot.name == "Grad" and slot.selected for slot in lookup(step.type).inputs
    ):
        return f"op '{step.type}' takes no sparse gradient"
    if len(used.state) < len([slot for slot in rule.state if step.input(slot)]):
        return f"the state of op '{step.type}' has another shape"
    return None


@dataclass(frozen=True)
class ShardTables(Pass):
    """Keep the rows of tables on the ranks that own them, with look-ups and updates there.

    Lookups become c_table_lookup, and at the beginning of its update the table's gradient goes
    through c_table_owned. The table and its optimizer's state are declared as one rank's part.
    left: tables that stay replicated, and why.
    """

    name: ClassVar[str] = "shard_tables"

    tables: tuple[Table, ...]
    left: tuple[tuple[str, str], ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """The sharded tables."""
        return frozenset(t.name for t in self.tables)

    def rewrite(self, desc: ProgramDesc, params: Params, keep: frozenset[str]) -> Rewrite:
        notes: list[Note] = []
        for table in self.tables:
            desc = _Sharding(desc, table, notes).rewritten()
        for name, reason in self.left:
            notes += [
                refused(op, f"all ranks hold {name!r}, since {reason}")
                for op in uses(desc, name).lookups
            ]
        return Rewrite(_kinds_followed(desc), notes=tuple(notes))

    def placed(self, before: ProgramDesc, after: ProgramDesc) -> Mapping[str, ShardLayout]:
        """The layout of the tables and their optimizers' state."""
        found = {}
        for table in (t for t in self.tables if t.split.count > 1):
            for name in (table.name, *uses(before, table.name).state):
                found[name] = place(name, before.blocks[0].vars[name], table.split)
        return found


def sharding(plan: PserverPlan, ranks: int) -> ShardTables:
    """The pass for a job's tables on this many ranks. Raises UnsupportedError like tables_of."""
    tables = tables_of(plan, ranks)
    known = {t.name for t in tables}
    remote = [p for p in plan.params if ranks > 1 and p.remote and p.name not in known]
    return ShardTables(tables, tuple((p.name, _reason(plan, p) or "") for p in remote))


def place(name: str, var: VarDesc, split: Split) -> ShardLayout:
    """The layout of a table: in the array of its own name, [ranks, rows, width]."""
    height, width = var.shape or (0, 0)
    return ShardLayout((height, width), tuple(_spans(name, width, split)))


def _spans(name: str, width: int, split: Split) -> Iterator[Span]:
    for (rank, at), (first, size) in zip(split.places, split.runs, strict=True):
        if size and split.dealt:
            yield Span(name, rank, at * width, first * width, width, split.parts * width, size)
        elif size:
            yield Span(name, rank, at * width, first * width, size * width)


class _Sharding:
    """The state of one table's rewrite."""

    def __init__(self, desc: ProgramDesc, table: Table, notes: list[Note]) -> None:
        self.desc, self.table, self.notes = desc, table, notes
        self.vars = desc.blocks[0].vars
        self.uses = uses(desc, table.name)
        self.made = OpBuilder.after(desc)
        self.owned = table.grad + "@OWNED"
        self.attrs = {**table.split.attrs(), "ring_id": 0}

    def rewritten(self) -> ProgramDesc:
        new: dict[int, list[OpDesc]] = {op.uid: [self._lookup(op)] for op in self.uses.lookups}
        new.update((op.uid, [self._gradient(op)]) for op in self.uses.grads)
        new.update(self._updates())
        ops = [one for op in self.desc.blocks[0].ops for one in new.get(op.uid, [op])]
        return edit.add_vars(edit.replace_ops(self.desc, 0, ops), 0, self._declared())

    def _lookup(self, op: OpDesc) -> OpDesc:
        return replace(op, type="c_table_lookup", attrs=self._as_ours(op))

    def _gradient(self, op: OpDesc) -> OpDesc:
        return replace(op, type="c_table_lookup_grad", attrs=self._as_ours(op))

    def _as_ours(self, op: OpDesc) -> FrozenMap:
        """The attributes of a lookup, or its gradient, of this table's rows."""
        kept = {a: v for a, v in op.attrs.items() if a.startswith("op_")}
        last_one = op.type in ("lookup_table", "lookup_table_grad")
        return FrozenMap(
            {
                **kept,
                **self.attrs,
                "padding_idx": op.attrs.get("padding_idx", -1),
                "last_one": last_one,
            }
        )

    def _updates(self) -> dict[int, list[OpDesc]]:
        """The rewritten ops of the update: on this rank's rows, or plain sgd."""
        table, updates = self.table, self.uses.updates
        step = next(op for op in updates if table.name in op.output("ParamOut"))
        begins = step if table.rate else next(op for op in updates if table.grad in op.reads)
        self.notes.append(did(step, f"{table.name} is updated on the ranks that hold its rows"))
        owned = self.made.over(
            "c_table_owned",
            [table.grad],
            begins,
            [self.owned],
            **self._role,
            **self.attrs,
            scale=table.scale,
        )
        if table.rate:
            gone: dict[int, list[OpDesc]] = {op.uid: [] for op in updates}
            return {**gone, step.uid: [owned, self._plain(step)]}
        new = {op.uid: [edit.rename_op(op, {table.grad: self.owned})] for op in updates}
        new[begins.uid].insert(0, owned)
        return new

    def _plain(self, step: OpDesc) -> OpDesc:
        """The op of plain sgd, which updates an is_distributed table."""
        table = self.table
        given = {"Param": table.name, "Grad": self.owned, "LearningRate": table.rate}
        return self.made.op("sgd", given, {"ParamOut": table.name}, None, step, **self._role)

    @property
    def _role(self) -> dict[str, object]:
        return {"op_role": edit.OPTIMIZE, "op_role_var": (self.table.name, self.owned)}

    def _declared(self) -> Iterator[VarDesc]:
        """The table, the state and the temporary values of the update, as declared on one rank."""
        whole = self.vars[self.table.name].shape
        rows = (self.table.split.each, *(whole or ())[1:])
        written = dict.fromkeys(
            n for op in self.uses.updates for n in op.writes if n != self.table.grad
        )
        for name in dict.fromkeys((self.table.name, *self.uses.state, *written)):
            if self.vars[name].shape == whole:
                yield replace(self.vars[name], shape=rows)
        yield VarDesc(self.owned, rows, self.vars[self.table.name].dtype, KIND, stop_gradient=True)


def _kinds_followed(desc: ProgramDesc) -> ProgramDesc:
    """The program with variables declared sparse if they have become so."""
    vars = desc.blocks[0].vars
    kinds = {n: v.kind for n, v in vars.items()}
    for op in desc.blocks[0].ops:
        if op.type == "c_table_lookup_grad":
            kinds.update(dict.fromkeys(op.output("W@GRAD"), KIND))
        elif KIND in (known := [kinds.get(n, "") for n in op.input("X")]):
            kind = kind_of_output(op.type, op.attrs, known)
            kinds.update(dict.fromkeys(op.output("Out") if kind else (), kind or ""))
    return edit.add_vars(
        desc,
        0,
        [
            replace(vars[n], kind=kind)
            for n, kind in kinds.items()
            if n in vars and vars[n].kind != kind
        ],
    )


# -- startup ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MakeTables(Pass):
    """Make each rank initialise its own rows of tables, and all ranks everything else equally.

    Constants are the same as in one process. Each rank samples its random rows separately, so they
    differ from those of one process; if the initializer has its own seed, all ranks sample the same
    numbers, like pservers. A table that other ops initialise is made whole on every rank, and then
    split. cut: variable -> the rows of each rank.
    """

    name: ClassVar[str] = "make_tables"

    cut: tuple[tuple[str, Split], ...]

    def rewrite(self, desc: ProgramDesc, params: Params, keep: frozenset[str]) -> Rewrite:
        made, notes = OpBuilder.after(desc), list[Note]()
        splits = dict(self.cut)
        block = desc.blocks[0]
        alone = {n for n in splits if _fills(block.ops, n)}
        wholes = {
            n: n + "@WHOLE"
            for n in splits
            if n not in alone and any(n in op.writes for op in block.ops)
        }
        ops = []
        for op in block.ops:
            mine = alone.intersection(op.writes)
            if mine:
                (name,) = mine
                notes.append(did(op, f"each rank makes its own rows of {name}"))
                ops.append(
                    replace(op, attrs=op.attrs.set(shape=_rows(block.vars[name], splits[name])))
                )
            else:
                ops.append(edit.rename_op(_in_optimizer_role(op), wholes))
        last = block.ops[-1] if block.ops else None
        for name, whole in wholes.items():
            assert last is not None
            notes.append(did(last, f"{name} is made whole and cut"))
            ops.append(
                made.over("c_table_rows", [whole], last, [name], **splits[name].attrs(), ring_id=0)
            )
        vars = [
            replace(block.vars[n], shape=_rows(block.vars[n], s))
            for n, s in self.cut
            if n in block.vars
        ]
        vars += [replace(block.vars[n], name=w, persistable=False) for n, w in wholes.items()]
        return Rewrite(edit.add_vars(edit.replace_ops(desc, 0, ops), 0, vars), notes=tuple(notes))

    def placed(self, before: ProgramDesc, after: ProgramDesc) -> Mapping[str, ShardLayout]:
        """The layout of the tables and their optimizers' state."""
        vars = before.blocks[0].vars
        return {n: place(n, vars[n], split) for n, split in self.cut if n in vars}


def making(plan: PserverPlan, ranks: int) -> MakeTables | None:
    """The pass for a job's startup program; None if all tables are replicated."""
    found = tables_of(plan, ranks) if ranks > 1 else ()
    cut = tuple((n, t.split) for t in found for n in (t.name, *uses(plan.main, t.name).state))
    return MakeTables(cut) if cut else None


def _fills(ops: Sequence[OpDesc], name: str) -> bool:
    """Whether a single op makes the variable and could make only a part of it, and nothing reads
    it.
    """
    makers = [op for op in ops if name in op.writes]
    fills = len(makers) == 1 and traits(makers[0].type).fills and not makers[0].reads
    return fills and not any(name in op.reads for op in ops)


def _in_optimizer_role(op: OpDesc) -> OpDesc:
    """The op with the role of an update, so that all ranks sample the same numbers."""
    return replace(op, attrs=op.attrs.set(op_role=edit.OPTIMIZE)) if lookup(op.type).random else op


def _rows(var: VarDesc, split: Split) -> tuple[int, ...]:
    return (split.each, *(var.shape or ())[1:])
