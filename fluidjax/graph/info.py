"""ProgramInfo: the facts about a program besides its ops and variables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..errors import FetchError
from ..ir.desc import FrozenMap, ProgramDesc


@dataclass(frozen=True)
class ProgramInfo:
    """A frozen value that copies of the program share. Program.update_info replaces it.

    grad_calls: how often the program was differentiated; names of higher gradients depend on it.
    loaded: the program came from a file, so generated names may collide with its names. readers:
    loaders that feed every run (DataLoader with iterable=False). schedules: schedulers that set
    learning rates before every run (paddle.optimizer.lr). reused: variable -> the name that it
    shares since memory_optimize. whole: the program after memory_optimize, and the program before
    it, in which the variables keep their values. memory_optimized: XLA orders the step for the
    least memory. within_budget: the number of bytes that memory_optimize fitted it into.
    pserver_plan: the dist.pserver_plan.PserverPlan of a job's program. shards_optimizer: the
    processes of a job train it together, each with a shard of the optimizer's state. loaded_from:
    the folder, and the file in it, from which a pserver's values were loaded. batch_sizes: the
    sizes that a predictor's batches are padded up to; () for learnt sizes, None for no padding.
    max_executables: the number of executables kept for a step; None means FLAGS_max_executables.
    trainers_endpoints and the fields behind it: nccl2 mode's description of the trainers, in their
    order.
    """

    grad_calls: int = 0
    loaded: bool = False
    readers: tuple[Any, ...] = ()
    schedules: tuple[Any, ...] = ()
    reused: FrozenMap = FrozenMap()
    whole: tuple[ProgramDesc, ProgramDesc] | None = None
    memory_optimized: bool = False
    within_budget: bool = False
    pserver_plan: Any = None
    shards_optimizer: bool = False
    loaded_from: tuple[str, str] = ("", "")
    batch_sizes: tuple[int, ...] | None = None
    max_executables: int | None = None
    trainers_endpoints: tuple[str, ...] = ()
    nccl_comm_num: int = 1
    use_hierarchical_allreduce: bool = False
    hierarchical_allreduce_inter_nranks: int = 0

    def refuse_lost(self, names: Iterable[str]) -> None:
        """Raises FetchError for a variable whose value is lost because its memory was reused."""
        for name in names if self.reused else ():
            if name in self.reused:
                now = self.reused[name]
                how = (
                    "other variables took its memory"
                    if now == name
                    else f"it was merged into {now!r}"
                )
                raise FetchError(
                    f"variable {name!r} does not keep its value: {how} in memory_optimize; name it"
                    " in skip_opt_set there"
                )
