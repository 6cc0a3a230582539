"""How long each pass takes on programs of 1k, 10k and 50k ops, and how near memory_optimize comes
to the least memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import fluidjax as fluid
from fluidjax import layers, passes
from fluidjax.ir.desc import ProgramDesc
from fluidjax.ir.verify import verify
from fluidjax.ops.registry import lookup
from fluidjax.passes.intervals import kind
from fluidjax.passes.lifetimes import Life, lives, shareable, size
from fluidjax.passes.memory_optimize import MemoryOptimize

from . import building, fluid_models
from .page import Table, shown

MODELS: dict[str, Callable[[], Any]] = {
    "LeNet": fluid_models.lenet,
    "ResNet-18, 32x32": fluid_models.resnet18,
    "ResNet-50, 224x224": fluid_models.resnet50,
    "VGG-16, 224x224": fluid_models.vgg16,
    "transformer, 4 layers": lambda: fluid_models.transformer(depth=4),
}


def training(count: int) -> tuple[ProgramDesc, str]:
    """A training program of about `count` ops: a chain as in building, its gradients and updates;
    and its loss.
    """
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        first = h = layers.fc(fluid.data("x", [None, 16]), 16)
        while len(main.global_block().ops) < 3 * count // 7:
            h = layers.elementwise_add(layers.tanh(layers.scale(h, 0.5)), first)
        loss = layers.mean(h)
        fluid.optimizer.SGD(0.1).minimize(loss)
    return main.desc, loss.name


def speed() -> Table:
    """Seconds of every pass, without the verification before and after, whose time is in the last
    column.
    """
    names = [
        *sorted(passes.PASSES),
        "memory_optimize(level=1)",
        "memory_optimize(strategy='first_fit')",
    ]
    rows: dict[str, list[str]] = {name: [] for name in [*names, "verify (twice a pass)"]}
    for count in building.SIZES:
        desc, loss = training(count)
        for name in names:
            rows[name].append(f"{passes.run(name, desc, {}, [loss]).seconds:.3f}")
        start = time.perf_counter()
        verify(desc, lookup)
        rows["verify (twice a pass)"].append(f"{time.perf_counter() - start:.3f}")
    title = "Passes on training programs of many ops: seconds of the rewrite alone"
    heads = ["pass", *(f"{count:,} ops" for count in building.SIZES)]
    return shown(
        "passes",
        title,
        heads,
        ([name, *cells] for name, cells in rows.items()),
        widths=[40, 12, 12, 12],
    )


def names_bound(found: list[Life], level: int, batch_size: int) -> int:
    """Bytes below which no sharing of whole names can go.

    Among lives of one kind, the k-th largest name is at least as large as the k-th largest variable
    alive at any op.
    """
    kinds: dict[Any, list[Life]] = {}
    for life in found:
        kinds.setdefault(kind(life.var, level), []).append(life)
    total = 0
    for group in kinds.values():
        group.sort(key=lambda life: -size(life.var, batch_size))
        first, last, sizes = (
            np.array(v)
            for v in zip(*((x.first, x.last, size(x.var, batch_size)) for x in group), strict=True)
        )
        least = np.zeros(len(group), np.int64)
        for at in np.unique(first):
            alive = sizes[(first <= at) & (last >= at)]
            np.maximum(least[: len(alive)], alive, out=least[: len(alive)])
        total += int(least.sum())
    return total


def declared_bytes(desc: ProgramDesc, batch_size: int) -> int:
    """Bytes of all variables of block 0 that ops mention, but persistable ones: each name as large
    as it is declared.
    """
    used = {n for op in desc.blocks[0].ops for n in (*op.reads, *op.writes)}
    plain = (
        v
        for n, v in desc.blocks[0].vars.items()
        if n in used and not v.persistable and v.kind == "LOD_TENSOR"
    )
    return sum(size(v, batch_size) for v in plain)


def memory() -> Table:
    """Planned bytes of the activations and gradients of training programs, over the least possible
    (most alive at one op).
    """
    heads = ["model", "batch", "least, MB", "no reuse"]
    for level in (0, 1):
        heads += [f"names, level {level}", "bound", "0.15", "MB", "0.15, MB"]

    def rows() -> Iterator[list[str]]:
        for name, network in MODELS.items():
            main, _, loss = fluid_models.build(network, fluid.optimizer.Momentum(0.1, 0.9))
            for batch in (8, 64):
                yield [name, str(batch), *_row(main.desc, loss.name, batch)]

    title = (
        "memory_optimize: bytes over the least possible; names also with fed variables, in MB (1e6)"
    )
    return shown(
        "reuse of names", title, heads, rows(), widths=[24, 6, 10, 10, *[15, 8, 8, 10, 10] * 2]
    )


def _row(desc: ProgramDesc, loss: str, batch: int) -> list[str]:
    found = [life for life in lives(desc) if shareable(life.var) and life.name != loss]
    cells = []
    for level in (0, 1):
        ours, old = (
            passes.run(
                MemoryOptimize(level=level, strategy=strategy, batch_size=batch), desc, keep=[loss]
            )
            for strategy in ("interval", "first_fit")
        )
        plan, least = ours.certificate, ours.certificate.lower_bound
        if not level:
            cells += [f"{least / 1e6:,.2f}", f"{plan.unshared / least:.3f}"]
        cells += [
            f"{b / least:.3f}"
            for b in (plan.pool, names_bound(found, level, batch), old.certificate.pool)
        ]
        cells += [f"{declared_bytes(r.desc, batch) / 1e6:,.2f}" for r in (ours, old)]
    return cells


def table() -> list[Table]:
    """Both tables."""
    return [speed(), memory()]
