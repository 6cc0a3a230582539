"""fluid.incubate.fleet.collective: data-parallel jobs of only workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ....base.absent import reporter
from ....compiler import BuildStrategy, CompiledProgram, ExecutionStrategy
from ....contrib.mixed_precision import decorate
from ....contrib.mixed_precision.decorator import OptimizerWithMixedPrecision
from ....dist.jobs.env import read_env
from ....dist.jobs.process import current_job, init_from_env
from ....errors import FluidTypeError, FluidValueError, UnsupportedError
from ....executor import Executor
from ....graph.program import Program, default_startup_program
from ....graph.variable import Variable
from ....optimizers.wrapped import RecomputeOptimizer
from ....saved.model import save_inference_model
from ....saved.vars import save_persistables
from ....transpiler import DistributeTranspiler, DistributeTranspilerConfig
from ..base.fleet_base import Fleet
from ..base.role_maker import RoleMakerBase
from . import check_points
from .check_points import TrainStatus


def _any(value: Any) -> Any:
    return value


class DistributedStrategy(BuildStrategy):
    """The settings of a collective job: a BuildStrategy with 1.8.5's further options.

    mode: "nccl2" (gradients are averaged by the step) or "collective" with collective_mode
    "grad_allreduce" or "local_sgd" (by ops). use_local_sgd: the latter. use_amp, amp_loss_scaling:
    mixed precision. forward_recompute, recompute_checkpoints: RecomputeOptimizer. use_dist_fc:
    refused by minimize.
    """

    _table: ClassVar[Mapping[str, Any]] = {
        **BuildStrategy._table, "mode": ("nccl2", str), "collective_mode": (None, _any), "nccl_comm_num": (1, int),
        "recompute_checkpoints": ([], _any), "amp_loss_scaling": (2**15, float), "exec_strategy": (None, _any),
        "dist_fc_config": (None, _any),
        **dict.fromkeys(("use_local_sgd", "use_dist_fc", "forward_recompute", "use_amp"), (False, bool)),
    }  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.exec_strategy = ExecutionStrategy()


class Collective(Fleet):
    """The fleet: role, programs and their saving. After minimize, an executor runs main_program."""

    def __init__(self) -> None:
        super().__init__()
        self.startup_program: Program | None = None
        self.main_program: Any = None
        self._origin_program: Program | None = None

    def init(self, role_maker: RoleMakerBase | None = None) -> None:
        """Set the role, and join the job that the environment describes. Raises the errors of
        Fleet.init and dist.init_from_env.
        """
        super().init(role_maker)
        env = read_env()
        if self.worker_num() > 1 and env is not None and current_job() is None:
            init_from_env()

    def distributed_optimizer(
        self, optimizer: Any, strategy: DistributedStrategy | None = None
    ) -> CollectiveOptimizer:
        """An optimizer whose minimize makes the job's program."""
        return CollectiveOptimizer(optimizer, strategy, self)

    def minimized(self, origin: Program, startup: Program, runs: Any) -> None:
        """Store the programs that a minimize has made."""
        self._origin_program, self.startup_program, self.main_program = origin, startup, runs

    def save_inference_model(
        self, executor: Executor, dirname: str, feeded_var_names: Sequence[str] | None = None, target_vars: Any = None,
        main_program: Program | None = None, export_for_deployment: bool = True,
    ) -> None:  # fmt: skip
        """io.save_inference_model of the program that was minimized."""
        program = self._program(main_program)
        save_inference_model(
            dirname,
            feeded_var_names or [],
            target_vars,
            executor,
            program,
            export_for_deployment=export_for_deployment,
        )

    def save_persistables(
        self,
        executor: Executor,
        dirname: str,
        main_program: Program | None = None,
        filename: str | None = None,
    ) -> None:
        """io.save_persistables of the program that was minimized."""
        save_persistables(executor, dirname, self._program(main_program), filename)

    def save_check_point(
        self, executor: Executor, path: str, train_status: TrainStatus, main_program: Program | None = None, fs: Any = None,
        local_cache_path: str = ".cache", remain_all_checkpoint: bool = True,
    ) -> None:  # fmt: skip
        """Save persistables and the epoch under `path`, in the next
        ``__paddle_fleet_checkpoint__.N``; see check_points.save.
        """
        check_points.save(
            self,
            executor,
            path,
            train_status,
            main_program,
            fs,
            local_cache_path,
            remain_all_checkpoint,
        )

    def load_check_point(
        self, executor: Executor, path: str, trainer_id: int, main_program: Program | None = None, fs: Any = None,
        local_cache_path: str = ".cache", ignore_empty: bool = True,
    ) -> TrainStatus | None:  # fmt: skip
        """Load the last check point under `path`, and return its TrainStatus; see
        check_points.load.
        """
        return check_points.load(
            self, executor, path, trainer_id, main_program, fs, local_cache_path, ignore_empty
        )

    def clean_redundant_check_points(
        self, root_path: str, fs: Any = None, checkpoint_num: int = 1
    ) -> None:
        """Remove all check points under `root_path` except the last `checkpoint_num`, at least
        one.
        """
        check_points.clean(root_path, fs, checkpoint_num)

    def _program(self, given: Program | None) -> Program:
        program = self._origin_program if given is None else given
        if not isinstance(program, Program):
            what = (
                "nothing was minimized yet"
                if program is None
                else f"main_program is a Program, not {type(program).__name__}"
            )
            raise FluidTypeError(f"fleet cannot save: {what}")
        return program


