"""The trainer's program: gradients are sent as soon as they are computed, parameters are received
at the end.

`send_gradients` makes the program that transpile leaves, `without_updates` the one that
get_trainer_program returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..dist.pserver_plan import PlannedParam
from ..errors import FluidValueError
from ..ir import edit, walk
from ..ir.desc import FrozenMap, OpDesc, ProgramDesc, VarDesc
from .layout import Layout
from .learning_rate import scheduled
from .making import Maker
from .sparse_table import look_up_remotely, prefetched, sent_parts


def sent_names(layout: Layout, param: PlannedParam, trainer_id: int) -> list[str]:
    """The names under which this trainer sends the blocks of a gradient."""
    return [block.grad + layout.request.suffix(trainer_id) for block in param.blocks]


def role_var(layout: Layout, param: PlannedParam, trainer_id: int) -> list[str]:
    """The op_role_var of sends and receives: the parameter, and the gradient before it is split."""
    whole = sent_names(layout, param, trainer_id)[0] if len(param.blocks) == 1 else param.grad
    return [param.name, whole]


def renamed_grads(layout: Layout, trainer_id: int) -> dict[str, str]:
    """Gradient -> its name in this trainer's program, if it is sent whole."""
    whole = {p.grad: role_var(layout, p, trainer_id)[1] for p in layout.params}
    return {old: new for old, new in whole.items() if old != new}


def send_gradients(layout: Layout, trainer_id: int) -> ProgramDesc:
    """The main program with sends after the ops that compute gradients, and receives at the end;
    updates are still in it.

    Raises FluidValueError for a gradient that no op of block 0 computes.
    """
    main = edit.rename(layout.main, renamed_grads(layout, trainer_id), top=True)
    main = edit.add_vars(main, 0, block_vars(layout, trainer_id))
    make = Maker(layout.stride, main.blocks[0].vars)
    tokens = {name: make.control() for name in layout.sends}
    main = _with_sends(main, layout, trainer_id, make, tokens)
    barrier = make.control()
    tail, more = _tail(layout, trainer_id, make, tokens, barrier)
    controls = [*tokens.values(), barrier, *more.values()]
    main = edit.add_vars(edit.replace_ops(main, 0, [*main.blocks[0].ops, *tail]), 0, controls)
    main = look_up_remotely(main, layout.params, trainer_id, make)
    return _with_table(main, layout, trainer_id, make, more.get("table"))


def block_vars(layout: Layout, trainer_id: int) -> list[VarDesc]:
    """The variables of the blocks of parameters and gradients in a trainer's program."""
    vars = []
    for param in (p for p in layout.params if len(p.blocks) > 1):
        kind = "SELECTED_ROWS" if param.sparse else "LOD_TENSOR"
        for block, sent in zip(param.blocks, sent_names(layout, param, trainer_id), strict=True):
            vars.append(VarDesc(block.name, block.shape, param.dtype))
            vars.append(VarDesc(sent, block.shape, param.dtype, kind))
    return vars


def _with_sends(
    main: ProgramDesc, layout: Layout, trainer_id: int, make: Maker, tokens: Mapping[str, VarDesc]
) -> ProgramDesc:
    ops = main.blocks[0].ops
    last = {name: at for at, op in enumerate(ops) for name in walk.writes_with_subblocks(main, op)}
    after: dict[int, list[OpDesc]] = {}
    for name in layout.sends:
        param = layout.by_name[name]
        whole = role_var(layout, param, trainer_id)[1]
        if whole not in last:
            raise FluidValueError(
                f"no op makes the gradient {param.grad!r} of {param.name!r}, so it cannot be sent"
            )
        sending = _sending(layout, param, trainer_id, make, tokens[name].name)
        # the same order as inserting each right behind its op
        after[last[whole]] = [*sending, *after.get(last[whole], [])]
    return edit.replace_ops(
        main, 0, (o for at, op in enumerate(ops) for o in (op, *after.get(at, ())))
    )


def _sending(
    layout: Layout, param: PlannedParam, trainer_id: int, make: Maker, token: str
) -> list[OpDesc]:
    request, sent = layout.request, sent_names(layout, param, trainer_id)
    of = role_var(layout, param, trainer_id)
    rows = [b.shape[0] for b in param.blocks]
    endpoints = [b.endpoint for b in param.blocks]
    if request.runtime_split:
        apart = (
            f".trainer_{trainer_id}"
            if request.completely_not_async and request.trainers > 1
            else ""
        )
        names = [name + apart for name in sent]
        whole = make.op(
            "send",
            {"X": of[1]},
            {"Out": token},
            edit.RPC,
            epmap=endpoints,
            op_role_var=of,
            sections=rows,
            send_varnames=names,
        )
        return [whole]
    ops = []
    if len(sent) > 1 and param.sparse:
        ops.append(
            make.op(
                "split_selected_rows", {"X": of[1]}, {"Out": sent}, edit.DIST, height_sections=rows
            )
        )
    elif len(sent) > 1:
        ops.append(make.op("split_byref", {"X": of[1]}, {"Out": sent}, edit.DIST, sections=rows))
    ops.append(
        make.op("send", {"X": sent}, {"Out": token}, edit.RPC, epmap=endpoints, op_role_var=of)
    )
    return ops


