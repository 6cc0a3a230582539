"""Embedding tables that trainers do not hold: their rows are looked up on the pservers.

A table whose lookups are `is_sparse` is cut into blocks like any parameter;
`distributed_lookup_table` fetches rows. A table whose lookups are `is_distributed` is distributed
row by row (row r to pserver r mod n): ids are split, rows fetched and merged, and plain sgd updates
it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..base.loc import warn
from ..dist.pserver_plan import PlannedParam, PlannedTable
from ..errors import FluidValueError, OneTableError, UnsupportedError
from ..ir import edit
from ..ir.desc import OpDesc, ProgramDesc, VarDesc
from ..ops.kinds import is_lookup, is_lookup_grad
from .making import Maker


def sparse_grads(main: ProgramDesc) -> set[str]:
    """Gradients that are rows by id: those declared so, those of `is_sparse` lookups, and sums of
    these.
    """
    found = {name for name, var in main.blocks[0].vars.items() if var.kind == "SELECTED_ROWS"}
    for op in main.blocks[0].ops:
        of_lookup = is_lookup_grad(op.type) and op.attrs.get("is_sparse")
        of_sum = op.type == "sum" and op.input("X") and found.issuperset(op.input("X"))
        if (of_lookup and op.output("W@GRAD")) or of_sum:
            found.update(op.writes)
    return found


def remote_tables(main: ProgramDesc) -> set[str]:
    """The tables of lookups that fetch rows from pservers."""
    return {
        op.input("W")[0]
        for op in main.blocks[0].ops
        if is_lookup(op.type) and op.attrs.get("remote_prefetch")
    }


def distributed_table(
    main: ProgramDesc,
    pairs: Iterable[tuple[VarDesc, str]],
    updates: Iterable[OpDesc],
    pservers: int,
) -> PlannedTable | None:
    """The table of the `is_distributed` lookups, if there are any.

    Raises OneTableError for several tables or for a lookup of the table that is not
    `is_distributed`; FluidValueError for a table that nothing updates; UnsupportedError for an
    optimizer without learning rate and for a padding_idx. Warns that weight decay is not applied to
    such a table.
    """
    lookups = [op for op in main.blocks[0].ops if is_lookup(op.type)]
    names = {op.input("W")[0] for op in lookups if op.attrs.get("is_distributed")}
    if not names:
        return None
    if len(names) > 1:
        raise OneTableError(
            "all distributed lookup_table_ops should have only one table, not"
            f" {', '.join(sorted(names))}"
        )
    (name,) = names
    if not all(op.attrs.get("is_distributed") for op in lookups if op.input("W")[0] == name):
        raise OneTableError(
            f"a lookup of the distributed table {name!r} is not is_distributed; every one must be"
        )
    padded = [
        op for op in lookups if op.input("W")[0] == name and op.attrs.get("padding_idx", -1) != -1
    ]
    if padded:
        raise UnsupportedError(
            f"a lookup of the distributed table {name!r} ({padded[0].loc}) has a padding_idx, which"
            " pservers do not know; mask its rows afterwards, or look up with is_sparse alone"
        )
    grads = [g for p, g in pairs if p.name == name]
    mine = [op for op in updates if op.attrs["op_role_var"][0] == name]
    if len(mine) > 1:
        warn(
            f"the distributed table {name!r} is updated by plain sgd: its weight decay is left out",
            RuntimeWarning,
        )
    rates = [op.input("LearningRate") for op in updates if op.input("Param") == (name,)]
    if not grads or not rates:
        raise FluidValueError(
            f"the distributed table {name!r} is not trained; look it up without is_distributed"
        )
    if not rates[0]:
        raise UnsupportedError(
            f"the distributed table {name!r} steps by sgd, but its optimizer has no learning rate"
        )
    var = main.blocks[0].vars[name]
    height, width = var.shape or (0, 0)
    return PlannedTable(
        name, grads[0], (height, width), var.dtype or "float32", -(-height // pservers), rates[0][0]
    )


def look_up_remotely(
    main: ProgramDesc, params: Iterable[PlannedParam], trainer_id: int, make: Maker
) -> ProgramDesc:
    """`main` with all lookups of each remote table as one `distributed_lookup_table`, behind the
    last op that computes its ids.
    """
    for param in params:
        main = _as_one(main, param, trainer_id, make) if param.remote else main
    return main


def _as_one(main: ProgramDesc, param: PlannedParam, trainer_id: int, make: Maker) -> ProgramDesc:
    ops = main.blocks[0].ops
    lookups = [op for op in ops if is_lookup(op.type) and op.input("W") == (param.name,)]
    groups = [
        list(g)
        for _, g in itertools.groupby(
            lookups, key=lambda op: (op.type, op.attrs.get("padding_idx", -1))
        )
    ]
    joined = _joined(ops, lookups) if len(groups) == 1 else None
    if joined is None:  # one lookup's result is needed for another's ids: one op for each
        calls = {op.uid: _call([op], param, trainer_id, make) for op in lookups}
        return edit.replace_ops(main, 0, (calls.get(op.uid, op) for op in ops))
    rest = [op for op in ops if op not in lookups]
    rest.insert(joined, _call(lookups, param, trainer_id, make))
    return edit.replace_ops(main, 0, rest)


def _joined(ops: Sequence[OpDesc], lookups: Sequence[OpDesc]) -> int | None:
    """The position of one op for all lookups among the others: behind all ops that compute ids,
    before any that reads a result; None if there is none.
    """
    gone = {op.uid for op in lookups}
    last = ops.index(lookups[-1])
    rest = [op for op in ops if op.uid not in gone]
    before = [op for op in ops[:last] if op.uid not in gone]
    ids, outs = (
        {n for op in lookups for n in names(op)}
        for names in (lambda op: op.input("Ids"), lambda op: op.output("Out"))
    )
    made = max((at + 1 for at, op in enumerate(before) if not ids.isdisjoint(op.writes)), default=0)
    read = min(
        (at for at, op in enumerate(rest) if not outs.isdisjoint((*op.reads, *op.writes))),
        default=len(rest),
    )
    return made if made <= read else None


def _call(lookups: Sequence[OpDesc], param: PlannedParam, trainer_id: int, make: Maker) -> OpDesc:
    return make.op(
        "distributed_lookup_table",
        {"Ids": [op.input("Ids")[0] for op in lookups], "W": param.name},
        {"Outputs": [op.output("Out")[0] for op in lookups]},
        table_names=[b.name for b in param.blocks],
        height_sections=[b.shape[0] for b in param.blocks],
        endpoints=[b.endpoint for b in param.blocks],
        padding_idx=lookups[0].attrs.get("padding_idx", -1),
        trainer_id=trainer_id,
        lookup_table_version=lookups[0].type,
    )


def prefetched(
    main: ProgramDesc, table: PlannedTable, endpoints: Sequence[str], trainer_id: int, make: Maker
) -> ProgramDesc:
    """`main` with the lookups of the distributed table as split_ids, prefetch and merge_ids, at the
    position of the first.

    Raises UnsupportedError if the ids of a later lookup are computed after the first.
    """
    ops = main.blocks[0].ops
    lookups = [op for op in ops if is_lookup(op.type) and op.input("W") == (table.name,)]
    first = ops.index(lookups[0])
    ids = [op.input("Ids")[0] for op in lookups]
    if any(not set(ids).isdisjoint(op.writes) for op in ops[first : ops.index(lookups[-1])]):
        raise UnsupportedError(
            f"ids for the distributed table {table.name!r} are made after its first lookup; make"
            " all ids first"
        )
    outs = [op.output("Out")[0] for op in lookups]
    into, back = prefetch_vars(main, ids[0], outs[0], len(endpoints))
    names, rows = [v.name for v in into], [v.name for v in back]
    fetching = [
        make.op("split_ids", {"Ids": ids}, {"Out": names}),
        make.op("prefetch", {"X": names}, {"Out": rows}, epmap=endpoints, trainer_id=trainer_id),
        make.op("merge_ids", {"Ids": ids, "Rows": names, "X": rows}, {"Out": outs}),
    ]
    rest = [op for op in ops if op not in lookups]
    return edit.add_vars(
        edit.replace_ops(main, 0, [*rest[:first], *fetching, *rest[first:]]), 0, [*into, *back]
    )


def prefetch_vars(
    main: ProgramDesc, ids: str, out: str, pservers: int
) -> tuple[list[VarDesc], list[VarDesc]]:
    """The variables of the ids for each pserver, and of the rows that come back."""
    vars = main.blocks[0].vars

    def like(name: str, stem: str) -> list[VarDesc]:
        var = VarDesc(stem, vars[name].shape, vars[name].dtype, vars[name].kind)
        return [replace(var, name=f"{stem}_{i}") for i in range(pservers)]

    return like(ids, "prefetch_compress_in_tmp"), like(out, "prefetch_compress_out_tmp")


def sent_parts(table: PlannedTable, sync: bool, trainer_id: int, pservers: int) -> list[str]:
    """The names under which a trainer sends the table's gradient, by pserver."""
    return [
        f"{table.grad}.trainer_{trainer_id}.pserver_{i}" if sync else f"{table.grad}.pserver_{i}"
        for i in range(pservers)
    ]
