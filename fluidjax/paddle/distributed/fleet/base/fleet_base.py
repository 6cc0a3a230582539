"""Fleet: one process's view of a job, under Paddle 2's names."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from .....dist.jobs.env import read_env
from .....dist.jobs.process import current_job, init_from_env
from .....errors import FluidTypeError, FluidValueError, UnsupportedError
from .....executor import Executor
from .....graph.program import Program, default_startup_program, program_guard
from .....graph.variable import Variable
from .....saved.model import save_inference_model
from .....saved.vars import save_persistables
from ..servers import Servers
from ..workers import Workers
from .distributed_strategy import DistributedStrategy
from .role_maker import PaddleCloudRoleMaker, RoleMakerBase
from .util_factory import UtilBase


class Fleet:
    """Role, optimizer and programs of a job: workers alone, or workers and servers. Call fleet.init
    first.
    """

    def __init__(self) -> None:
        self._role_maker: RoleMakerBase | None = None
        self._strategy = DistributedStrategy()
        self._optimizer: Any = None
        self._made: Workers | Servers | None = None
        self._util = UtilBase()

    # role

    def init(
        self, role_maker: RoleMakerBase | None = None, is_collective: bool = False, strategy: DistributedStrategy | None = None,
        log_level: int | str = "INFO",
    ) -> None:  # fmt: skip
        """Take the role (default: the environment's) and join the job that it describes.

        is_collective: workers alone. log_level: ignored, as nothing is logged. Raises
        FluidTypeError for arguments of other types, and the errors of role makers and
        dist.init_from_env.
        """
        made = PaddleCloudRoleMaker(is_collective) if role_maker is None else role_maker
        if not isinstance(made, RoleMakerBase):
            raise FluidTypeError(
                "fleet.init takes a role maker of paddle.distributed.fleet, such as"
                f" PaddleCloudRoleMaker(), not {made!r}"
            )
        self._strategy = (
            DistributedStrategy() if strategy is None else copy.deepcopy(_checked(strategy))
        )
        made._generate_role()
        self._role_maker, self._made = made, None
        self._util._set_role_maker(made)
        if (
            made._is_collective
            and made._worker_num() > 1
            and read_env() is not None
            and current_job() is None
        ):
            init_from_env()

    @property
    def role(self) -> RoleMakerBase:
        """The role maker. Raises FluidValueError before init."""
        if self._role_maker is None:
            raise FluidValueError(
                "fleet has no role yet; call fleet.init(is_collective=True) or"
                " fleet.init(role_maker) first"
            )
        return self._role_maker

    @property
    def util(self) -> UtilBase:
        return self._util

    def is_first_worker(self) -> bool:
        return self.role._is_first_worker()

    def worker_index(self) -> int:
        return self.role._worker_index()

    def worker_num(self) -> int:
        return self.role._worker_num()

    def is_worker(self) -> bool:
        return self.role._is_worker()

    def worker_endpoints(self, to_string: bool = False) -> list[str] | str:
        found = self.role._get_trainer_endpoints()
        return ",".join(found) if to_string else found

    def server_num(self) -> int:
        return self.role._server_num()

    def server_index(self) -> int:
        return self.role._server_index()

    def server_endpoints(self, to_string: bool = False) -> list[str] | str:
        found = self.role._get_pserver_endpoints()
        return ",".join(found) if to_string else found

    def is_server(self) -> bool:
        return self.role._is_server()

    def barrier_worker(self) -> None:
        """Wait until every worker has called this."""
        self._util.barrier("worker")

    # programs

    def distributed_optimizer(
        self, optimizer: Any, strategy: DistributedStrategy | None = None
    ) -> Fleet:
        """Store the optimizer and the strategy (default: init's), and return the fleet, whose
        minimize makes the job's programs.
        """
        if optimizer is None or not hasattr(optimizer, "minimize"):
            raise FluidTypeError(
                f"fleet.distributed_optimizer takes an optimizer, not {optimizer!r}"
            )
        if strategy is not None:
            self._strategy = copy.deepcopy(_checked(strategy))
        self._optimizer = optimizer
        return self

    def minimize(
        self, loss: Variable, startup_program: Program | None = None, parameter_list: Sequence[Any] | None = None,
        no_grad_set: Iterable[Any] | None = None,
    ) -> Any:  # fmt: skip
        """The optimizer's minimize, composed by the strategy; the programs of loss and startup
        become this process's.

        Returns the result of the optimizer's minimize. Raises FluidTypeError for a loss that is not
        a Variable, FluidValueError before distributed_optimizer, UnsupportedError for unsupported
        features of the strategy.
        """
        if not isinstance(loss, Variable):
            raise FluidTypeError(f"fleet.minimize takes the loss as a Variable, not {loss!r}")
        if self._optimizer is None:
            raise FluidValueError(
                "fleet has no optimizer yet; call fleet.distributed_optimizer(optimizer, strategy)"
                " before minimize"
            )
        startup = startup_program or default_startup_program()
        made: Workers | Servers = (Servers if self.role._server_num() else Workers)(
            self.role, self._strategy
        )
        with program_guard(loss.block.program, startup):
            done = made.minimize(self._optimizer, loss, startup, parameter_list, no_grad_set)
        self._made = made
        return done

    def get_loss_scaling(self) -> Variable:
        """The variable of the loss scale. Raises FluidValueError if nothing was minimized with
        strategy.amp.
        """
        made = self._made
        if not isinstance(made, Workers) or made.scaling is None:
            raise FluidValueError(
                "there is no scale of the loss: nothing was minimized with DistributedStrategy.amp"
            )
        return made.scaling

    def amp_init(
        self,
        place: Any,
        scope: Any = None,
        test_program: Program | None = None,
        use_fp16_test: bool = False,
    ) -> None:
        """Does nothing: with amp, parameters stay in float32. Raises FluidValueError without amp,
        UnsupportedError for use_fp16_test.
        """
        self.get_loss_scaling()
        if use_fp16_test:
            raise UnsupportedError("amp_init(use_fp16_test=True): test programs compute in float32")

    def distributed_model(self, model: Any) -> NoReturn:
        """Not supported. Raises UnsupportedError."""
        raise UnsupportedError(
            "fleet.distributed_model belongs to dynamic mode: use"
            " distributed_optimizer(...).minimize(loss)"
        )

    # workers and servers

    def init_worker(self, scopes: Any = None) -> None:
        """Does nothing: workers communicate within their steps. Raises FluidValueError before
        minimize in a job with servers.
        """
        if self.role._server_num():
            self._servers("init_worker")

    def init_server(self, *args: Any, **kwargs: Any) -> None:
        """Run the startup program, then load the model from the folder given as first argument.
        Raises FluidValueError before minimize.
        """
        self._servers("init_server").begin(*args, **kwargs)

    def run_server(self) -> None:
        """Run the server's program until the job ends. Raises FluidValueError before minimize."""
        self._servers("run_server").run()

    def stop_worker(self) -> None:
        """Does nothing."""

    def _servers(self, what: str) -> Servers:
        if not isinstance(self._made, Servers):
            why = (
                "has no programs yet; call fleet.minimize before it"
                if self.role._server_num()
                else "has no servers in this job"
            )
            raise FluidValueError(f"fleet.{what}: the fleet {why}")
        return self._made

    # saving

    def save_inference_model(
        self, executor: Executor, dirname: str, feeded_var_names: Sequence[str], target_vars: Any, main_program: Program | None = None,
        export_for_deployment: bool = True, mode: int = 0,
    ) -> None:  # fmt: skip
        """io.save_inference_model of the minimized program, with whole parameters under their
        names. mode: for Paddle's own tables.
        """
        program = self._to_save(executor, main_program)
        save_inference_model(
            dirname,
            list(feeded_var_names),
            target_vars,
            executor,
            program,
            export_for_deployment=export_for_deployment,
        )

    def save_persistables(
        self, executor: Executor, dirname: str, main_program: Program | None = None, mode: int = 0
    ) -> None:
        """io.save_persistables of the minimized program. mode: for Paddle's own tables."""
        save_persistables(executor, dirname, self._to_save(executor, main_program))

    def _to_save(self, executor: Any, given: Program | None) -> Program:
        if not isinstance(executor, Executor):
            raise FluidTypeError(f"fleet saves with an Executor, not {type(executor).__name__}")
        if given is not None and not isinstance(given, Program):
            raise FluidTypeError(f"fleet saves a Program, not {type(given).__name__}")
        if self._made is None:
            if given is None:
                raise FluidValueError(
                    "fleet cannot save: nothing was minimized yet; call fleet.minimize, or give"
                    " main_program"
                )
            return given
        return self._made.to_save(given)


def _checked(strategy: Any) -> DistributedStrategy:
    if not isinstance(strategy, DistributedStrategy):
        raise FluidTypeError(
            f"strategy is a paddle.distributed.fleet.DistributedStrategy, not {strategy!r}"
        )
    return strategy


fleet = Fleet()

__all__ = ["Fleet", "fleet"]
