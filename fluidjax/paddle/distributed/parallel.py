"""This process's role in its job, from the environment."""

from __future__ import annotations

import os
from typing import Any, NoReturn

from ...dist.jobs.env import read_env
from ...dist.jobs.process import current_job, init_from_env
from ...errors import FluidValueError, UnsupportedError


class ParallelEnv:
    """The process's role from Paddle's environment variables, read at creation: trainer 0 of 1
    without them.
    """

    def __init__(self) -> None:
        self._rank = _number("PADDLE_TRAINER_ID", 0)
        self._world_size = _number("PADDLE_TRAINERS_NUM", 1)
        self._device_id = _number("FLAGS_selected_gpus", 0)
        self._trainer_endpoints = [
            e for e in os.environ.get("PADDLE_TRAINER_ENDPOINTS", "").split(",") if e
        ]
        self._current_endpoint = os.environ.get("PADDLE_CURRENT_ENDPOINT", "")
        self._nrings = _number("FLAGS_nccl_nrings", 1)

    @property
    def rank(self) -> int:
        return self._rank

    @property
    def world_size(self) -> int:
        return self._world_size

    @property
    def device_id(self) -> int:
        return self._device_id

    @property
    def current_endpoint(self) -> str:
        return self._current_endpoint

    @property
    def trainer_endpoints(self) -> list[str]:
        return self._trainer_endpoints

    @property
    def nrings(self) -> int:
        return self._nrings

    local_rank = rank
    nranks = world_size
    dev_id = device_id


def _number(name: str, default: int) -> int:
    """An integer from the environment; the first of a list such as "0,1". Raises FluidValueError
    naming the variable.
    """
    text = os.environ.get(name, "").split(",")[0].strip()
    if not text:
        return default
    if not text.isdigit():
        raise FluidValueError(
            f"the environment variable {name} is a whole number from 0 on, not {text!r}"
        )
    return int(text)


def get_rank(group: Any = None) -> int:
    """This trainer's number, PADDLE_TRAINER_ID; 0 without a job. Raises UnsupportedError for a
    group.
    """
    all_of_the_job(group)
    return ParallelEnv().rank


def get_world_size(group: Any = None) -> int:
    """The number of trainers, PADDLE_TRAINERS_NUM; 1 without a job. Raises UnsupportedError for a
    group.
    """
    all_of_the_job(group)
    return ParallelEnv().world_size


def init_parallel_env() -> None:
    """Join the job that the environment describes, once; without a job do nothing. Raises the
    errors of dist.init_from_env.
    """
    if read_env() is not None and current_job() is None:
        init_from_env()


def is_initialized() -> bool:
    """Whether this process has joined a job."""
    return current_job() is not None


def all_of_the_job(group: Any) -> None:
    """Raises UnsupportedError for anything but None and 0."""
    if group is not None and group != 0:
        raise UnsupportedError(
            f"collective ops are over all trainers of the job (group=None), not over {group!r}"
        )


def spawn(
    func: Any,
    args: Any = (),
    nprocs: int = -1,
    join: bool = True,
    daemon: bool = False,
    **options: Any,
) -> NoReturn:
    """Not supported. Raises UnsupportedError: the launcher starts processes, with the script."""
    raise UnsupportedError(
        "paddle.distributed.spawn starts no processes here; start the script by `python -m"
        f" fluidjax launch --nproc N SCRIPT`, and call {getattr(func, '__name__', func)!s} in it"
    )


__all__ = [
    "ParallelEnv",
    "get_rank",
    "get_world_size",
    "init_parallel_env",
    "is_initialized",
    "spawn",
]