class CollectiveOptimizer:
    """minimize, backward and apply_gradients of an optimizer, for all workers of a job."""

    def __init__(
        self,
        optimizer: Any,
        strategy: DistributedStrategy | None = None,
        of: Collective | None = None,
    ) -> None:
        self._optimizer = optimizer
        self._strategy = DistributedStrategy() if strategy is None else strategy
        self._fleet = fleet if of is None else of
        if not isinstance(self._strategy, DistributedStrategy):
            raise FluidTypeError(
                f"a collective job takes a DistributedStrategy, not {type(strategy).__name__}"
            )
        if not isinstance(self._strategy.recompute_checkpoints, list):
            raise FluidValueError("DistributedStrategy.recompute_checkpoints is a list")

    def backward(
        self, loss: Variable, startup_program: Program | None = None, parameter_list: Sequence[Any] | None = None,
        no_grad_set: Iterable[Any] | None = None, callbacks: Sequence[Callable[..., Any]] | None = None,
    ) -> Any:  # fmt: skip
        """The optimizer's own backward."""
        return self._optimizer.backward(
            loss, startup_program, parameter_list, no_grad_set, callbacks
        )

    def apply_gradients(self, params_grads: Any) -> Any:
        """The optimizer's own apply_gradients."""
        return self._optimizer.apply_gradients(params_grads)

    def minimize(
        self, loss: Variable, startup_program: Program | None = None, parameter_list: Sequence[Any] | None = None,
        no_grad_set: Iterable[Any] | None = None,
    ) -> Any:  # fmt: skip
        """The optimizer's minimize. Then the programs are rewritten for the job, and
        fleet.main_program is the one to run.

        Raises UnsupportedError for use_dist_fc, FluidValueError for modes that exclude each other
        and for recomputation without checkpoints.
        """
        strategy, startup = self._strategy, startup_program or default_startup_program()
        self._check()
        if strategy.forward_recompute:
            self._optimizer = RecomputeOptimizer(self._optimizer)
            self._optimizer._set_checkpoints(strategy.recompute_checkpoints)
        if strategy.use_amp:
            if isinstance(self._optimizer, OptimizerWithMixedPrecision):
                raise FluidValueError(
                    "the optimizer is one of mixed precision already; leave"
                    " DistributedStrategy.use_amp False"
                )
            self._optimizer = decorate(self._optimizer, init_loss_scaling=strategy.amp_loss_scaling)
        done = self._optimizer.minimize(loss, startup, parameter_list, no_grad_set)
        main = loss.block.program
        origin = main.clone(for_test=False)
        self._transpile(startup, main)
        self._fleet.minimized(
            origin, startup, main if strategy.mode == "collective" else self._compiled(loss, main)
        )
        return done

    def _check(self) -> None:
        strategy = self._strategy
        if strategy.forward_recompute and not strategy.recompute_checkpoints:
            raise FluidValueError(
                "forward_recompute needs DistributedStrategy.recompute_checkpoints, a list of"
                " variables"
            )
        if strategy.use_dist_fc:
            raise UnsupportedError(
                "use_dist_fc splits a layer over the workers, which is not supported"
            )
        if strategy.use_local_sgd:
            strategy.mode, strategy.collective_mode = "collective", "local_sgd"
        if (
            strategy.collective_mode in ("local_sgd", "grad_allreduce")
            and strategy.mode != "collective"
        ):
            raise FluidValueError(
                f"collective_mode {strategy.collective_mode!r} belongs to mode 'collective', not to"
                f" {strategy.mode!r}"
            )

    def _transpile(self, startup: Program, main: Program) -> None:
        endpoints = self._fleet.role.get_trainer_endpoints()
        if len(endpoints) < 2 and self._strategy.mode == "nccl2":
            return  # a single worker has nothing to average
        config = DistributeTranspilerConfig()
        config.mode, config.collective_mode = self._strategy.mode, self._strategy.collective_mode
        index = self._fleet.worker_index()
        DistributeTranspiler(config).transpile(
            index,
            program=main,
            trainers=",".join(endpoints),
            startup_program=startup,
            current_endpoint=endpoints[index],
        )

    def _compiled(self, loss: Variable, main: Program) -> CompiledProgram:
        strategy = self._strategy
        strategy.num_trainers, strategy.trainer_id = (
            self._fleet.worker_num(),
            self._fleet.worker_index(),
        )
        strategy.trainers_endpoints = self._fleet.role.get_trainer_endpoints()
        return CompiledProgram(main).with_data_parallel(
            loss.name, build_strategy=strategy, exec_strategy=strategy.exec_strategy
        )


fleet = Collective()

__all__ = ["Collective", "CollectiveOptimizer", "DistributedStrategy", "TrainStatus", "fleet"]

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.incubate.fleet.collective", __all__)
