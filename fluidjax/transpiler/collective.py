"""Collective mode: inserts ops into the programs that average gradients, or parameters, over the
trainers.

grad_allreduce: the loss gradient is scaled by 1/n, and every gradient is summed over the ranks as
soon as it is computed. Gradients that GradientMergeOptimizer accumulates are summed in its block,
once for all runs that it merges. local_sgd: after its update a parameter's change is averaged over
the ranks. Rings are used in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import unique_name
from ..errors import FluidValueError, near
from ..graph.program import Program
from ..ir import edit
from ..ir.desc import OpDesc, ProgramDesc, VarDesc
from ..ops.kinds import is_lookup
from ..optimizers.merged import CONDITION, MERGED
from .config import COLLECTIVE_MODES, DistributeTranspilerConfig
from .making import Maker
from .request import checked_endpoints, current_of, rank_of

SNAPSHOT = "@SNAPSHOT"
SINGLE = "single_process_multi_thread"


@dataclass(frozen=True)
class Trainers:
    """The trainers, this trainer's number and endpoint, and the number of rings."""

    endpoints: tuple[str, ...]
    rank: int
    current: str
    rings: int

    @property
    def size(self) -> int:
        return len(self.endpoints)


def transpile_collective(
    config: DistributeTranspilerConfig,
    main: Program,
    startup: Program,
    trainer_id: Any,
    trainers: Any,
    current_endpoint: str,
) -> None:
    """Transpile in place. trainers: the endpoints, as a string or a list.

    Raises FluidValueError for an unknown collective_mode, trainers that are not endpoints or only
    one, a trainer_id out of range, a current endpoint that is not among them, and programs
    transpiled before.
    """
    mode = config.collective_mode
    endpoints = _endpoints(trainers, mode)
    if mode not in COLLECTIVE_MODES:
        there = ", ".join(COLLECTIVE_MODES)
        raise FluidValueError(
            f"invalid collective_mode: {mode}{near(str(mode), COLLECTIVE_MODES)}; it is one of"
            f" {there}"
        )
    if isinstance(trainer_id, int) and trainer_id < 0:
        raise FluidValueError(f"rank must >= 0: trainer_id is {trainer_id}")
    current = current_of(current_endpoint, endpoints)
    rank = rank_of(trainer_id, len(endpoints))
    _refuse(startup.desc, main.desc)
    ring = Trainers(endpoints, rank, current, 1 if mode == SINGLE else config.nccl_comm_num)
    begin, train = _MODES[mode]
    new_startup, new_main = begin(startup.desc, ring), train(main.desc, ring)
    startup.set_desc(new_startup)
    main.set_desc(new_main)


def _endpoints(trainers: Any, mode: Any) -> tuple[str, ...]:
    if not isinstance(trainers, str | list | tuple):
        raise FluidValueError(
            f"invalid trainers config: {trainers}; in collective mode it is 'ip:port,ip:port' or a"
            " list of endpoints"
        )
    endpoints = checked_endpoints(
        trainers.split(",") if isinstance(trainers, str) else trainers, "trainers"
    )
    if len(endpoints) <= 1 and mode != SINGLE:
        raise FluidValueError(
            f"invalid trainer number in distributed: {len(endpoints)}; collective mode needs"
            " several"
        )
    return endpoints


def _refuse(*programs: ProgramDesc) -> None:
    for desc in programs:
        found = next((op.type for op in desc.blocks[0].ops if op.type.startswith("c_")), None)
        if found is not None:
            raise FluidValueError(
                f"the program has the op '{found}': it is transpiled already; transpile one that is"
                " freshly built"
            )


def _distributed(desc: ProgramDesc) -> set[str]:
    """Tables that differ between ranks."""
    return {
        op.input("W")[0]
        for op in desc.blocks[0].ops
        if is_lookup(op.type) and op.attrs.get("is_distributed")
    }


