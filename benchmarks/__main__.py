"""``python -m benchmarks [steady] [overhead] [traced] [building] [startup] [first] [fusing]
[passes] [memory] [parallel] [planning] [embedding] [transpile] [beside] [convolutions]
[step_convolutions] [kernels] [decoding] [loops] [ragged] [ops] [searched] [from_files] [scripts]
[serving] [prediction] [checkpoints] [saving]``: print these figures, or all.

With ``--page`` they are put into docs/benchmarks.json and docs/benchmarks.md too (`make bench` does
so). ``--short``: in less than a minute, whether the benchmarks run, without figures to keep.
"""

from __future__ import annotations

import gc
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable

import jax

from . import (
    beside,
    budget,
    building,
    checkpoints,
    convolutions,
    decoding,
    embedding,
    from_files,
    fusing,
    kernels,
    loops,
    memory,
    ops,
    overhead,
    parallel,
    passes,
    planning,
    ragged,
    saving,
    scripts,
    searched,
    serving,
    short,
    startup,
    traced,
    transpile,
)
from .cases import CASES, Case, Ours, Theirs
from .page import Table, keep, measured, shown
from .timing import interleaved


def steady() -> list[Table]:
    """Training step through Executor.run against the hand-written one; compiled flops and bytes."""

    def row(case: Case) -> list[str]:
        ours, theirs = Ours(case), Theirs(case)
        t = interleaved(ours.run, theirs.run, jax.block_until_ready, budget=20.0)
        a, b = ours.cost(), theirs.cost()
        cells = [
            t.ours * 1e3,
            t.theirs * 1e3,
            t.ratio,
            *(a[k] / b[k] for k in ("flops", "bytes accessed")),
        ]
        del ours, theirs
        gc.collect()
        return [case.name, *(f"{cell:.3f}" for cell in cells)]

    title = (
        "Training step: Executor.run(return_numpy=False) / hand-written flax + optax (medians of"
        " interleaved turns)"
    )
    heads = ["model", "ours, ms", "hand-written, ms", "ratio", "flops", "bytes accessed"]
    return [shown("a step", title, heads, map(row, CASES), widths=[46, 10, 18, 8, 8, 16])]


def first() -> list[Table]:
    """Trace + compile + first run, each in a fresh process, alternating."""

    def row(numbered: tuple[int, Case]) -> list[str]:
        times: dict[str, list[float]] = {"ours": [], "theirs": []}
        for _ in range(3):
            for side in times:
                command = [sys.executable, "-m", "benchmarks", "_first", side, str(numbered[0])]
                out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                times[side].append(float(out.split()[-1]))
        a, b = (sorted(v)[1] for v in times.values())
        return [numbered[1].name, f"{a:.2f}", f"{b:.2f}", f"{a / b:.3f}"]

    title = "First step (trace + compile + run), fresh processes in turn"
    heads = ["model", "ours, s", "hand-written, s", "ratio"]
    return [shown("first steps", title, heads, map(row, enumerate(CASES)), widths=[46, 10, 18, 8])]


def one_first(side: str, index: int) -> None:
    """Print the seconds that one side's first step takes in this process."""
    runner = (Ours if side == "ours" else Theirs)(CASES[index])
    start = time.perf_counter()
    jax.block_until_ready(runner.run())
    print(time.perf_counter() - start)


PARTS: dict[str, Callable[[], list[Table] | None]] = {
    "steady": steady, "overhead": overhead.table, "traced": traced.table,
    "building": building.table, "startup": startup.table, "first": first,
    "fusing": fusing.table, "passes": passes.table, "memory": memory.table,
    "parallel": parallel.table, "planning": planning.table, "embedding": embedding.table, "transpile": transpile.table,
    "beside": beside.table, "convolutions": convolutions.table,
    "step_convolutions": convolutions.net_table, "kernels": kernels.table, "decoding": decoding.table,
    "loops": loops.table, "ragged": ragged.table, "ops": ops.table, "budget": budget.table, "searched": searched.table,
    "from_files": from_files.table, "scripts": scripts.table, "serving": serving.table, "prediction": beside.predicting,
    "checkpoints": checkpoints.table, "saving": saving.table,
}  # fmt: skip


def main(arguments: list[str]) -> None:
    # first steps are to be first, in other processes too
    os.environ.setdefault("FLAGS_compilation_cache", "0")
    if arguments[:1] == ["_first"]:
        return one_first(arguments[1], int(arguments[2]))
    if arguments[:1] == ["_parallel"]:
        return parallel.measure(int(arguments[1]))
    if arguments[:1] == ["_planning"]:
        return planning.measure(int(arguments[1]))
    to_page, brief = "--page" in arguments, "--short" in arguments
    wanted = [a for a in arguments if a not in ("--page", "--short")]
    unknown = [a for a in wanted if a not in PARTS]
    if unknown:
        sys.exit(
            f"unknown part {unknown[0]!r}; there are {', '.join(PARTS)}, and --page and --short"
        )
    print(
        f"Python {platform.python_version()}, jax {jax.__version__}, {jax.devices()[0].device_kind}"
        f" x{jax.device_count()}"
    )
    if brief:
        return short.table()
    for name in wanted or PARTS:
        found = measured(name, PARTS[name])
        if to_page:
            keep(found)
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
