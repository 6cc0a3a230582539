"""The memory report's op-by-op bytes beside the compiler's figures, and what its memory-optimised
scheduler costs in time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax

import fluidjax as fluid

from . import data, fluid_models
from .cases import adam, momentum
from .page import Table, shown
from .timing import interleaved

Network = Callable[[], Any]
Optimizers = Callable[[], tuple[Any, Any]]

MODELS: tuple[tuple[str, Network, Optimizers], ...] = (
    ("LeNet, Adam", fluid_models.lenet, adam),
    ("ResNet-18, 32x32, Momentum", fluid_models.resnet18, momentum),
    ("ResNet-50, 224x224, Momentum", fluid_models.resnet50, momentum),
    ("VGG-16, 224x224, Momentum", fluid_models.vgg16, momentum),
    ("transformer, 4 layers, Adam", partial(fluid_models.transformer, depth=4), adam),
)
BATCHES = (8, 64)


def report(network: Network, optimizers: Optimizers, batch: int) -> Any:
    """The memory report of a training program."""
    main, _, loss = fluid_models.build(network, optimizers()[0])
    return main.memory_report(batch_size=batch, fetch_list=[loss])  # type: ignore[attr-defined]


def figures() -> Table:
    """Bytes of the training steps: op by op, and as the compiler counts them."""

    def rows() -> Iterator[list[str]]:
        for name, network, optimizers in MODELS:
            for batch in BATCHES:
                r = report(network, optimizers, batch)
                yield [
                    name,
                    str(batch),
                    *(
                        f"{n / 1e6:,.2f}"
                        for n in (r.plain, *(f.total for f in r.compiled.values()))
                    ),
                ]

    title = (
        "Memory of a training step, MB: op by op, and the compiler's own figures by scheduler"
        " (nothing is run)"
    )
    heads = ["model", "batch", "op by op", "default", "memory-optimised"]
    return shown("memory", title, heads, rows(), widths=[30, 6, 12, 12, 18])


class Running:
    """A training program behind an Executor, with either scheduler."""

    def __init__(
        self, network: Network, optimizers: Optimizers, feed: dict[str, Any], memory_optimized: bool
    ) -> None:
        self.main, startup, self.loss = fluid_models.build(network, optimizers()[0])
        # what memory_optimize sets, without its renamed variables
        self.main.update_info(memory_optimized=memory_optimized)
        self.feed, self.scope, self.exe = feed, fluid.Scope(), fluid.Executor()
        self.exe.run(startup, scope=self.scope)

    def run(self) -> Any:
        return self.exe.run(
            self.main, feed=self.feed, fetch_list=[self.loss], scope=self.scope, return_numpy=False
        )[0]


def scheduler() -> Table:
    """Step time with the memory-optimised scheduler over that with the default one."""

    def rows() -> Iterator[list[str]]:
        for (name, network, optimizers), side, channels, batch in zip(
            MODELS[:2], (28, 32), (1, 3), (64, 32), strict=True
        ):
            feed = data.images(batch, side, channels)
            saving, default = (Running(network, optimizers, feed, on) for on in (True, False))
            t = interleaved(saving.run, default.run, jax.block_until_ready, budget=20.0)
            yield [
                f"{name}, batch {batch}",
                f"{t.ours * 1e3:.2f}",
                f"{t.theirs * 1e3:.2f}",
                f"{t.ratio:.3f}",
            ]

    title = "A step under the memory-optimised scheduler, ms (medians of interleaved turns)"
    return shown(
        "scheduler",
        title,
        ["model", "memory-optimised", "default", "ratio"],
        rows(),
        widths=[40, 18, 10, 8],
    )


def table() -> list[Table]:
    """Bytes; and on a CPU the time of a step."""
    return [figures(), *([scheduler()] if jax.devices()[0].platform == "cpu" else [])]
