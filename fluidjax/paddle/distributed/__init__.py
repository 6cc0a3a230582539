"""paddle.distributed in static mode: the members of the job, collective ops in programs, fleets."""

from __future__ import annotations

from typing import Any

from ..names import MissingName, sentence
from ..parallel import DataParallel as DataParallel
from . import fleet as fleet
from .collective import ReduceOp as ReduceOp
from .collective import all_gather as all_gather
from .collective import all_reduce as all_reduce
from .collective import barrier as barrier
from .collective import broadcast as broadcast
from .collective import reduce as reduce
from .collective import scatter as scatter
from .parallel import ParallelEnv as ParallelEnv
from .parallel import get_rank as get_rank
from .parallel import get_world_size as get_world_size
from .parallel import init_parallel_env as init_parallel_env
from .parallel import is_initialized as is_initialized
from .parallel import spawn as spawn


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise MissingName(sentence("paddle.distributed", name))


__all__ = [
    "DataParallel", "ParallelEnv", "ReduceOp", "all_gather", "all_reduce", "barrier", "broadcast", "fleet", "get_rank", "get_world_size",
    "init_parallel_env", "is_initialized", "reduce", "scatter", "spawn",
]  # fmt: skip
