"""Small programs that are planned, and their steps as they are compiled for several devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

import fluidjax as fluid
from fluidjax import layers
from fluidjax.compiling.recompiles import Recompiles
from fluidjax.devices.placement import Mesh
from fluidjax.dist.spmd.parallel import rewritten
from fluidjax.lower.step import Step
from fluidjax.memory.sizes import arguments
from fluidjax.planning.ranks import passes
from fluidjax.runtime.compiled import Compiled
from fluidjax.runtime.plan import StepPlan
from tests.nets import fresh


def dense(optimizer: Any, wide: int = 96) -> Any:
    """Two layers with a batch_norm between them; some parameters are smaller than 8,192 elements,
    one is larger.
    """
    x, y = fluid.data("x", [None, 90]), fluid.data("y", [None, 1])
    h = layers.batch_norm(layers.fc(x, wide, act="relu"))
    loss = layers.mean(layers.square_error_cost(layers.fc(layers.dropout(h, 0.3), 1), y))
    optimizer.minimize(loss)
    return loss


def plain(optimizer: Any) -> Any:
    """Two layers, of one of whose parameters 4 devices do not get equal parts."""
    x, y = fluid.data("x", [None, 90]), fluid.data("y", [None, 1])
    loss = layers.mean(layers.square_error_cost(layers.fc(layers.fc(x, 97, act="tanh"), 1), y))
    optimizer.minimize(loss)
    return loss


def clicks(optimizer: Any, rows: int = 10_007, distributed: bool = False) -> Any:
    """A table with sparse gradients and a layer on what is looked up."""
    ids, y = fluid.data("ids", [None, 5, 1], "int64"), fluid.data("y", [None, 1])
    h = layers.embedding(
        ids, [rows, 8], is_sparse=True, is_distributed=distributed, param_attr="table"
    )
    loss = layers.mean(layers.square_error_cost(layers.fc(layers.reshape(h, [-1, 40]), 1), y))
    optimizer.minimize(loss)
    return loss


def build(
    net: Callable[..., Any], *args: Any, **kwargs: Any
) -> tuple[fluid.Program, fluid.Program, Any]:
    """(main, startup, loss)."""
    with fresh() as (main, startup):
        loss = net(*args, **kwargs)
    return main, startup, loss


def compiled(
    main: fluid.Program, loss: Any, strategy: str, ranks: int, batch: int
) -> jax.stages.Compiled:
    """The step that Executor.run compiles for so many devices, of which there must be as many;
    nothing is run.
    """
    desc, placed = rewritten(*passes(main, strategy, ranks))
    mesh = Mesh(tuple(jax.devices()[:ranks]))
    one = Compiled(StepPlan.of(desc, (loss.name,), mesh, placed=placed), Recompiles())
    types = arguments(Step(desc, (loss.name,)), batch, None)
    return one.lower(types.state, types.feed).compile()