def join(startup: ProgramDesc, ring: Trainers) -> ProgramDesc:
    """`startup` with ops that open the rings, and take the parameters of rank 0."""
    make = Maker(1 + edit.max_uid(startup))
    ops, ids = list(startup.blocks[0].ops), []
    others = [e for e in ring.endpoints if e != ring.current]
    for number in range(ring.rings):
        ids.append(VarDesc(unique_name.generate("nccl_id"), kind="RAW", persistable=True))
        name = ids[-1].name
        ops.append(
            make.op(
                "c_gen_nccl_id",
                {},
                {"Out": name},
                rank=ring.rank,
                endpoint=ring.current,
                other_endpoints=others,
            )
        )
        ops.append(
            make.op(
                "c_comm_init", {"X": name}, {}, nranks=ring.size, rank=ring.rank, ring_id=number
            )
        )
    params = _parameters(startup)
    for at, name in enumerate(params):
        ops.append(
            make.op("c_broadcast", {"X": name}, {"Out": name}, ring_id=at % ring.rings, root=0)
        )
    for number in range(ring.rings if params else 0):
        ops.append(
            make.op("c_sync_comm_stream", {"X": params[-1]}, {"Out": params[-1]}, ring_id=number)
        )
    return edit.add_vars(edit.replace_ops(startup, 0, ops), 0, ids)


def _parameters(startup: ProgramDesc) -> list[str]:
    away = _distributed(startup)
    return [n for n, v in startup.blocks[0].vars.items() if v.is_parameter and n not in away]


def join_and_remember(startup: ProgramDesc, ring: Trainers) -> ProgramDesc:
    """As join; local SGD also remembers the parameters."""
    joined = join(startup, ring)
    make = Maker(1 + edit.max_uid(joined))
    names = _parameters(startup)
    ops = [
        *joined.blocks[0].ops,
        *(make.op("assign", {"X": n}, {"Out": n + SNAPSHOT}) for n in names),
    ]
    return edit.add_vars(
        edit.replace_ops(joined, 0, ops), 0, (_snapshot(startup, n) for n in names)
    )


def _snapshot(desc: ProgramDesc, name: str) -> VarDesc:
    return replace(
        desc.blocks[0].vars[name],
        name=name + SNAPSHOT,
        is_parameter=False,
        persistable=True,
        stop_gradient=True,
    )


def join_devices(startup: ProgramDesc, ring: Trainers) -> ProgramDesc:
    """`startup` with ops that join the devices of this process."""
    op = Maker(1 + edit.max_uid(startup)).op("c_comm_init_all", {}, {}, ring_id=0)
    return edit.replace_ops(startup, 0, [*startup.blocks[0].ops, op])


def average_gradients(main: ProgramDesc, ring: Trainers) -> ProgramDesc:
    """`main` with gradients averaged over the ranks."""
    make = Maker(1 + edit.max_uid(main))
    away = _distributed(main)
    # from the last op to the first: so the rings alternate as in Fluid
    backwards: list[OpDesc] = []
    turn, last = 0, None
    for op in reversed(main.blocks[0].ops):
        grads = (
            [g for p, g in _pairs(op) if p not in away and not g.endswith(MERGED)]
            if edit.role(op) & edit.BACKWARD
            else []
        )
        for grad in grads:
            call = make.op(
                "c_allreduce_sum",
                {"X": grad},
                {"Out": grad},
                edit.BACKWARD,
                ring_id=turn % ring.rings,
            )
            backwards.append(call)
            turn, last = turn + 1, grad
        if grads:
            backwards.append(
                make.op("c_sync_calc_stream", {"X": grads[0]}, {"Out": grads[0]}, edit.BACKWARD)
            )
        if edit.role(op) & edit.BACKWARD and edit.role(op) & edit.LOSS:
            loss = next(op.writes)
            backwards.append(
                make.op("scale", {"X": loss}, {"Out": loss}, edit.BACKWARD, scale=1.0 / ring.size)
            )
        backwards.append(op)
    ops = backwards[::-1]
    if last is None:
        return _average_merged(edit.replace_ops(main, 0, ops), ring, make)
    syncs = [
        make.op("c_sync_comm_stream", {"X": last}, {"Out": last}, edit.BACKWARD, ring_id=i)
        for i in range(ring.rings)
    ]
    first = next((at for at, op in enumerate(ops) if edit.role(op) & edit.OPTIMIZE), len(ops))
    return edit.replace_ops(main, 0, [*ops[:first], *syncs, *ops[first:]])


