"""The modes in which workers and servers of a fleet wait for each other: sync, half async, async,
geo.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

from .....base.absent import reporter
from .....compiler import BuildStrategy, ExecutionStrategy
from .....errors import FluidTypeError, FluidValueError, UnsupportedError, near
from .....transpiler import DistributeTranspilerConfig
from .....transpiler.config import ServerRuntimeConfig as ServerRuntimeConfig

Config = TypeVar("Config")
# settings of Paddle's threads and queues, with their defaults if the environment has none; None:
# CPU_NUM
_FLAGS = {
    "communicator_max_merge_var_num": None, "communicator_send_queue_size": None, "communicator_independent_recv_thread": "1",
    "communicator_min_send_grad_num_before_recv": None, "communicator_thread_pool_size": "5", "communicator_send_wait_times": "5",
    "communicator_is_sgd_optimizer": "1", "rpc_deadline": "180000", "rpc_retry_times": "3",
}  # fmt: skip


class TrainerRuntimeConfig:
    """Settings of the threads by which Paddle's workers send and receive. They are kept and shown
    without effect, because no threads send here.
    """

    def __init__(self) -> None:
        self.mode: str | None = None
        cpus = os.getenv("CPU_NUM", "1")
        self.runtime_configs = {
            n: os.getenv(f"FLAGS_{n}", cpus if default is None else default)
            for n, default in _FLAGS.items()
        }

    def get_communicator_flags(self) -> dict[str, str]:
        """All of them, as texts."""
        return {name: str(value) for name, value in self.runtime_configs.items()}

    def __repr__(self) -> str:
        return "\n".join(
            f"{name} = {value}" for name, value in self.get_communicator_flags().items()
        )


class DistributedStrategy:
    """The settings of a fleet with servers; StrategyFactory makes one.

    Each part has a get_... method, and a set_... method that takes an object of its kind or a dict
    of its attributes: program_config (DistributeTranspilerConfig), trainer_runtime_config,
    server_runtime_config, execute_strategy, build_strategy. Setters raise FluidTypeError for
    another kind, FluidValueError for an unknown key.
    """

    def __init__(self) -> None:
        self._program_config = DistributeTranspilerConfig()
        self._trainer_runtime_config = TrainerRuntimeConfig()
        self._server_runtime_config = ServerRuntimeConfig()
        self._execute_strategy, self._build_strategy = ExecutionStrategy(), BuildStrategy()
        self._build_strategy.async_mode = True  # true in every strategy, also the synchronous one
        self._debug: dict[str, Any] = {}
        self.check_program_config()

    def check_program_config(self) -> None:
        """Put the mode into the configuration. Raises UnsupportedError in the base class, which has
        no mode.
        """
        raise UnsupportedError(
            "a DistributedStrategy by itself has no mode; make one by"
            " StrategyFactory.create_sync_strategy()"
        )

    def get_program_config(self) -> DistributeTranspilerConfig:
        return self._program_config

    def set_program_config(self, config: Any) -> None:
        self._program_config = _taken(
            "program_config", config, self._program_config, DistributeTranspilerConfig
        )
        self.check_program_config()

    def get_trainer_runtime_config(self) -> TrainerRuntimeConfig:
        return self._trainer_runtime_config

    def set_trainer_runtime_config(self, config: Any) -> None:
        if isinstance(config, dict):
            there = self._trainer_runtime_config.runtime_configs
            unknown = [key for key in config if key not in there]
            if unknown:
                raise FluidValueError(
                    f"trainer_runtime_config has no {unknown[0]!r}{near(unknown[0], there)}"
                )
            there.update(config)
        else:
            self._trainer_runtime_config = _taken(
                "trainer_runtime_config", config, self._trainer_runtime_config, TrainerRuntimeConfig
            )

    def get_server_runtime_config(self) -> ServerRuntimeConfig:
        return self._server_runtime_config

    def set_server_runtime_config(self, config: Any) -> None:
        self._server_runtime_config = _taken(
            "server_runtime_config", config, self._server_runtime_config, ServerRuntimeConfig
        )

    def get_execute_strategy(self) -> ExecutionStrategy:
        return self._execute_strategy

    def set_execute_strategy(self, config: Any) -> None:
        self._execute_strategy = _taken(
            "execute_strategy", config, self._execute_strategy, ExecutionStrategy
        )

    def get_build_strategy(self) -> BuildStrategy:
        return self._build_strategy

    def set_build_strategy(self, config: Any) -> None:
        self._build_strategy = _taken("build_strategy", config, self._build_strategy, BuildStrategy)

    def set_debug_opt(self, opt_info: dict[str, Any]) -> None:
        """Settings of files that Paddle's workers write while they train (dump_fields, dump_param).
        Raises an error if any file is requested.
        """
        if any(opt_info.get(n) for n in ("dump_slot", "dump_fields", "dump_param")):
            raise UnsupportedError(
                "a fleet does not dump fields or parameters; fetch them, or use fluid.layers.Print"
            )
        self._debug = dict(opt_info)

    def get_debug_opt(self) -> dict[str, Any]:
        return dict(self._debug)


def _taken(name: str, given: Any, there: Config, kind: type) -> Config:
    """The given object, or the current one with the attributes of a dict."""
    if isinstance(given, kind):
        return given  # type: ignore[return-value]
    if not isinstance(given, dict):
        raise FluidTypeError(
            f"{name} is a {kind.__name__} or a dict of its attributes, not {given!r}"
        )
    for key, value in given.items():
        if not hasattr(there, key):
            raise FluidValueError(
                f"{name} has no"
                f" {key!r}{near(key, [n for n in dir(there) if not n.startswith('_')])}"
            )
        setattr(there, key, value)
    return there


class SyncStrategy(DistributedStrategy):
    """Servers wait for all workers and average; then all workers receive."""

    def check_program_config(self) -> None:
        _mode(self._program_config, half_async=True, completely_not_async=True)


class HalfAsyncStrategy(DistributedStrategy):
    """Servers apply each gradient as it arrives; workers wait for each other before they
    receive.
    """

    def check_program_config(self) -> None:
        _mode(self._program_config, half_async=True)


class AsyncStrategy(DistributedStrategy):
    """Servers apply each gradient as it arrives, and no process waits."""

    def check_program_config(self) -> None:
        _mode(self._program_config)


class GeoStrategy(DistributedStrategy):
    """Workers update by themselves, and exchange differences after every `update_frequency`
    steps.
    """

    def __init__(self, update_frequency: int = 100) -> None:
        super().__init__()
        self._program_config.geo_sgd_need_push_nums = update_frequency

    def check_program_config(self) -> None:
        _mode(self._program_config, geo_sgd_mode=True)


def _mode(config: DistributeTranspilerConfig, **more: bool) -> None:
    config.sync_mode, config.runtime_split_send_recv = False, True
    for name, value in more.items():
        setattr(config, name, value)


class StrategyFactory:
    """Makes strategies by name."""

    @staticmethod
    def create_sync_strategy() -> SyncStrategy:
        return SyncStrategy()

    @staticmethod
    def create_half_async_strategy() -> HalfAsyncStrategy:
        return HalfAsyncStrategy()

    @staticmethod
    def create_async_strategy() -> AsyncStrategy:
        return AsyncStrategy()

    @staticmethod
    def create_geo_strategy(update_frequency: int = 100) -> GeoStrategy:
        return GeoStrategy(update_frequency)


def strategy_of(config: Any) -> DistributedStrategy:
    """The strategy of a fleet: the given one, that of a DistributeTranspilerConfig, or sync. Raises
    FluidTypeError.
    """
    if isinstance(config, DistributedStrategy):
        return config
    if config is None:
        return SyncStrategy()
    if not isinstance(config, DistributeTranspilerConfig):
        raise FluidTypeError(
            "a fleet with servers takes a strategy of StrategyFactory or a"
            f" DistributeTranspilerConfig, not {config!r}"
        )
    found: DistributedStrategy
    if config.sync_mode:
        found = SyncStrategy()
    elif config.geo_sgd_mode:
        found = GeoStrategy(config.geo_sgd_need_push_nums)
    elif config.runtime_split_send_recv and not config.half_async:
        found = AsyncStrategy()
    else:
        found = HalfAsyncStrategy()
    found.set_program_config(config)
    return found


__all__ = [
    "AsyncStrategy", "DistributedStrategy", "GeoStrategy", "HalfAsyncStrategy", "StrategyFactory", "SyncStrategy", "TrainerRuntimeConfig",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = reporter(
        "fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy", __all__
    )
