"""Training over files of slots beside training on the same batches from memory: how much of its rate is kept."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import fluidjax as fluid

_SLOTS, _DENSE, _BATCH, _LINES, _WORDS = 26, 13, 128, 12_800, 10_000


def write(path: Path, ids: int) -> None:
    """Lines of 13 decimal numbers, 26 slots of 1 to `ids` features, and a label."""
    draw = np.random.default_rng(0)
    with path.open("w") as file:
        for _ in range(_LINES):
            dense = " ".join(f"{x:.4f}" for x in draw.random(_DENSE))
            counts = draw.integers(1, ids + 1, _SLOTS)
            slots = " ".join(f"{n} {' '.join(map(str, draw.integers(0, _WORDS, n)))}" for n in counts)
            file.write(f"{_DENSE} {dense} {slots} 1 {draw.integers(0, 2)}\n")


def net() -> tuple[fluid.Program, fluid.Program, list[Any], Any]:
    """A click predictor: sums of embeddings, two layers; trained by sparse SGD."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        dense = fluid.data("dense", [None, _DENSE])
        slots = [fluid.data(f"slot{i}", [None, 1], "int64", lod_level=1) for i in range(_SLOTS)]
        label = fluid.data("label", [None, 1], "int64")
        attr = fluid.ParamAttr("table")
        words = [fluid.layers.embedding(s, [_WORDS, 8], is_sparse=True, param_attr=attr) for s in slots]
        x = fluid.layers.concat([dense, *(fluid.layers.sequence_pool(w, "sum") for w in words)], 1)
        for size in (128, 64):
            x = fluid.layers.fc(x, size, act="relu")
        loss = fluid.layers.mean(fluid.layers.cross_entropy(fluid.layers.fc(x, 2, act="softmax"), label))
        fluid.optimizer.SGD(0.01).minimize(loss)
    return main, startup, [dense, *slots, label], loss


def compare(ids: int, rounds: int = 5) -> dict[str, float]:
    """Seconds of wall and CPU time for a pass from files (read anew), from memory by train_from_dataset, and by run alone."""
    main, startup, fed, loss = net()
    exe = fluid.Executor(fluid.CPUPlace())
    with tempfile.TemporaryDirectory() as folder, fluid.scope_guard(fluid.Scope()):
        path = Path(folder, "part-0.txt")
        write(path, ids)
        exe.run(startup)
        made = fluid.DatasetFactory().create_dataset("QueueDataset")
        made.set_filelist([str(path)])
        made.set_batch_size(_BATCH)
        made.set_use_var(fed)
        feeds = list(made.feeds())

        def from_files() -> None:
            exe.train_from_dataset(main, made, fetch_list=[loss], fetch_info=["loss"], print_period=10**9)

        def by_run() -> None:
            for feed in feeds:
                found = exe.run(main, feed, [loss], return_numpy=False)
            np.asarray(found[0])

        found: dict[str, list[float]] = {}
        for turn in range(rounds + 2):
            for name, run in (("files", from_files), ("memory", by_run)):
                wall, cpu = time.perf_counter(), time.process_time()
                run()
                np.asarray(exe.run(main, feeds[0], [loss])[0])  # what was handed out is done
                if turn >= 2:  # compiled, and in the optimised tier
                    found.setdefault(f"{name} wall", []).append(time.perf_counter() - wall)
                    found.setdefault(f"{name} cpu", []).append(time.process_time() - cpu)
        return {name: statistics.median(values) for name, values in found.items()}


def main() -> None:
    """Print the table."""
    for ids in (1, 3):
        found = compare(ids)
        rates = {kind: _LINES / found[f"files {kind}"] for kind in ("wall", "cpu")}
        kept = {kind: found[f"memory {kind}"] / found[f"files {kind}"] for kind in ("wall", "cpu")}
        told = f"{kept['wall']:.2f} by wall time, {kept['cpu']:.2f} by CPU time"
        print(f"1 to {ids} ids a slot: {rates['wall']:,.0f} lines a second from files; of the rate from memory {told}")


if __name__ == "__main__":
    main()
