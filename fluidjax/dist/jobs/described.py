"""The job described by a transpiled program, the only description in scripts that a shell starts.

Such scripts choose their role by their own variables or arguments, and only the arguments of the
transpiler name the pservers, the number of trainers, and this trainer's id.
"""

from __future__ import annotations

from ...errors import JobError
from ...graph.program import Program
from ...ir.desc import OpDesc
from ...runtime.job import JOINS
from ..pserver_plan import PserverPlan
from .env import PSERVER, TRAINER, JobEnv, endpoints, given_secret, met_at
from .process import current_job, take_part

_TALKS = frozenset({"send", "recv"})


def join_job_of(program: Program) -> None:
    """Join the job of this program before it runs, if it belongs to one and this process is in none
    yet.

    Raises the errors of dist.init_from_env.
    """
    if current_job() is None:
        env = described_job(program)
        if env is None:
            return
        try:
            take_part(env)
        except JobError as error:
            error.add_note(
                f"{env.name} needs the other processes of its job; fluid.dist.LocalJob runs a whole"
                " job in one process"
            )
            raise


def described_job(program: Program) -> JobEnv | None:
    """A program's description of its job and process; None for a program that runs alone.

    A pserver's startup program does not communicate, so it runs alone.
    """
    plan = program.info.pserver_plan
    for op in program.desc.blocks[0].ops:
        if op.type in JOINS:
            return _trainers(op)
        if plan is not None and op.type == "listen_and_serv":
            return _of_pservers(plan, PSERVER, plan.index(op.attrs["endpoint"]))
        if plan is not None and op.type in _TALKS:
            return _of_pservers(plan, TRAINER, plan.trainer_id)
    return None


def _of_pservers(plan: PserverPlan, role: str, rank: int) -> JobEnv:
    """The processes meet at pserver 0, the one address that every process knows."""
    pservers = endpoints(",".join(plan.endpoints), "pservers")
    current = pservers[rank] if role == PSERVER else None
    return JobEnv(
        role,
        rank,
        plan.trainers,
        pservers=pservers,
        current=current,
        hub=pservers[0],
        secret=given_secret(),
    )


def _trainers(op: OpDesc) -> JobEnv:
    """The processes meet at trainer 0, whose endpoint is the first."""
    if op.type == "gen_nccl_id":
        rank, listed = op.attrs["trainer_id"], list(op.attrs["trainers"])
    else:
        rank, listed = op.attrs["rank"], list(op.attrs["other_endpoints"])
        listed.insert(rank, op.attrs["endpoint"])
    trainers = endpoints(",".join(listed), "trainers")
    hub = met_at(trainers) if len(trainers) > 1 else None
    return JobEnv(
        TRAINER,
        rank,
        len(trainers),
        trainers,
        current=trainers[rank],
        hub=hub,
        secret=given_secret(),
    )


__all__ = ["described_job", "join_job_of"]
