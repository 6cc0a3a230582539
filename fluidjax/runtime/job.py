"""The job that this process belongs to, as far as a run needs to know it.

`dist.jobs.process` writes here when it joins a job. A process outside of a job has none, and its
runs import nothing of `dist`.
"""

from __future__ import annotations

from typing import Any, Protocol

from ..ir.desc import ProgramDesc

# ops that mark a transpiled program as part of a job of trainers
JOINS = frozenset({"gen_nccl_id", "c_gen_nccl_id"})


class Part(Protocol):
    """A process's part in a job: dist.jobs.process.Job."""

    def serves(self, program: ProgramDesc, loaded_from: tuple[str, str]) -> bool:
        """If this process is a pserver and `program` is one for it to serve: serve until the job
        ends, then return True. Otherwise return False.
        """

    def loaded(self) -> dict[int, tuple[str, str]]:
        """Pserver -> the folder, and the file in it, that its values were loaded from."""


_job: Part | None = None
_seed: int | None = None


def current_job() -> Part | None:
    """What dist.init_from_env() returned, or None if it has not been called."""
    return _job


def take_part(job: Part) -> None:
    """Set this process's job."""
    global _job
    _job = job


def may_describe_job(desc: ProgramDesc, pserver_plan: Any) -> bool:
    """Whether a program may describe the job that it is part of (dist.jobs.described reads
    that).
    """
    return pserver_plan is not None or any(op.type in JOINS for op in desc.blocks[0].ops)


def job_seed() -> int | None:
    """Trainer 0's seed for programs without one, once the trainers have run a program together."""
    return _seed


def agree_on(seed: int) -> None:
    """Take trainer 0's seed."""
    global _seed
    _seed = seed
