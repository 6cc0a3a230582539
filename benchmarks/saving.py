"""What checkpoints written in the background cost a training loop: its seconds a step with an
AutoCheckpoint over those without, in turns on one machine.

A turn of 200 steps begins and ends between two saves, so everything that these cost is within it.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import fluidjax as fluid
from fluidjax import layers

from .page import Table, shown

STEPS, TURNS = 200, 2
EVERY = (20, 100)
COLUMNS = (
    "state",
    "MB",
    "variables",
    "a step, ms",
    "every 20 steps",
    "every 100 steps",
    "a save, ms",
)


def wide() -> Any:
    """Three large layers: 27 million numbers, most of them in two variables and their moments."""
    h = fluid.data("x", [None, 1024])
    for size in (2048, 3072):
        h = layers.fc(h, size, act="relu")
    return layers.fc(h, 256)


def deep() -> Any:
    """A hundred layers: 20 million numbers in 800 variables."""
    h = fluid.data("x", [None, 1024])
    for _ in range(100):
        h = layers.fc(h, 256, act="relu")
    return h


NETS: dict[str, tuple[Callable[[], Any], int]] = {
    "3 layers, Adam": (wide, 128),
    "100 layers, Adam": (deep, 128),
}


class Loop:
    """A net that trains, and the folder of its checkpoints."""

    def __init__(self, net: Callable[[], Any], batch: int, folder: str) -> None:
        self.main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(self.main, startup), fluid.unique_name.guard():
            label = fluid.data("label", [None, 1], dtype="int64")
            self.loss = layers.mean(layers.softmax_with_cross_entropy(net(), label))
            fluid.optimizer.Adam(1e-3).minimize(self.loss)
        rng = np.random.default_rng(0)
        self.feed = {
            "x": rng.standard_normal((batch, 1024), dtype="float32"),
            "label": rng.integers(0, 256, (batch, 1)),
        }
        self.folder, self.scope, self.exe = folder, fluid.Scope(), fluid.Executor()
        self.exe.run(startup, scope=self.scope)
        self.steps(5)

    def step(self) -> None:
        self.exe.run(self.main, self.feed, [self.loss], scope=self.scope)

    def steps(self, count: int) -> float:
        begin = time.perf_counter()
        for _ in range(count):
            self.step()
        return time.perf_counter() - begin

    def saving(self, every: int) -> tuple[float, list[float]]:
        """Seconds of the loop, and of each call that saved."""
        saves = []
        fluid.io.clean_checkpoint(self.folder)
        auto = fluid.io.AutoCheckpoint(
            self.exe, self.folder, self.main, every_steps=every, scope=self.scope
        )
        with auto:
            auto.resume()
            for _ in range(every // 2):  # so that the clock starts and ends between two saves
                self.step()
                auto.step()
            begin = time.perf_counter()
            for _ in range(STEPS):
                self.step()
                called = time.perf_counter()
                if auto.step():
                    saves.append(time.perf_counter() - called)
            auto.wait()
            return time.perf_counter() - begin, saves


def row(named: tuple[str, tuple[Callable[[], Any], int]]) -> list[str]:
    name, (net, batch) = named
    with tempfile.TemporaryDirectory() as folder:
        loop = Loop(net, batch, folder)
        loop.saving(EVERY[0])  # orbax is loaded, what it compiles is compiled
        alone: list[float] = []
        saved: dict[int, list[float]] = {every: [] for every in EVERY}
        calls: list[float] = []
        for _ in range(TURNS):
            alone.append(loop.steps(STEPS))
            for every in EVERY:
                seconds, saves = loop.saving(every)
                saved[every].append(seconds / alone[-1])
                calls += saves
        state = [v for v in loop.main.list_vars() if v.persistable]
    return [
        name,
        f"{sum(4 * np.prod(v.shape) for v in state) / 1e6:.0f}",
        f"{len(state)}",
        f"{statistics.median(alone) / STEPS * 1e3:.1f}",
        *(f"{statistics.median(ratios):.3f}" for ratios in saved.values()),
        f"{statistics.median(calls) * 1e3:.0f}",
    ]


def table() -> list[Table]:
    title = (
        "Training loops that save in the background, over the same loops without (clock, medians of"
        " turns), and what the call that saves takes"
    )
    return [
        shown("saving", title, COLUMNS, map(row, NETS.items()), widths=[26, 8, 12, 14, 18, 18, 14])
    ]
