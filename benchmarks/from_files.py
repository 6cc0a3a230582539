"""Training over files of slots beside training on the same batches from memory: how much of its
rate is kept.
"""

from __future__ import annotations

import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import fluidjax as fluid
from fluidjax.loaders.slots import parsers

from .page import Table, shown

_DENSE, _BATCH, _WORDS = 13, 128, 10_000
# FILES times LINES are enough for a process that parses
SLOTS, LINES, FILES, TURNS, IDS = 26, 12_800, 15, 5, (1, 3)


class Spent(NamedTuple):
    """Seconds of each pass: on the clock, of this process's CPU time, and of that of processes that
    it started.
    """

    wall: list[float]
    cpu: list[float]
    children: list[float]


def write(path: Path, ids: int) -> None:
    """Lines of 13 decimal numbers, 26 slots of 1 to `ids` features, and a label."""
    draw = np.random.default_rng(0)
    with path.open("w") as file:
        for _ in range(LINES):
            dense = " ".join(f"{x:.4f}" for x in draw.random(_DENSE))
            counts = draw.integers(1, ids + 1, SLOTS)
            slots = " ".join(
                f"{n} {' '.join(map(str, draw.integers(0, _WORDS, n)))}" for n in counts
            )
            file.write(f"{_DENSE} {dense} {slots} 1 {draw.integers(0, 2)}\n")


def net() -> tuple[fluid.Program, fluid.Program, list[Any], Any]:
    """A click predictor: sums of embeddings, two layers; trained by sparse SGD."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        dense = fluid.data("dense", [None, _DENSE])
        slots = [fluid.data(f"slot{i}", [None, 1], "int64", lod_level=1) for i in range(SLOTS)]
        label = fluid.data("label", [None, 1], "int64")
        attr = fluid.ParamAttr("table")
        words = [
            fluid.layers.embedding(s, [_WORDS, 8], is_sparse=True, param_attr=attr) for s in slots
        ]
        x = fluid.layers.concat([dense, *(fluid.layers.sequence_pool(w, "sum") for w in words)], 1)
        for size in (128, 64):
            x = fluid.layers.fc(x, size, act="relu")
        loss = fluid.layers.mean(
            fluid.layers.cross_entropy(fluid.layers.fc(x, 2, act="softmax"), label)
        )
        fluid.optimizer.SGD(0.01).minimize(loss)
    return main, startup, [dense, *slots, label], loss


def compare(ids: int) -> dict[str, Spent]:
    """What passes cost from memory, from files that a process parses, and from files that a thread
    parses, in turns.
    """
    main, startup, fed, loss = net()
    exe = fluid.Executor(fluid.CPUPlace())
    with tempfile.TemporaryDirectory() as folder, fluid.scope_guard(fluid.Scope()):
        path = Path(folder, "part-0.txt")
        write(path, ids)
        exe.run(startup)
        made = fluid.DatasetFactory().create_dataset("QueueDataset")
        made.set_filelist([str(path)] * FILES)
        made.set_batch_size(_BATCH)
        made.set_use_var(fed)
        # those of sizes that have settled
        feeds = [feed for _ in range(2) for feed in made.feeds()][-FILES * LINES // _BATCH :]

        def from_memory() -> None:
            for feed in feeds:
                found = exe.run(main, feed, [loss], return_numpy=False)
            np.asarray(found[0])

        def parsed(cores: int) -> None:
            with mock.patch.object(parsers, "_cores", lambda: cores):
                exe.train_from_dataset(
                    main, made, fetch_list=[loss], fetch_info=["loss"], print_period=10**9
                )

        def by_process() -> None:
            parsed(3)

        def by_thread() -> None:
            parsed(2)

        ways = {"memory": from_memory, "process": by_process, "thread": by_thread}
        spent: dict[str, Spent] = {name: Spent([], [], []) for name in ways}
        for turn in range(TURNS + 1):
            for name, run in ways.items():
                before = time.perf_counter(), time.process_time(), _children()
                run()
                np.asarray(exe.run(main, feeds[0], [loss])[0])  # what was handed out is done
                after = time.perf_counter(), time.process_time(), _children()
                if turn:  # in the first one steps are compiled
                    for times, a, b in zip(spent[name], before, after, strict=True):
                        times.append(b - a)
        return spent


def _children() -> float:
    """CPU seconds of processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def table() -> list[Table]:
    """The part of the rate from memory that is kept, median and range of the turns, by each clock."""

    def rows() -> Iterator[list[str]]:
        for ids in IDS:
            spent = compare(ids)
            memory = spent.pop("memory")
            lines = "one id a slot" if ids == 1 else f"1 to {ids} ids a slot"
            yield [f"{lines}, from memory", _rate(memory), "", "", ""]
            for name, found in spent.items():
                both = [own + other for own, other in zip(found.cpu, found.children, strict=True)]
                kept = [
                    _kept(memory.wall, found.wall),
                    _kept(memory.cpu, found.cpu),
                    _kept(memory.cpu, both),
                ]
                yield [f"{lines}, from files, parsed in a {name}", _rate(found), *kept]

    title = (
        "Training from files of slots beside training on the same batches from memory"
        f" ({FILES * LINES:,} lines, {TURNS} turns)"
    )
    heads = [
        "",
        "lines a second",
        "kept of the rate by the clock",
        "by the training process's CPU time",
        "by that of all processes",
    ]
    return [shown("from files", title, heads, rows(), widths=[48, 16, 32, 36, 28])]


def _rate(spent: Spent) -> str:
    return f"{FILES * LINES / statistics.median(spent.wall):,.0f}"


def _kept(memory: list[float], files: list[float]) -> str:
    found = sorted(a / b for a, b in zip(memory, files, strict=True))
    return f"{statistics.median(found):.2f} ({found[0]:.2f} to {found[-1]:.2f})"


__all__ = ["table"]
