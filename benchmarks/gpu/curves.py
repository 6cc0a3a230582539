"""Time against memory of ResNet-50's and a transformer's training steps: under budgets, with
checkpoints, with shared names.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import fluidjax as fluid

from .. import data, fluid_models
from . import nets
from .bench import Fluid, Side, choose, compared, executable, on_device, peak, timed
from .records import Found

SHARES = (0.3, 0.5, 0.7)  # of the temporaries of the step without a budget
Network = Callable[[], Any]


def _net(network: Network, feed: Any) -> tuple[fluid.Program, fluid.Program, Any]:
    return fluid_models.build(network, fluid.optimizer.Momentum(1e-3, 0.9))


def _recomputed(network: Network, ends: str) -> tuple[fluid.Program, fluid.Program, Any]:
    """Checkpoints behind ops of a type."""

    class Recompute:
        def minimize(self, loss: Any) -> Any:
            ops = loss.block.program.global_block().ops
            found = [op.output_arg_names[0] for op in ops if op.type == ends]
            optimizer = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.Momentum(1e-3, 0.9))
            optimizer._set_checkpoints([loss.block.var(n) for n in found])
            return optimizer.minimize(loss)

    return fluid_models.build(network, Recompute())


def _curve(
    case: str, network: Network, feed: Any, ends: str, shares: Sequence[float] = SHARES
) -> Iterator[Found]:
    batch = len(feed["label"])
    given = on_device(feed)
    sides: list[Side] = []
    found: dict[str, Found] = {}

    def take(name: str, made: Any, search: float = 0.0) -> Found:
        main, startup, loss = made
        net = Fluid(main, startup, [loss])
        side = net.side(name, given)
        side.prepare()
        sides.append(side)
        found[name] = {**executable(side, case), "search_s": search, "peak_mb": peak()}
        return found[name]

    # The device counts its peak from the beginning of the process, so what needs least comes first;
    # figures need no run.
    plain = _net(network, feed)
    report = plain[0].memory_report(batch_size=batch, fetch_list=[plain[2]])  # type: ignore[attr-defined]
    whole = report.compiled["default"]
    refused = {}
    for share in shares:
        made, began = _net(network, feed), time.perf_counter()
        budget = whole.total - whole.temporaries + int(share * whole.temporaries)
        try:
            fitted = fluid.memory_optimize(
                made[0], budget=budget, batch_size=batch, fetch_list=[made[2]]
            )
        except fluid.errors.FluidValueError as error:
            refused[f"{share}"] = str(error)[:300]
            continue
        row = take(f"budget {share}", made, time.perf_counter() - began)
        row |= {"budget_mb": budget / 1e6, "fitted": str(fitted)[:600]}
    take("checkpoints", _recomputed(network, ends))
    shared = _net(network, feed)
    fluid.memory_optimize(shared[0], skip_opt_set=[shared[2]])
    take("shared names", shared)
    take("plain", plain)
    yield {
        "sides": found,
        "reported_mb": whole.total / 1e6,
        "by_ops_mb": report.plain / 1e6,
        "refused": refused,
        "batch": batch,
    }
    yield {"sides": compared(timed(sides, turns=choose(5, 1)), "plain", batch)}


def resnet50() -> Iterator[Found]:
    """At one budget alone: its step takes a compiler long."""
    batch, pixels, classes = choose((64, 224, 1000), (2, 32, 10))
    stages = choose(nets.STAGES, ((8, 1), (16, 1)))
    yield from _curve(
        "curve-resnet50",
        partial(nets.resnet50, "NHWC", pixels, classes, stages),
        data.images(batch, pixels, 3, classes),
        "relu",
        (0.5,),
    )


def transformer() -> Iterator[Found]:
    width, length, heads, depth, batch = choose((1024, 512, 16, 6, 16), (32, 8, 2, 1, 2))
    network = partial(fluid_models.transformer, width, length, heads, depth)
    yield from _curve(
        "curve-transformer", network, data.sequences(batch, length, width, 10), "layer_norm"
    )
