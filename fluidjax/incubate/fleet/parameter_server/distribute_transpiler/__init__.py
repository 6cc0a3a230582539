"""fluid.incubate.fleet.parameter_server.distribute_transpiler: a fleet of workers and servers, over
DistributeTranspiler.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .....base.absent import reporter
from .....devices.place import CPUPlace
from .....errors import FluidTypeError, FluidValueError
from .....executor import Executor
from .....graph.program import Program, default_startup_program
from .....graph.variable import Variable
from .....optimizers.base import Optimizer
from .....saved.model import save_inference_model
from .....saved.vars import load_persistables, save_persistables
from .....transpiler import DistributeTranspiler, GeoSgdTranspiler
from ...base.fleet_base import Fleet
from ...base.role_maker import RoleMakerBase
from . import distributed_strategy as distributed_strategy
from .distributed_strategy import DistributedStrategy, strategy_of
from .distributed_strategy import StrategyFactory as StrategyFactory


class DistributedTranspiler(Fleet):
    """The fleet: role, programs, start and stop of servers and workers. Its programs exist after
    minimize.
    """

    def __init__(self) -> None:
        super().__init__()
        self._origin: Program | None = None
        self._startup: Program | None = None
        self._main: Program | None = None

    @cached_property
    def _executor(self) -> Executor:
        # made at its first use: it asks for devices, which a job may have only after its processes
        # have met
        return Executor(CPUPlace())

    def init(self, role_maker: RoleMakerBase | None = None) -> None:
        """Set the role. Raises the errors of Fleet.init, and FluidValueError for a role in a job
        without servers.
        """
        super().init(role_maker)
        if not self.server_num():
            raise FluidValueError(
                "this fleet has servers, but the role has none; use "
                "fluid.incubate.fleet.collective for a job of only workers"
            )

    @property
    def main_program(self) -> Any:
        """The program that this process runs: the worker's, or the server's. None before
        minimize.
        """
        return self._main

    @property
    def startup_program(self) -> Any:
        """The program that this process runs first. None before minimize."""
        return self._startup

    def init_server(self, model_dir: str | None = None) -> None:
        """Run the startup program, then load the values in model_dir. Raises FluidValueError before
        minimize, and for a missing folder.
        """
        self._executor.run(self._made(self._startup, "init_server"))
        if model_dir:
            if not os.path.isdir(model_dir):
                raise FluidValueError(f"fleet.init_server: there is no folder {model_dir!r}")
            load_persistables(self._executor, model_dir, self._main)

    def run_server(self) -> None:
        """Run the server's program until the job ends. Raises FluidValueError before minimize."""
        self._executor.run(self._made(self._main, "run_server"))

    def init_worker(self) -> None:
        """Does nothing, because workers communicate within their steps. Raises FluidValueError
        before minimize.
        """
        self._made(self._main, "init_worker")

    def stop_worker(self) -> None:
        """Closes the fleet's own executor; nothing else has to be stopped."""
        self._executor.close()

    def distributed_optimizer(
        self, optimizer: Optimizer, strategy: Any = None
    ) -> TranspilerOptimizer:
        """An optimizer whose minimize makes this process's programs. strategy: from
        StrategyFactory, or a DistributeTranspilerConfig.

        Raises FluidTypeError for anything but an optimizer or a strategy; FluidValueError before
        init.
        """
        if not isinstance(optimizer, Optimizer):
            raise FluidTypeError(
                f"fleet.distributed_optimizer takes an optimizer, not {optimizer!r}"
            )
        self.worker_num()
        return TranspilerOptimizer(optimizer, strategy, self)

    def transpile(self, strategy: DistributedStrategy, program: Program, startup: Program) -> None:
        """Make this process's programs. Unless `fluidjax launch` has joined the processes, this one
        joins the others when it runs a program.
        """
        config = strategy.get_program_config()
        self._origin = program.clone(for_test=False)
        t: Any = (GeoSgdTranspiler if config.geo_sgd_mode else DistributeTranspiler)(config)
        endpoints = self.role.get_pserver_endpoints()
        given = {
            "trainer_id": self.worker_index() if self.is_worker() else 0, "program": program, "startup_program": startup,
            "pservers": ",".join(endpoints), "trainers": self.worker_num(), "sync_mode": config.sync_mode,
        }  # fmt: skip
        if self.is_worker():
            t.transpile(**given)
            self._main, self._startup = t.get_trainer_program(wait_port=config.wait_port), startup
        else:
            endpoint = endpoints[self.server_index()]
            t.transpile(**given, current_endpoint=endpoint)
            self._main, self._startup = t.get_pserver_programs(endpoint)

    def save_inference_model(
        self, executor: Executor, dirname: str, feeded_var_names: Sequence[str], target_vars: Any,
        main_program: Program | None = None, export_for_deployment: bool = True,
    ) -> None:  # fmt: skip
        """io.save_inference_model of the program that was minimized, with whole parameters by
        name.
        """
        self._executor_of(executor)
        program = self.program_to_save(main_program)
        save_inference_model(
            dirname,
            list(feeded_var_names),
            target_vars,
            executor,
            program,
            export_for_deployment=export_for_deployment,
        )

    def save_persistables(
        self, executor: Executor, dirname: str, main_program: Program | None = None
    ) -> None:
        """io.save_persistables of this worker's program; the first worker also saves the
        optimizer's state and tables, whole and by name.
        """
        self._executor_of(executor)
        program = (
            self._main if main_program is None or main_program is self._origin else main_program
        )
        save_persistables(executor, dirname, self._made(program, "saving"))

    def program_to_save(self, given: Program | None) -> Program:
        """The program before its transpile, if the transpiled one or none is given. Raises
        FluidTypeError, FluidValueError.
        """
        if given is not None and not isinstance(given, Program):
            raise FluidTypeError(f"fleet saves a Program, not {type(given).__name__}")
        return self._made(self._origin, "saving") if given is None or given is self._main else given

    @staticmethod
    def _executor_of(given: Any) -> None:
        if not isinstance(given, Executor):
            raise FluidTypeError(f"fleet saves with an Executor, not {type(given).__name__}")

    @staticmethod
    def _made(program: Program | None, what: str) -> Program:
        if program is None:
            raise FluidValueError(
                "fleet has no programs yet; call fleet.distributed_optimizer(...).minimize(loss)"
                f" before {what}"
            )
        return program


