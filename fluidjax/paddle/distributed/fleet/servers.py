"""minimize for workers and servers: the programs of DistributeTranspiler, by the corresponding
fleet of fluid.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ....errors import FluidTypeError, UnsupportedError
from ....graph.program import Program
from ....graph.variable import Variable
from ....incubate.fleet.parameter_server.distribute_transpiler import (
    DistributedTranspiler,
    StrategyFactory,
)
from .base.distributed_strategy import DistributedStrategy
from .base.role_maker import RoleMakerBase
from .chain import HOLDS


class Servers:
    """One minimize of a fleet with servers.

    a_sync=False waits for all workers in every step; a_sync with k_steps from 1 exchanges
    differences after that many steps (geo); otherwise servers apply gradients as they arrive.
    """

    def __init__(self, role: RoleMakerBase, strategy: DistributedStrategy) -> None:
        strategy.refuse_what_is_not_there()
        asked = next((n for n in HOLDS if getattr(strategy, n)), None)
        if asked is not None:
            raise UnsupportedError(
                f"DistributedStrategy.{asked} is for workers alone; this job has servers"
            )
        self._fleet = DistributedTranspiler()
        self._fleet.init(role.fluid_maker)
        k_steps = strategy.a_sync_configs["k_steps"]
        make: Any = (
            StrategyFactory.create_async_strategy
            if strategy.a_sync
            else StrategyFactory.create_sync_strategy
        )
        self._how = (
            StrategyFactory.create_geo_strategy(k_steps)
            if strategy.a_sync and k_steps > 0
            else make()
        )

    def minimize(
        self,
        optimizer: Any,
        loss: Variable,
        startup: Program,
        parameter_list: Sequence[Any] | None,
        no_grad_set: Iterable[Any] | None,
    ) -> Any:
        """The optimizer's minimize; then the programs of loss and startup are those of this
        process.
        """
        made = self._fleet.distributed_optimizer(optimizer, self._how)
        return made.minimize(
            loss, startup_program=startup, parameter_list=parameter_list, no_grad_set=no_grad_set
        )

    def begin(self, *args: Any, **kwargs: Any) -> None:
        """init_server of a server. Takes the folder of a model. Raises the errors of fluid's fleet,
        and FluidTypeError for other arguments.
        """
        if (
            len(args) > 1
            or not set(kwargs) <= {"dirname", "var_names"}
            or kwargs.get("var_names") is not None
        ):
            raise FluidTypeError("fleet.init_server takes the folder of a model, or nothing")
        self._fleet.init_server(args[0] if args else kwargs.get("dirname"))

    def run(self) -> None:
        """run_server of a server."""
        self._fleet.run_server()

    def to_save(self, given: Program | None) -> Program:
        """The program before transpile, if that one or none is given."""
        return self._fleet.program_to_save(given)


__all__ = ["Servers"]
