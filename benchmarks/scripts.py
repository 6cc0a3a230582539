"""Whole training scripts, from the start of their process to step n: fluidjax, the same script
under Paddle 1.8.5, and flax.

Each is a process of its own (peers/script.py) with the cores that it may use; a second run finds
what the first one left in the compilation cache. Bytecode is kept, as users have it.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from . import beside
from .page import Table, shown

SCRIPT = Path(__file__).parent / "peers" / "script.py"
NETS = {
    "MLP": "MLP, batch 64", "LeNet": "LeNet, batch 64", "small ResNet": "ResNet-8, 32x32, batch 32",
    "text-CNN": "ragged text CNN, batch 32", "text-LSTM": "ragged LSTM, batch 32", "transformer": "transformer, 2 layers, batch 8",
}  # fmt: skip
LONG = ("small ResNet", "transformer")  # 1,000 steps of theirs take minutes
LAST = {"two cores": (1000, 300), "one core": (300, 100)}  # the last step, and that of LONG
MARKS = ("1", "10", "30", "100", "300", "1000")
TURNS = 3  # processes of each kind; the medians count
SECONDS = 90.0  # at the first of MARKS after so long a script ends
CORES = {"two cores": {0, 1}, "one core": {0}}
CPU = {"CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}


def run(
    side: str, net: str, cores: set[int], cache: str = "", last: int = 1000,
    device: Mapping[str, str] = CPU,
) -> Mapping[str, tuple[float, float]]:  # fmt: skip
    """Step -> CPU seconds of all threads, and seconds by the clock, since the process was started.
    cache: the folder; "": none. device: what the environment says of it.
    """
    environ = {n: v for n, v in os.environ.items() if n not in beside.UNUSUAL}
    environ |= {"GLOG_v": "0", "CPU_NUM": "1", "STARTED": repr(time.time())}
    environ |= (
        {"FLAGS_compilation_cache": "1", "FLAGS_compilation_cache_dir": cache}
        if cache
        else {"FLAGS_compilation_cache": "0"}
    )
    if side != "paddle":
        environ["PYTHONPATH"] = str(beside.ROOT)
    environ |= device
    command = [str(beside.PYTHONS[side]), str(SCRIPT), side, net, str(last), str(SECONDS)]
    made = subprocess.run(
        command,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    found = [json.loads(line) for line in made.stdout.splitlines() if line.startswith("{")]
    return {str(row["step"]): (row["cpu"], row["wall"]) for row in found}


def row_of(name: str, kind: str, runs: list[Mapping[str, tuple[float, float]]]) -> list[str]:
    cells = []
    for mark in MARKS:
        times = [r[mark] for r in runs if mark in r]
        cpu, wall = (
            (statistics.median(t[i] for t in times) for i in (0, 1)) if times else (0.0, 0.0)
        )
        cells.append(f"{cpu:.1f} ({wall:.1f})" if times else "-")
    return [name, kind, *cells]


def table() -> list[Table]:
    """A table for two cores, one for one."""
    found, versions = [], beside.there(("fluidjax", "paddle", "flax"))
    for word, cores in CORES.items():
        rows, (last, last_of_long) = [], LAST[word]
        for net, name in NETS.items():
            steps = last_of_long if net in LONG else last
            with tempfile.TemporaryDirectory() as folder:
                for side in versions:
                    if side == "flax" and net.startswith("text"):
                        continue  # it has the dense nets alone
                    rows.append(
                        row_of(
                            name, side, [run(side, net, cores, last=steps) for _ in range(TURNS)]
                        )
                    )
                _, *again = [
                    run("fluidjax", net, cores, folder, last=steps) for _ in range(1 + TURNS)
                ]
                rows.append(row_of(name, "fluidjax, second run", again))
        title = (
            f"Whole scripts on {word}: CPU seconds of all threads, in brackets by the clock, from"
            " the start of the process to step n"
        )
        heads, widths = ["net", "side", *MARKS], [34, 22] + [16] * len(MARKS)
        found.append(shown(f"scripts on {word}", title, heads, rows, versions.values(), widths))
    return found