def _average_merged(main: ProgramDesc, ring: Trainers, make: Maker) -> ProgramDesc:
    """`main` with merged gradients summed over the ranks before the update, after the division by
    their number.
    """
    grads = [g for op in main.blocks[0].ops for _, g in _pairs(op) if g.endswith(MERGED)]
    found = next(
        (
            op
            for op in main.blocks[0].ops
            if op.type == "conditional_block" and op.input("Cond") == (CONDITION,)
        ),
        None,
    )
    if not grads or found is None:
        return main
    (at,) = found.blocks
    ops = main.blocks[at].ops
    begin = 1 + max((i for i, op in enumerate(ops) if edit.role(op) & edit.BACKWARD), default=-1)
    calls = [
        make.op("c_allreduce_sum", {"X": g}, {"Out": g}, edit.BACKWARD, ring_id=i % ring.rings)
        for i, g in enumerate(dict.fromkeys(grads))
    ]
    return edit.replace_ops(main, at, [*ops[:begin], *calls, *ops[begin:]])


def _pairs(op: OpDesc) -> Iterable[tuple[str, str]]:
    named: Sequence[str] = op.attrs.get("op_role_var", ())
    return zip(named[::2], named[1::2], strict=False)


def average_parameters(main: ProgramDesc, ring: Trainers) -> ProgramDesc:
    """`main` with the parameters' changes averaged over the ranks after every update."""
    make = Maker(1 + edit.max_uid(main))
    away = _distributed(main)
    role, turn = edit.OPTIMIZE, 0
    backwards: list[OpDesc] = []
    updated: list[str] = []
    for op in reversed(main.blocks[0].ops):
        if {"Param", "Grad"} <= op.inputs.keys() and op.input("Param")[0] not in away:
            (name,) = op.input("Param")
            updated.append(name)
            backwards += [
                make.op(
                    "c_allreduce_sum", {"X": name}, {"Out": name}, role, ring_id=turn % ring.rings
                ),
                make.op("c_sync_calc_stream", {"X": name}, {"Out": name}, role),
                make.op("elementwise_sub", {"X": name + SNAPSHOT, "Y": name}, {"Out": name}, role),
            ]
            turn += 1
        backwards.append(op)
    ops = backwards[::-1]
    for number in range(ring.rings if updated else 0):
        ops.append(
            make.op(
                "c_sync_comm_stream", {"X": updated[-1]}, {"Out": updated[-1]}, role, ring_id=number
            )
        )
    for name in reversed(updated):
        ops += [
            make.op("scale", {"X": name}, {"Out": name}, role, scale=1.0 / ring.size),
            make.op("elementwise_sub", {"X": name + SNAPSHOT, "Y": name}, {"Out": name}, role),
            make.op("assign", {"X": name}, {"Out": name + SNAPSHOT}, role),
        ]
    return edit.add_vars(edit.replace_ops(main, 0, ops), 0, (_snapshot(main, n) for n in updated))


Rewrite = Callable[[ProgramDesc, Trainers], ProgramDesc]
_MODES: dict[str, tuple[Rewrite, Rewrite]] = {
    "grad_allreduce": (join, average_gradients),
    "local_sgd": (join_and_remember, average_parameters),
    SINGLE: (join_devices, average_gradients),
}
