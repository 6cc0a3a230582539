"""Programs that the processes of a job run together: their devices, and the checks before a step."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ...devices.place import Place
from ...devices.placement import Mesh, PerRank, per_rank
from ...devices.shard_layout import ShardedValue
from ...errors import EnforceNotMet, FluidValueError, JobError
from ...graph.program import Program
from ...ir import edit
from ...ir.desc import ProgramDesc
from ...ops.fixed import Fixed
from ...ops.ragged import Ragged
from ...ops.registry import traits
from ...runtime.job import JOINS, agree_on, job_seed
from ...state.buffers import in_force
from ...state.scope import Scope, ScopeVar
from ...state.storage import Held
from ..jobs import compare_programs, process
from .data_parallel import DataParallel
from .parallel import Parallel
from .places import devices_of
from .pserver import PserverJob, startup_on_mesh, trains
from .shard_optimizer import ShardOptimizer

if TYPE_CHECKING:
    from ...runtime.compiled import Compiled

# these name the running trainer
JOINING = JOINS | {"c_comm_init"}


def check_trainers(count: int, rank: int | None) -> None:
    """Raises FluidValueError unless this process is trainer `rank` (None: any) of a running job of
    `count` trainers.
    """
    running = jax.process_count()
    if running == 1:
        raise FluidValueError(
            f"the program is for {count} trainers, but this process runs by itself; start it by "
            f"python -m fluidjax launch --nproc {count} SCRIPT"
        )
    if count != running:
        raise FluidValueError(
            f"the program is for {count} trainers, but the job has {running}; num_trainers is the"
            " job's number"
        )
    if rank is not None and rank != jax.process_index():
        raise FluidValueError(
            f"trainer_id is {rank}, but this process is trainer {jax.process_index()} of the job;"
            " it is what PADDLE_TRAINER_ID says"
        )


def ranks_across(devices: Sequence[Any]) -> Mesh:
    """A rank for each of these devices and for those at the same positions in the other processes;
    process 0's come first.

    Raises FluidValueError if several ranks would share a device, and if another process has fewer
    devices.
    """
    if len(set(devices)) < len(devices):
        raise FluidValueError(
            f"{len(devices)} places share {len(set(devices))} {devices[0].platform} device(s), but"
            " in a job every place needs a device of its own; start it by python -m fluidjax"
            f" launch --devices-per-proc {len(devices)} (or set CPU_NUM first)"
        )
    platform = devices[0].platform
    mine = jax.local_devices(backend=platform)
    at = [mine.index(d) for d in devices]
    found: list[Any] = []
    for index in range(jax.process_count()):
        there = [d for d in jax.devices(platform) if d.process_index == index]
        if max(at) >= len(there):
            raise FluidValueError(
                f"trainer {index} has {len(there)} {platform} device(s), but {max(at) + 1} are"
                " needed on each trainer"
            )
        found += [there[i] for i in at]
    return Mesh(tuple(found), begins=_begins, compares=_compare, asks=_asks)


def places_across(places: Sequence[Place]) -> Mesh:
    """ranks_across for the devices of these places."""
    return ranks_across(devices_of(places))


def whole_job(program: Program, device: Any) -> Parallel | None:
    """The parallel run, on one device of each process, of a program with collective ops or a
    trainer's program; None for others.

    Raises EnforceNotMet for a ring of another number of ranks than the job has, and FluidValueError
    for a trainer's program of a job of another size.
    """
    if trains(program) and process.current_job() is not None:
        plan = program.info.pserver_plan
        if (plan.trainers, jax.process_count()) != (1, 1):
            check_trainers(plan.trainers, plan.trainer_id)
            _take_turns()
        return PserverJob(ranks_across([device]), plan)
    if program.info.pserver_plan is not None and jax.process_count() > 1:
        _take_turns()
        starting = startup_on_mesh(program, ranks_across([device]))
        if starting is not None:
            return starting
    ops = [op for block in program.desc.blocks for op in block.ops]
    if (
        program.info.shards_optimizer
        and jax.process_count() > 1
        and any(edit.role(op) & edit.BACKWARD for op in ops)
    ):
        where = ranks_across([device])
        return Parallel(where, [ShardOptimizer(where.count), DataParallel(where.count)])
    if jax.process_count() == 1 or not any(
        traits(op.type).ranks.together or op.type in JOINING - {"gen_nccl_id"} for op in ops
    ):
        return None
    where = ranks_across([device])
    for op in ops:
        if op.type == "c_comm_init" and op.attrs["nranks"] != where.count:
            raise EnforceNotMet(
                f"op 'c_comm_init' is for nranks = {op.attrs['nranks']}, but the job has"
                f" {where.count} trainers"
            )
    return Parallel(where)


# -- reading alone ---------------------------------------------------------------------------------

# of the step that ran last: where, and on which state
_last: tuple[Mesh, weakref.ref[Scope]] | None = None


def _take_turns() -> None:
    """Make the trainers answer one that reads sharded values, like pservers: only the first saves a
    model.
    """
    job = process.current_job()
    if job is not None:
        job.answers(_answer)


def turn() -> None:
    """Called before a step of all processes, if they take turns."""
    job = process.current_job()
    if job is not None:
        job.turn()


def _asks(where: Mesh, name: str, array: Any) -> Any:
    job = process.current_job()
    if job is None or not job.takes_turns or array.is_fully_addressable:
        return where.everywhere(array)
    return job.ask(name, lambda: where.everywhere(array))


def _answer(name: str) -> None:
    where, scope = (None, None) if _last is None else (_last[0], _last[1]())
    array = None if scope is None else _part(scope, name)
    if where is None or array is None:
        raise JobError(
            f"another trainer reads {name!r}, but this one has no part of it; trainers must use"
            " the same scope"
        )
    where.everywhere(array)


def _part(scope: Scope, name: str) -> Any:
    """The array of this name that holds parts of the state, or contains it; None if there is none."""
    found = (buffers.holder(name) for buffers in in_force(scope))
    var = scope.find_var(name)
    apart = None if var is None else var.storage.shards()
    return next(
        (array for array in found if array is not None),
        None if apart is None else apart.arrays.get(name),
    )


# -- before a step ---------------------------------------------------------------------------------


def before_step(
    compiled: Compiled, scope: Scope, feed: Any, signature: Any, random: str, seed: int
) -> None:
    """Count a step of all processes; before the first, and if the state or the feed's sizes are
    new, compare them.

    random: the program's random state in words. seed: this process's own. Raises JobError in every
    process, naming the first difference. The hub detects a process that continues without
    comparing, and ends the job with a message.
    """
    global _last
    where = compiled.where
    assert isinstance(where, Mesh)
    _last = where, weakref.ref(scope)
    if signature not in compiled.agreed or not compiled.in_force(scope):
        _compare(where, "\n".join(_lines(compiled, scope, feed, random)))
        compiled.agree(signature)
        _exchange(where, seed)
    _begins()


def _begins() -> None:
    job = process.current_job()
    if job is not None:
        job.step_begins()


def _compare(where: Mesh, text: str) -> None:
    job = process.met_job()
    if job is not None and job.watched:
        # a process that never arrives has died, ended or continued, which is detected
        job.check_same_program(text, math.inf)
        return
    number = int(compare_programs.fingerprint(text)[:15], 16)
    found = where.everywhere(where.put(per_rank(np.full((where.count,), number)), own=True))
    if len(set(found.tolist())) > 1:
        raise JobError(
            "the processes run different programs, or feed batches of different sizes; python -m"
            " fluidjax launch reports which"
        )


def _exchange(where: Mesh, seed: int) -> None:
    if job_seed() is None:
        (first,) = where.put_all([np.array(seed, np.int64)], [False])
        agree_on(int(np.asarray(first)))


def _lines(compiled: Compiled, scope: Scope, feed: Any, random: str) -> Iterator[str]:
    where = compiled.where
    assert isinstance(where, Mesh)
    yield f"ranks on the devices {', '.join(str(d.id) for d in where.devices)}"
    if not compiled.agreed:
        yield compare_programs.program_lines(_anonymous(compiled.step.desc))
        yield f"fetches {', '.join(compiled.fetches)}"
    for name, value in sorted(_named(feed), key=lambda pair: pair[0]):
        if isinstance(value, Fixed):
            yield (
                f"feed {name!r}, which decides sizes: {value.dtype}{list(value.shape)}"
                f" {value.array.tolist()}"
            )
            continue
        if isinstance(value, Ragged):
            yield f"feed {name!r} with a LoD: {value.dtype} {value.form}"
            continue
        shape = [value.shape[0] // (where.count // len(where.local)), *value.shape[1:]]
        yield f"feed {name!r}: {value.dtype}{shape}"
    yield f"random state: {random}" if compiled.step.random else "no random state"
    if not compiled.in_force(scope):
        for name in compiled.step.reads:
            var = scope.find_var(name)
            yield f"state {name!r}: {'missing' if var is None else _home(var)}"


def _named(feed: Any) -> list[tuple[str, Any]]:
    # Parallel.split refuses values that differ between the devices of a process
    assert isinstance(feed, Mapping)
    return list(feed.items())


def _home(var: ScopeVar) -> str:
    if not isinstance(var.storage, Held):
        return "in use"
    value = var.storage.value
    if isinstance(value, ShardedValue):
        return f"{value.dtype}{list(value.shape)} in parts"
    kind = (
        "on the devices"
        if isinstance(value, jax.Array) and len(value.devices()) > 1
        else "on the host"
    )
    return (
        f"{getattr(value, 'dtype', '')}{list(np.shape(value))}"
        f" {'of each rank' if isinstance(value, PerRank) else kind}"
    )


def _anonymous(desc: ProgramDesc) -> ProgramDesc:
    """The program without the ops that join trainers, which differ by design."""
    ops = desc.blocks[0].ops
    if not any(op.type in JOINING for op in ops):
        return desc
    return edit.replace_ops(desc, 0, [op for op in ops if op.type not in JOINING])


__all__ = [
    "before_step",
    "check_trainers",
    "places_across",
    "ranks_across",
    "whole_job",
]