def _tail(
    layout: Layout, trainer_id: int, make: Maker, tokens: Mapping[str, VarDesc], barrier: VarDesc
) -> tuple[list[OpDesc], dict[str, VarDesc]]:
    """Barriers, receives and concats, and the control variables for them."""
    request = layout.request
    where = {"endpoints": request.endpoints, "trainer_id": trainer_id}
    more = {"table": make.control()} if layout.table else {}
    ops: list[OpDesc] = []
    if layout.counters:
        more["counter"] = make.control()
        ops.append(_send_counter(layout, trainer_id, make, more["counter"].name))
    waits = [v.name for v in (*tokens.values(), *more.values())]
    if request.sync or (request.runtime_split and request.half_async):
        ops.append(
            make.op(
                "send_barrier",
                {"X": waits},
                {"Out": barrier.name},
                edit.RPC,
                **where,
                half_async=not request.sync,
            )
        )
    received = [p for p in layout.params if not p.remote]
    for param in received:
        token = barrier if request.sync else tokens[param.name]
        ops.append(_receive(layout, param, trainer_id, make, token.name))
    if request.sync:
        got = [b.name for p in received for b in p.blocks]
        ops.append(make.op("fetch_barrier", {"X": barrier.name}, {"Out": got}, edit.RPC, **where))
    if not request.runtime_split:
        ops += joined(received, make, edit.DIST)
    return ops, more


def _receive(
    layout: Layout, param: PlannedParam, trainer_id: int, make: Maker, token: str
) -> OpDesc:
    blocks = [b.name for b in param.blocks]
    split = layout.request.runtime_split
    return make.op(
        "recv", {"X": token}, {"Out": param.name if split else blocks}, edit.RPC,
        epmap=[b.endpoint for b in param.blocks], trainer_id=trainer_id,
        recv_varnames=blocks if split else [], op_role_var=role_var(layout, param, trainer_id),
    )  # fmt: skip


def joined(params: Iterable[PlannedParam], make: Maker, role: int) -> list[OpDesc]:
    """A concat for every parameter of several blocks."""
    return [
        make.op("concat", {"X": [b.name for b in p.blocks]}, {"Out": p.name}, role, axis=0)
        for p in params
        if len(p.blocks) > 1
    ]


def _send_counter(layout: Layout, trainer_id: int, make: Maker, token: str) -> OpDesc:
    name = layout.counters[trainer_id]
    return make.op(
        "send", {"X": name}, {"Out": token}, edit.RPC, epmap=layout.request.endpoints, op_role_var=[name, name],
        send_varnames=[name] if layout.request.runtime_split else [], merge_add=True, use_send_handler=False,
    )  # fmt: skip


def _with_table(
    main: ProgramDesc, layout: Layout, trainer_id: int, make: Maker, token: VarDesc | None
) -> ProgramDesc:
    """`main` with the distributed table's rows fetched, and its gradient sent by pserver."""
    table, request = layout.table, layout.request
    if table is None or token is None:
        return main
    main = prefetched(main, table, request.endpoints, trainer_id, make)
    parts = sent_parts(table, request.sync, trainer_id, len(request.endpoints))
    vars = [VarDesc(name, table.shape, table.dtype, "SELECTED_ROWS") for name in parts]
    sending = [
        make.op("split_ids", {"Ids": table.grad}, {"Out": parts}, edit.DIST),
        make.op(
            "send", {"X": parts}, {"Out": [token.name] if request.sync else []}, edit.RPC, epmap=request.endpoints,
            trainer_id=trainer_id, op_role_var=[table.name, table.grad],
        ),
    ]  # fmt: skip
    ops = main.blocks[0].ops
    updates = {op.uid for op in layout.updates}
    made = [i for i, op in enumerate(ops) if table.grad in op.writes and op.uid not in updates]
    if not made:
        raise FluidValueError(
            f"no op makes the gradient {table.grad!r} of the distributed table {table.name!r}, so"
            " it cannot be sent"
        )
    return edit.add_vars(
        edit.replace_ops(main, 0, [*ops[: made[-1] + 1], *sending, *ops[made[-1] + 1 :]]), 0, vars
    )


def without_updates(main: ProgramDesc, layout: Layout) -> ProgramDesc:
    """`main` without the ops of updates and of the learning rate, and without variables that only
    updates read.
    """
    gone = {op.uid for op in layout.updates}
    ops = [op for op in main.blocks[0].ops if op.uid not in gone and not scheduled(op)]
    block = replace(main.blocks[0], ops=tuple(ops))
    vars = FrozenMap({n: v for n, v in block.vars.items() if n not in layout.dropped})
    return edit.drop_dead_blocks(edit.replace_block(main, 0, replace(block, vars=vars)))
