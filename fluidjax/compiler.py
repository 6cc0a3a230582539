"""CompiledProgram and ParallelExecutor: a program on one device, or data parallel on several
devices.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .base.loc import warn
from .base.strategy import BuildStrategy, ExecutionStrategy, checked
from .devices.place import (
    Place,
    as_place,
    cpu_devices,
    cpu_places,
    cuda_places,
    is_compiled_with_cuda,
)
from .errors import ArgumentError, FluidTypeError, FluidValueError
from .executor import Executor
from .graph.core_graph import Graph
from .graph.program import Program, as_program
from .ir import edit, show
from .runtime.runnable import Runnable
from .state.scope import Scope

if TYPE_CHECKING:
    from .dist.spmd.parallel import Parallel
    from .memory.budget import BudgetReport
    from .memory.fitting import Fitting
    from .passes.base import Pass


class CompiledProgram:
    """A program with options for its compilation; Executor.run takes it in place of the program.

    program_or_graph: a Program, or a core.Graph of one as it stands now. build_strategy: a
    BuildStrategy. Raises FluidTypeError for anything else.
    """

    def __init__(
        self, program_or_graph: Program | Graph, build_strategy: BuildStrategy | None = None
    ) -> None:
        if isinstance(program_or_graph, Graph):
            program_or_graph = Program.from_desc(program_or_graph.to_desc())
        if not isinstance(program_or_graph, Program):
            raise FluidTypeError(
                f"CompiledProgram takes a Program, not {type(program_or_graph).__name__}"
            )
        self._program = program_or_graph
        self._build_strategy = checked("build_strategy", build_strategy, BuildStrategy)
        self._exec_strategy: ExecutionStrategy | None = None
        self._places: list[Place] | None = None
        self._given_places: Any = None
        self._loss_name: str | None = None
        self._shared: CompiledProgram | None = None
        self._made: Parallel | None = None
        self._ran = False
        self._fitting: Fitting | None = None

    @property
    def program(self) -> Program:
        """The program that was given."""
        return self._program

    def with_data_parallel(
        self,
        loss_name: str | None = None,
        build_strategy: BuildStrategy | None = None,
        exec_strategy: ExecutionStrategy | None = None,
        share_vars_from: CompiledProgram | None = None,
        places: Sequence[Place] | Place | None = None,
    ) -> CompiledProgram:
        """Run the program on several devices at once, each on its part of the batch; returns the
        CompiledProgram itself.

        Gradients are summed over the devices and parameters stay the same on all. Each device's
        loss gradient is 1 / devices, so with equal parts and a mean loss this is one step on the
        whole batch. Fetches are concatenated over the devices on dimension 0. batch_norm takes its
        statistics from each device's own part, and each device keeps its own moving averages; the
        scope shows the first device's (with BuildStrategy.sync_batch_norm all are equal).

        A feed is a dict, whose arrays are split on dimension 0 (see
        fluidjax.dist.spmd.parallel.sizes for unequal parts), or a list with a dict for each device.

        places: default CPU_NUM CPUs (1, with a warning if JAX has more devices), or the GPUs of
        FLAGS_selected_gpus (all); looked up at the first run. If there are fewer devices than
        places, the places take turns, with a warning. loss_name: the name of the loss, required if
        the program has a backward part. share_vars_from: a data parallel CompiledProgram that has
        been run and whose variables this one uses; in the same scope they are always shared.

        Raises FluidTypeError or FluidValueError for an argument that does not fit, and if called
        twice.
        """
        if self._places is not None or self._given_places is not None:
            raise ArgumentError(
                "Already compiled with parallel, cannot be recompiled; make another CompiledProgram"
            )
        if loss_name is not None and not isinstance(loss_name, str):
            raise FluidTypeError(
                f"loss_name is the name of the loss, a string, not {type(loss_name).__name__}"
            )
        if loss_name is None and self._trains():
            raise ArgumentError(
                "The loss name of CompiledProgram is None; it should be set (loss_name=loss.name)"
                " for a program with a backward part"
            )
        if share_vars_from is not None and not isinstance(share_vars_from, CompiledProgram):
            raise FluidTypeError(
                f"share_vars_from is a CompiledProgram, not {type(share_vars_from).__name__}"
            )
        if share_vars_from is not None and share_vars_from._given_places is None:
            raise FluidValueError(
                "The shared Program is not data parallel, cannot share variables from it; call"
                " with_data_parallel on it first"
            )
        self._build_strategy = (
            checked("build_strategy", build_strategy, BuildStrategy) or self._build_strategy
        )
        self._exec_strategy = checked("exec_strategy", exec_strategy, ExecutionStrategy)
        self._loss_name, self._shared = loss_name, share_vars_from
        self._given_places = _DEFAULT if places is None else _listed(places)
        return self

    def _trains(self) -> bool:
        return any(edit.role(op.desc) & edit.BACKWARD for op in self._program.global_block().ops)

    def runnable(self) -> Runnable:
        """The program and its ranks. Executor.run calls this, so it counts as the first run."""
        strategy = self._exec_strategy
        times = 1 if strategy is None else max(strategy.num_iteration_per_run, 1)
        return Runnable(self._program, self._ranks(), times, self._fits())

    @property
    def budget_reports(self) -> tuple[BudgetReport, ...]:
        """With BuildStrategy.memory_budget: the reports of the searches for the first feed and for
        each larger one.
        """
        return () if self._fitting is None else tuple(self._fitting.reports)

    def _fits(self) -> Fitting | None:
        """Keeps the program within BuildStrategy.memory_budget; None if it is not set."""
        budget = None if self._build_strategy is None else self._build_strategy.memory_budget
        if budget is None:
            return None
        from .memory.fitting import Fitting

        if self._fitting is None or self._fitting.budget != budget:
            self._fitting = Fitting(budget)
        return self._fitting

    def _ranks(self) -> Parallel | None:
        """The ranks of the program; None for one device."""
        if self._given_places is None:
            return None
        if self._shared is not None and not self._shared._ran:
            raise FluidValueError(
                "The shared Program is not compiled and executed, so there is no variables to"
                " share; run it before this one"
            )
        self._ran = True
        if self._places is None:
            self._places = (
                _default_places() if self._given_places is _DEFAULT else self._given_places
            )
            trainers = self._trainers()
            if len(self._places) > 1 or trainers > 1:
                self._made = self._several(trainers)
        return self._made

    def _trainers(self) -> int:
        """The number of trainers that the program is for. Raises FluidValueError unless this
        process is one of such a job.
        """
        strategy = self._build_strategy or BuildStrategy()
        listed, asked = len(self._program.info.trainers_endpoints), max(strategy.num_trainers, 1)
        if listed > 1 and asked > 1 and listed != asked:
            raise FluidValueError(
                f"num_trainers is {asked}, but the program was transpiled for {listed} trainers"
            )
        if max(listed, asked) > 1:
            from .dist.spmd.multiprocess import check_trainers

            check_trainers(max(listed, asked), strategy.trainer_id if asked > 1 else None)
        return max(listed, asked)

    def _several(self, trainers: int) -> Parallel:
        from .dist.spmd.data_parallel import DataParallel
        from .dist.spmd.multiprocess import places_across
        from .dist.spmd.parallel import Parallel
        from .dist.spmd.places import ranks_on
        from .dist.spmd.shard_optimizer import ShardOptimizer

        assert self._places is not None
        strategy = self._build_strategy or BuildStrategy()
        where = places_across(self._places) if trainers > 1 else ranks_on(self._places)
        rewrites: list[Pass] = []
        if self._loss_name is not None:
            count = where.count
            if strategy.reduce_strategy == BuildStrategy.ReduceStrategy.Reduce:
                rewrites.append(ShardOptimizer(count))
            scale = strategy.gradient_scale_strategy.name
            rewrites.append(
                DataParallel(count, scale, strategy.fuse_all_reduce_ops, strategy.sync_batch_norm)
            )
        made = Parallel(where, rewrites, bool(strategy.memory_optimize))
        if strategy.debug_graphviz_path:
            Path(strategy.debug_graphviz_path).write_text(show.to_dot(made.desc(self._program)))
        return made


_DEFAULT: list[Place] = []  # stands for the places that the environment gives at the first run


def _listed(places: Any) -> list[Place]:
    many = [as_place(p) for p in (places if isinstance(places, list | tuple) else [places])]
    if not many:
        raise FluidValueError("No places for execution; give at least one, or leave places out")
    return many


def _default_places() -> list[Place]:
    if is_compiled_with_cuda():
        return list(cuda_places())
    if "CPU_NUM" not in os.environ:
        os.environ["CPU_NUM"] = "1"
        there = len(cpu_devices())
        if there > 1:
            warn(
                f"with_data_parallel runs on one CPU device, though JAX has {there}: CPU_NUM is not"
                f" set; set CPU_NUM={there}, or give places=fluid.cpu_places({there})",
                RuntimeWarning,
            )
    return list(cpu_places())


class ParallelExecutor:
    """Runs one program data parallel, as CompiledProgram.with_data_parallel does.

    use_cuda: on the GPUs of FLAGS_selected_gpus (default all), else on CPU_NUM CPUs (default 1).
    loss_name, share_vars_from, exec_strategy, build_strategy: as for
    CompiledProgram.with_data_parallel, except that share_vars_from is a ParallelExecutor.
    main_program: default the main program. scope: default global_scope().

    num_trainers, trainer_id: in a job of several processes (python -m fluidjax launch), the number
    of processes and the number of this one. Then the ranks are the devices of all trainers; feeds
    and fetches are this trainer's.

    Raises FluidValueError for use_cuda without a GPU and for trainers that are not those of the
    running job, and the errors of with_data_parallel.
    """

    def __init__(
        self,
        use_cuda: bool,
        loss_name: str | None = None,
        main_program: Program | None = None,
        share_vars_from: ParallelExecutor | None = None,
        exec_strategy: ExecutionStrategy | None = None,
        build_strategy: BuildStrategy | None = None,
        num_trainers: int = 1,
        trainer_id: int = 0,
        scope: Scope | None = None,
    ) -> None:
        if use_cuda and not is_compiled_with_cuda():
            raise FluidValueError(
                "ParallelExecutor(use_cuda=True): JAX sees no GPU (not compiled with CUDA); use"
                " use_cuda=False"
            )
        if share_vars_from is not None and not isinstance(share_vars_from, ParallelExecutor):
            raise ArgumentError(
                "The share_vars_from should be ParallelExecutor, not"
                f" {type(share_vars_from).__name__}"
            )
        if num_trainers < 1 or not 0 <= trainer_id < num_trainers:
            raise FluidValueError(
                f"trainer_id is 0 to num_trainers - 1, not {trainer_id} of {num_trainers}"
            )
        if num_trainers > 1:
            from .dist.spmd.multiprocess import check_trainers

            check_trainers(num_trainers, trainer_id)
            build_strategy = copy.copy(build_strategy) or BuildStrategy()
            build_strategy.num_trainers, build_strategy.trainer_id = num_trainers, trainer_id
        places: list[Place] = list(cuda_places()) if use_cuda else list(cpu_places())
        shared = None if share_vars_from is None else share_vars_from._compiled
        self._compiled: CompiledProgram = CompiledProgram(
            as_program(main_program)
        ).with_data_parallel(loss_name, build_strategy, exec_strategy, shared, places)
        self._scope: Scope | None = (
            scope if scope is not None or share_vars_from is None else share_vars_from._scope
        )
        self._places = places
        self._executor = Executor(places[0])

    @property
    def device_count(self) -> int:
        """The number of devices that the program runs on."""
        return len(self._places)

    def run(
        self, fetch_list: Any, feed: Any = None, feed_dict: Any = None, return_numpy: bool = True
    ) -> list[Any]:
        """Run the program once and return the values of `fetch_list`; arguments and errors are
        those of Executor.run.

        feed: a dict of arrays, or a list with such a dict for each device. feed_dict: ignored, as
        in 1.8.5.
        """
        return self._executor.run(
            self._compiled,
            feed=feed,
            fetch_list=fetch_list,
            scope=self._scope,
            return_numpy=return_numpy,
        )

    def drop_local_exe_scopes(self) -> None:
        """Does nothing: a compiled step keeps no temporary variables, so there is nothing to
        free.
        """


__all__ = ["BuildStrategy", "CompiledProgram", "ExecutionStrategy", "ParallelExecutor"]
