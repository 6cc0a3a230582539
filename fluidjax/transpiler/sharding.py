"""Shards the optimizer state of any program in one call, as parameter servers do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.strategy import BuildStrategy
from ..compiler import CompiledProgram
from ..devices.place import Place
from ..graph.program import Program
from ..graph.variable import Variable


def shard_optimizer(
    program: Program,
    loss: Variable | str,
    places: Sequence[Place] | None = None,
    build_strategy: BuildStrategy | None = None,
) -> CompiledProgram:
    """Run the program data parallel with its optimizer's state sharded: each device has 1 / devices
    of it.

    Gradients are reduce-scattered, every device updates its shard of each parameter with its shard
    of the state, and the parameters are gathered again (ZeRO, stage 1: Rajbhandari et al., 2020).
    Optimizers that need whole arrays (Lamb, LarsMomentum, Optax) gather their state for the update.
    The scope shows every variable whole, under its own name. This is with_data_parallel with
    ReduceStrategy.Reduce.

    loss: the loss, or its name. places: as for with_data_parallel. build_strategy: further options;
    its reduce_strategy becomes Reduce. Raises the errors of with_data_parallel.
    """
    strategy = BuildStrategy() if build_strategy is None else build_strategy
    strategy.reduce_strategy = BuildStrategy.ReduceStrategy.Reduce
    name: Any = loss.name if isinstance(loss, Variable) else loss
    return CompiledProgram(program).with_data_parallel(name, strategy, places=places)
