"""The job that this process belongs to, as a run sees it.

`dist.jobs.process` writes here when it joins a job. A process outside of a job has none, and its
runs import nothing of `dist`.
"""

from __future__ import annotations

from typing import Any, Protocol

from ..ir.desc import ProgramDesc

# ops by which a transpiled program says that it belongs to a job of trainers
JOINS = frozenset({"gen_nccl_id", "c_gen_nccl_id"})


class Part(Protocol):
    """A process's part in a job: dist.jobs.process.Job."""

    def serves(self, program: ProgramDesc, loaded_from: tuple[str, str]) -> bool:
        """Whether this process is a pserver and `program` was for it to serve: the job has
        ended.
        """

    def loaded(self) -> dict[int, tuple[str, str]]:
        """Pserver -> the folder, and the file in it, from which it has its values."""


_job: Part | None = None
_seed: int | None = None


def current_job() -> Part | None:
    """What dist.init_from_env() returned, or None if it has not been called."""
    return _job


def take_part(job: Part) -> None:
    """Make it this process's job."""
    global _job
    _job = job


def may_describe_job(desc: ProgramDesc, pserver_plan: Any) -> bool:
    """Whether a program may say of which job it is a part (dist.jobs.described reads that)."""
    return pserver_plan is not None or any(op.type in JOINS for op in desc.blocks[0].ops)


def job_seed() -> int | None:
    """Trainer 0's seed for programs without one, once the trainers have run a program together."""
    return _seed


def agree_on(seed: int) -> None:
    """Take trainer 0's seed."""
    global _seed
    _seed = seed
