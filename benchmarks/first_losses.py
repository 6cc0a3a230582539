"""``python -m benchmarks.first_losses FILE.npz ...``: from a recorded model to its first losses,
each in a fresh process.

A file holds the programs of a training step as Paddle wrote them (`startup`, `main_0`, ...), what
is fed (`feed_0:NAME`, `lod_0:NAME`) and, as JSON in `meta`, the order of its runs with what each
fetches. FLAGS_compilation_cache=1 in the environment measures with what earlier processes compiled.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


def main(arguments: list[str]) -> None:
    os.environ.setdefault("FLAGS_compilation_cache", "0")
    if arguments[:1] == ["_one"]:
        return one(Path(arguments[1]))
    print(
        f"{'model':<30}{'ops':>6}{'first loss s':>14}{'CPU s':>8}  trace, lower, compile s of each"
        " step",
        flush=True,
    )
    for path in arguments:
        subprocess.run([sys.executable, "-m", "benchmarks.first_losses", "_one", path], check=False)
    return None


def one(path: Path) -> None:
    """Print a line of this process's. The seconds are those after the imports."""
    import fluidjax as fluid

    with np.load(path) as file:
        data = {name: file[name] for name in file.files}
    runs = json.loads(str(data["meta"]))["runs"]
    began = time.perf_counter(), time.process_time()
    startup = fluid.Program.parse_from_string(data["startup"].tobytes())
    mains = [fluid.Program.parse_from_string(data[f"main_{run['main']}"].tobytes()) for run in runs]
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    for main, run in zip(mains, runs, strict=True):
        fetched = exe.run(
            main,
            feed=_feed(data, run["main"]),
            fetch_list=run["fetch"],
            scope=scope,
            return_numpy=False,
        )
        _ = [np.array(value) for value in fetched]
    wall, cpu = time.perf_counter() - began[0], time.process_time() - began[1]
    made = [c for main in mains for c in exe.compilations(main)]
    how = "; ".join(f"{c.trace:.2f}, {c.lower:.2f}, {c.compile:.2f}" for c in made)
    print(
        f"{path.stem:<30}{sum(len(m.global_block().ops) for m in mains):>6}{wall:>14.2f}{cpu:>8.2f}"
        f"  {how}",
        flush=True,
    )


def _feed(data: dict[str, Any], number: int) -> dict[str, Any]:
    import fluidjax as fluid

    prefix, feed = f"feed_{number}:", dict[str, Any]()
    for key in [k for k in data if k.startswith(prefix)]:
        value, lod = data[key], data.get(key.replace("feed_", "lod_", 1))
        ragged = (
            None
            if lod is None
            else fluid.create_lod_tensor(value, json.loads(str(lod)), fluid.CPUPlace())
        )
        feed[key.removeprefix(prefix)] = value if ragged is None else ragged
    return feed


if __name__ == "__main__":
    main(sys.argv[1:])
