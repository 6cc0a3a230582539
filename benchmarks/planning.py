"""Planned steps against measured ones on 1, 2, 4 and 8 virtual CPU devices.

The devices share the machine's cores, so a step takes their work over the cores, and what is compared is work: CPU seconds of the
process, which other processes on the machine do not add to. All sides take turns in one process. Told to the plan are the CPU seconds
of a step on one device, and of a sum over two devices for the speed of the links; everything else is predicted.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

import fluidjax as fluid
from fluidjax.planning import Link, Links
from fluidjax.planning.links import wire_bytes

from .cases import CASES, Case, Ours
from .parallel import OursParallel, OursPservers

DEVICES = (1, 2, 4, 8)
CHOSEN = (0, 1, 2, 3, 4)
TURNS = 7
SECONDS = 0.25  # of CPU time that a turn of one side takes about
KINDS: dict[str, Callable[[Case, int], Ours]] = {
    "data parallel": OursParallel,
    "pieces": lambda case, devices: OursParallel(case, devices, sharded=True),
    "pservers": OursPservers,
}


def cpu_seconds(run: Callable[[], Any], calls: int) -> float:
    """Of one call, the last of which is waited for."""
    start = time.process_time()
    last = None
    for _ in range(calls):
        last = run()
    jax.block_until_ready(last)
    return (time.process_time() - start) / calls


def in_turns(sides: Mapping[Any, Callable[[], Any]]) -> dict[Any, float]:
    """The median CPU seconds of each side."""
    for run in sides.values():
        cpu_seconds(run, 2)
    calls = {k: max(1, min(200, int(SECONDS / max(cpu_seconds(run, 1), 1e-6)))) for k, run in sides.items()}
    found: dict[Any, list[float]] = {k: [] for k in sides}
    for turn in range(TURNS):
        order = list(sides) if turn % 2 else list(sides)[::-1]
        for k in order:
            found[k].append(cpu_seconds(sides[k], calls[k]))
    return {k: statistics.median(v) for k, v in found.items()}


def link() -> Link:
    """What a device passes on in a second of a core's time: a sum of 16 MB over two devices."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("d",))
    spec = jax.sharding.PartitionSpec
    total = jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, "d"), mesh=mesh, in_specs=spec("d"), out_specs=spec(), check_vma=False))
    data = jax.device_put(np.ones((2, 4_000_000), np.float32), jax.sharding.NamedSharding(mesh, spec("d")))
    taken = in_turns({0: lambda: total(data)})[0]
    return Link(2 * wire_bytes("all-reduce", 16e6, 2) / taken)


def measure(index: int) -> None:
    """Print the rows of one case; in a process of its own, since JAX fixes the number of devices at its start."""
    jax.config.update("jax_num_cpu_devices", max(DEVICES))
    case, links = CASES[index], Links("memory", link())
    batch = len(next(iter(case.feed().values())))
    for kind, make in KINDS.items():
        sides = {n: _side(case, make, n, n) for n in DEVICES}
        _compare(case, kind, kind, sides, {batch: 1}, links, batch_per_device=batch)
    sides = {n: _side(case, OursParallel, n, 1) for n in DEVICES} | {0: _side(case, OursParallel, 1, 1 / max(DEVICES))}
    _compare(case, "data parallel", "one batch", sides, {batch: 1, batch // max(DEVICES): 0}, links, batch=batch)


def _side(case: Case, make: Callable[[Case, int], Ours], devices: int, times: float) -> Ours:
    """A case on so many devices, fed so many times its batch."""
    side = Ours(case) if devices == 1 else make(case, devices)
    rows = {n: int(len(v) * times) for n, v in side.feed.items()}
    side.feed = {n: np.concatenate([v] * max(1, int(times)))[: rows[n]] for n, v in side.feed.items()}
    return side


def _compare(
    case: Case, strategy: str, title: str, sides: Mapping[int, Ours], told: Mapping[int, int], links: Links, **batch: int
) -> None:
    """Print a row for each number of devices. told: samples -> the side of one device that says how long they take."""
    taken = in_turns({n: s.run for n, s in sides.items()})
    given: dict[str, Any] = {"links": links, "measured": {b: taken[n] for b, n in told.items()}, "cores": _cores(), **batch}
    one = sides[1]
    for row in fluid.plan(one.main, DEVICES, strategies=strategy, fetch_list=[one.loss], **given).rows:
        assert row.seconds is not None
        measured = taken[row.devices] / _cores()
        times = f"{measured * 1e3:>12.2f}{row.seconds * 1e3:>12.2f}{row.seconds / measured:>8.2f}"
        print(f"{case.name:<44}{title:<15}{row.devices:>3}{times}", flush=True)


def _cores() -> int:
    return os.cpu_count() or 1


def table() -> None:
    """Measured and planned milliseconds of a step: the case's batch on each device, and ("one batch") on all together."""
    print("\nPlanned steps on virtual devices: CPU ms of a step over the cores, measured and planned (medians of turns)")
    print(f"{'model':<44}{'strategy':<15}{'n':>3}{'measured':>12}{'planned':>12}{'ratio':>8}", flush=True)
    for index in CHOSEN:
        command = [sys.executable, "-m", "benchmarks", "_planning", str(index)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as found:
            assert found.stdout is not None
            for line in found.stdout:
                print(line, end="", flush=True)
        if found.returncode:
            raise subprocess.CalledProcessError(found.returncode, command)
