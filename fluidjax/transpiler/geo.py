"""Geo-SGD: a trainer keeps its updates, and sends the changes of its parameters, which pservers add
up.

The programs only mark where this happens: the trainer's last op is a `send` of the ids that were
looked up in sparse tables.
"""

from __future__ import annotations

from dataclasses import replace

from ..dist.pserver_plan import Descs, ParamBlock, PlannedParam
from ..ir import edit
from ..ir.desc import BlockDesc, BlockRef, FrozenMap, OpDesc, ProgramDesc, VarDesc
from ..ops.kinds import is_lookup
from .layout import Layout
from .making import Maker, with_attrs
from .pserver import RPC_THREADS
from .startup import Part, initialise, take_values


def send_deltas(layout: Layout, trainer_id: int) -> Descs:
    """A trainer's programs."""
    main = edit.replace_ops(layout.main, 0, map(_local, layout.main.blocks[0].ops))
    make = Maker(layout.stride, main.blocks[0].vars)
    done = make.control()
    ids, tables = _asked(layout)
    ops = [
        *main.blocks[0].ops,
        make.op("send", {"X": ids}, {"Out": done.name}, send_varnames=tables),
    ]
    blocks = [
        v
        for p in layout.params
        if len(p.blocks) > 1
        for b in p.blocks
        for v in (_block(p, b), _delta(p, b.name, b.shape))
    ]
    vars = [*(_delta(p, p.name, p.shape) for p in layout.params), *blocks, done]
    return edit.add_vars(edit.replace_ops(main, 0, ops), 0, vars), _startup(layout, trainer_id)


def _startup(layout: Layout, trainer_id: int) -> ProgramDesc:
    startup = take_values(layout, trainer_id)
    make = Maker(1 + edit.max_uid(startup), startup.blocks[0].vars)
    done, flag = make.control(), VarDesc("param_init", (), "bool")
    send = make.op("send", {"X": flag.name}, {"Out": done.name}, send_varnames=[flag.name])
    vars = [*(_delta(p, p.name, p.shape) for p in layout.params), done, flag]
    return edit.add_vars(edit.replace_ops(startup, 0, [*startup.blocks[0].ops, send]), 0, vars)


def _local(op: OpDesc) -> OpDesc:
    """Make lookups read the trainer's own table."""
    return (
        with_attrs(op, remote_prefetch=False)
        if op.type == "lookup_table" and op.attrs.get("remote_prefetch")
        else op
    )


def _asked(layout: Layout) -> tuple[list[str], list[str]]:
    """The ids of lookups in sparse tables, and the tables."""
    sparse = {p.name for p in layout.params if p.sparse}
    lookups = (
        op for op in layout.main.blocks[0].ops if is_lookup(op.type) and op.input("W")[0] in sparse
    )
    pairs = dict.fromkeys((op.input("Ids")[0], op.input("W")[0]) for op in lookups)
    return [ids for ids, _ in pairs], [table for _, table in pairs]


def _block(param: PlannedParam, block: ParamBlock) -> VarDesc:
    return VarDesc(block.name, block.shape, param.dtype)


def _delta(param: PlannedParam, name: str, shape: tuple[int, ...]) -> VarDesc:
    return VarDesc(
        f"{name}.delta", shape, param.dtype, "SELECTED_ROWS" if param.sparse else "LOD_TENSOR"
    )


def serve_deltas(layout: Layout, endpoint: str) -> Descs:
    """A pserver's programs: every block adds a delta to its parameter."""
    request = layout.request
    make = Maker(layout.stride * (len(request.endpoints) + 1))
    owned = [(p, b) for p in layout.params for b in p.blocks if b.endpoint == endpoint]
    vars: dict[str, VarDesc] = {}
    parts: dict[str, tuple[Part, ...]] = {}
    blocks, sums, sparse = [], [], []
    for at, (param, block) in enumerate(owned, 1):
        mine, delta = (
            replace(_block(param, block), persistable=True),
            _delta(param, block.name, block.shape),
        )
        vars.update({mine.name: mine, delta.name: delta})
        cut = block.rows if len(param.blocks) > 1 else None
        parts[param.name] = (
            *parts.get(param.name, ()),
            Part(mine.name, block.shape, cut, block.index),
        )
        blocks.append(
            BlockDesc(
                ops=(make.op("sum", {"X": [mine.name, delta.name]}, {"Out": mine.name}),), parent=0
            )
        )
        sums.append(f"{delta.name}:{at}")
        sparse += [f"{delta.name}:{mine.name}"] if param.sparse else []
    listen = make.op(
        "listen_and_serv", {}, {}, endpoint=endpoint, Fanin=request.trainers, distributed_mode=request.distributed_mode,
        optimize_blocks=[BlockRef(at) for at in range(1, len(blocks) + 1)], grad_to_block_id=sums, sparse_grad_to_param=sparse,
        **RPC_THREADS,
    )  # fmt: skip
    main = ProgramDesc((BlockDesc(FrozenMap(vars), (listen,)), *blocks), layout.main.seed)
    return main, initialise(layout, main, parts, endpoint)