class TranspilerOptimizer:
    """minimize, backward and apply_gradients of an optimizer, for the workers and servers of a
    job.
    """

    def __init__(
        self, optimizer: Optimizer, strategy: Any = None, of: DistributedTranspiler | None = None
    ) -> None:
        self._optimizer = optimizer
        self._strategy = strategy_of(strategy)
        self._fleet = fleet if of is None else of

    def backward(self, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's own backward."""
        return self._optimizer.backward(*args, **kwargs)

    def apply_gradients(self, params_grads: Any) -> Any:
        """The optimizer's own apply_gradients."""
        return self._optimizer.apply_gradients(params_grads)

    def minimize(
        self, loss: Variable, scopes: Any = None, startup_program: Program | None = None, parameter_list: Sequence[Any] | None = None,
        no_grad_set: Iterable[Any] | None = None,
    ) -> Any:  # fmt: skip
        """The optimizer's minimize. Then fleet.main_program and fleet.startup_program are this
        process's programs.

        scopes: for a list of losses, which is refused. Raises FluidTypeError for lists.
        """
        if isinstance(loss, list) or isinstance(startup_program, list) or scopes is not None:
            raise FluidTypeError(
                "a fleet with servers minimizes one loss of one program, not a list"
            )
        done = self._optimizer.minimize(loss, startup_program, parameter_list, no_grad_set)
        self._fleet.transpile(
            self._strategy, loss.block.program, startup_program or default_startup_program()
        )
        return done


fleet = DistributedTranspiler()

__all__ = ["DistributedTranspiler", "StrategyFactory", "TranspilerOptimizer", "fleet"]

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.incubate.fleet.parameter_server.distribute_transpiler", __all__)
