"""The variables that the processes of a parameter-server job save and load.

The files are Fluid's: each trainer writes the variables that its program keeps, the first trainer
also those that pservers keep, and a pserver reads those that it owns. Here the trainers hold the
pservers' variables, so a pserver that has read a folder announces the folder, and the trainers read
it when they start.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..dist.jobs.process import current_job
from ..dist.pserver_plan import PserverPlan
from ..dist.spmd.updates import on_pservers
from ..errors import FluidError, JobError
from ..graph.program import Program
from ..ir.desc import VarDesc
from ..state.scope import Scope
from .arrays import read_arrays
from .values import STORED_KINDS, store

_SHARED = frozenset(
    {"Param", "Grad", "LearningRate", "Beta1Tensor", "Beta2Tensor"}
)  # slots of an update op; its other variables are state


def is_trainers(program: Program) -> bool:
    """Whether it is a trainer's program in a running job."""
    return (
        program.info.pserver_plan is not None
        and current_job() is not None
        and not is_pservers(program)
    )


def is_pservers(program: Program) -> bool:
    """Whether it is a pserver's main program."""
    return program.info.pserver_plan is not None and any(
        op.type == "listen_and_serv" for op in program.desc.blocks[0].ops
    )


def on_servers(plan: PserverPlan) -> dict[str, VarDesc]:
    """The variables that only pservers have: the state of every update, and the tables that no
    trainer holds.
    """
    vars, names = plan.main.blocks[0].vars, dict[str, None]()
    for op in plan.main.blocks[0].ops:
        if on_pservers(op) and op.input("Param"):
            names.update(
                (n, None) for slot, found in op.inputs.items() if slot not in _SHARED for n in found
            )
    names.update((p.name, None) for p in plan.params if p.remote)
    names.update((t.name, None) for t in plan.tables)
    return {n: vars[n] for n in names if n in vars and vars[n].persistable}


def on_trainers(program: Program) -> dict[str, VarDesc]:
    """The variables that a trainer's program keeps itself: parameters, statistics, counters."""
    plan = program.info.pserver_plan
    away, there = on_servers(plan), plan.main.blocks[0].vars
    kept = program.desc.blocks[0].vars.values()
    return {
        v.name: there[v.name]
        for v in kept
        if v.persistable and v.kind in STORED_KINDS and v.name in there and v.name not in away
    }


def to_save(program: Program) -> dict[str, VarDesc]:
    """The variables that this trainer writes. Only the first trainer writes the pservers'
    variables.
    """
    plan = program.info.pserver_plan
    return on_trainers(program) | (on_servers(plan) if plan.trainer_id == 0 else {})


def to_load(program: Program) -> dict[str, VarDesc]:
    """The variables that each trainer reads, because each holds its part of all."""
    return on_trainers(program) | on_servers(program.info.pserver_plan)


# -- a pserver -------------------------------------------------------------------------------------


def load_on_pserver(program: Program, dirname: str, filename: str | None) -> None:
    """Read the variables that a pserver owns, check them, and record for the trainers where they
    came from.
    """
    plan = program.info.pserver_plan
    (endpoint,) = (
        op.attrs["endpoint"] for op in program.desc.blocks[0].ops if op.type == "listen_and_serv"
    )
    here = {p.name for p in plan.params for b in p.blocks if b.endpoint == endpoint} | {
        t.name for t in plan.tables
    }
    of = _owners(plan)
    wanted = {n: v for n, v in _all(plan).items() if of.get(n) in here}
    found = read_arrays(wanted if filename is None else _all(plan), dirname, filename)
    # only checked, not stored: the trainers store them
    store(wanted, {n: a for n, a in found.items() if n in wanted}, repr(dirname), scope=Scope())
    program.update_info(loaded_from=(str(Path(dirname).absolute()), filename or ""))


def _all(plan: PserverPlan) -> dict[str, VarDesc]:
    """All variables that a job keeps in any process."""
    program = Program.from_desc(plan.trainer(0)[0])
    program.update_info(pserver_plan=plan)
    return to_load(program)


def _owners(plan: PserverPlan) -> dict[str, str]:
    """Parameters and the state of their updates -> the parameter."""
    found = {p.name: p.name for p in plan.params} | {t.name: t.name for t in plan.tables}
    state = on_servers(plan)
    for op in plan.main.blocks[0].ops:
        if on_pservers(op) and op.input("Param"):
            found.update((n, op.input("Param")[0]) for n in op.reads if n in state)
    return found


# -- a trainer -------------------------------------------------------------------------------------


def take_loaded(plan: PserverPlan, loaded: Mapping[int, tuple[str, str]], scope: Scope) -> None:
    """Store in the scope the values that the pservers have read: the rows that each owns. Variables
    that trainers keep come from the first pserver.

    loaded: by pserver, the folder, and the file in it ("": one for each variable). Raises JobError
    if this trainer cannot read a folder that a pserver has read.
    """
    wanted, rows_of = _all(plan), _rows(plan)
    sources = {where: _read(wanted, k, *where) for k, where in loaded.items()}
    arrays: dict[str, np.ndarray] = {}
    for k, where in sorted(loaded.items()):
        for name, array in sources[where].items():
            cut = [
                rows for endpoint, rows in rows_of.get(name, ()) if endpoint == plan.endpoints[k]
            ]
            if name not in rows_of:
                arrays.setdefault(name, array)
            elif cut and name not in arrays:
                arrays[name] = np.array(scope.get(name))
            for rows in cut:
                arrays[name][rows] = array[rows]
    store({n: wanted[n] for n in arrays}, arrays, "what the pservers loaded", scope=scope)


def _rows(plan: PserverPlan) -> dict[str, list[tuple[str, slice]]]:
    """For variables cut into blocks, the rows that each pserver has."""
    vars, params = plan.main.blocks[0].vars, {p.name: p for p in plan.params}
    of = {n: params[owner] for n, owner in _owners(plan).items() if owner in params}
    return {
        n: [(b.endpoint, b.rows) for b in p.blocks]
        for n, p in of.items()
        if vars[n].shape == p.shape
    }


def _read(
    wanted: Mapping[str, VarDesc], k: int, folder: str, filename: str
) -> dict[str, np.ndarray]:
    try:
        return read_arrays(wanted, folder, filename or None)
    except (FluidError, OSError) as error:
        raise JobError(
            f"pserver {k} has loaded {folder!r}, which this trainer cannot read ({error}); trainers"
            " hold what pservers own, so the folder has to be there for them too"
        ) from None


__all__ = [
    "is_pservers",
    "is_trainers",
    "load_on_pserver",
    "on_servers",
    "on_trainers",
    "take_loaded",
    "to_load",
    "to_save",
]
