"""minimize for workers alone: the plain program, with collectives that keep the workers in step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ....contrib.mixed_precision.decorator import OptimizerWithMixedPrecision
from ....dist.inner_updates import refuse_inner_updates
from ....dist.spmd.data_parallel import synchronised
from ....graph.program import Program
from ....graph.variable import Variable
from ....ir import edit
from ....transpiler.collective import Trainers, average_gradients, join
from ...optimizer import register_schedule
from .base.distributed_strategy import DistributedStrategy
from .base.role_maker import RoleMakerBase
from .chain import chain, composed
from .localsgd import average_as_the_loss_says, average_now_and_then


class Workers:
    """One minimize of a fleet of workers. scaling: the variable of the loss scale, if any."""

    def __init__(self, role: RoleMakerBase, strategy: DistributedStrategy) -> None:
        self._role, self._strategy = role, strategy
        self.scaling: Variable | None = None
        self._origin = Program()

    def minimize(
        self,
        optimizer: Any,
        loss: Variable,
        startup: Program,
        parameter_list: Sequence[Any] | None,
        no_grad_set: Iterable[Any] | None,
    ) -> Any:
        """The composed optimizer's minimize; then the programs of loss and startup are those of the
        job.
        """
        count = self._role._worker_num()
        names = chain(self._strategy, optimizer, count)
        made, updates = composed(optimizer, self._strategy, names)
        done = made.minimize(loss, startup, parameter_list, no_grad_set)
        main = loss.block.program
        register_schedule(optimizer, updates, main)
        self.scaling = _scaling(made)
        self._origin = main.clone(for_test=False)
        if count > 1 and (
            self._strategy.sync_batch_norm or self._strategy.build_strategy.sync_batch_norm
        ):
            ops = [synchronised(op) for op in main.desc.blocks[0].ops]
            main.set_desc(edit.replace_ops(main.desc, 0, ops))
        if count > 1:
            self._join(loss, updates._global_learning_rate(main), startup, names)
        return done

    def _join(self, loss: Variable, rate: Any, startup: Program, names: tuple[str, ...]) -> None:
        """Make the workers begin with equal parameters, and keep them equal. rate: the variable of
        the learning rate.
        """
        main = loss.block.program
        endpoints = self._role._get_trainer_endpoints()
        index = self._role._worker_index()
        ring = Trainers(tuple(endpoints), index, endpoints[index], 1)
        if "gradient_merge" not in names:  # in whose block all workers update in the same runs
            refuse_inner_updates(main.desc, "a fleet of several workers")
        startup.set_desc(join(startup.desc, ring))
        if "localsgd" in names:
            average_now_and_then(main, startup, len(endpoints), **self._strategy.localsgd_configs)
        elif "adaptive_localsgd" in names:
            average_as_the_loss_says(
                main,
                startup,
                len(endpoints),
                loss,
                rate,
                **self._strategy.adaptive_localsgd_configs,
            )
        elif "sharding" in names:
            main.update_info(shards_optimizer=True)
        else:
            main.set_desc(average_gradients(main.desc, ring))

    def to_save(self, given: Program | None) -> Program:
        """The program before the workers' collectives were added, which has everything to save."""
        return self._origin if given is None else given


def _scaling(optimizer: Any) -> Variable | None:
    """The scale of the loss, if mixed precision is somewhere in a chain."""
    while optimizer is not None:
        if isinstance(optimizer, OptimizerWithMixedPrecision):
            return optimizer.get_loss_scaling()
        optimizer = getattr(optimizer, "inner_optimizer", None)
    return None


__all__ = ["Workers"]
