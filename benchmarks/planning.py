"""Planned steps against measured ones on 1, 2, 4 and 8 virtual CPU devices.

The devices share the machine's cores, so a step takes their work over the cores, and what is compared is work: CPU seconds of the
process, which other processes on the machine do not add to. They do slow it down, so all sides take many short turns in one process.
Told to the plan are the CPU seconds of a step on one device, of a sum over all devices for the speed of the links, of a matrix product
for a core's operations, and of an update for its memory; everything else is predicted.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import fluidjax as fluid
from fluidjax.planning import Device, Link, Links
from fluidjax.planning.links import wire_bytes

from .cases import CASES, Case, Ours
from .page import Table, shown
from .parallel import OursParallel, OursPservers

DEVICES = (1, 2, 4, 8)
CHOSEN = (0, 1, 2, 3, 4)
TURNS = 15
BUDGET = 20.0  # of CPU seconds that all turns of a comparison take about
SECONDS = 0.1  # of CPU time that a turn of one side takes about
# The C library gives a step's temporaries back after each step and asks the kernel for their pages anew, at a price that differs from
# process to process by a third; and so does the speed of memory in small pages. So memory is kept, in large pages.
STEADY = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=4000000000:glibc.malloc.trim_threshold=16000000000"}
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
    """The median CPU seconds of each side. Steps of seconds, which vary less, have fewer turns."""
    for run in sides.values():
        cpu_seconds(run, 1)
    once = {k: cpu_seconds(run, 1) for k, run in sides.items()}
    calls = {k: max(1, min(200, int(SECONDS / max(taken, 1e-6)))) for k, taken in once.items()}
    turns = max(2, min(TURNS, int(BUDGET / sum(max(SECONDS, taken) for taken in once.values()))))
    found: dict[Any, list[float]] = {k: [] for k in sides}
    for turn in range(turns):
        order = list(sides) if turn % 2 else list(sides)[::-1]
        for k in order:
            found[k].append(cpu_seconds(sides[k], calls[k]))
    return {k: statistics.median(v) for k, v in found.items()}


def core() -> Device:
    """What a core does in a second: operations of a matrix product, and bytes that an update reads and writes."""
    n, size = 512, 4_000_000
    product = jax.jit(jnp.matmul)
    update = jax.jit(lambda p, m, g: (p - 0.1 * (0.9 * m + g), 0.9 * m + g), donate_argnums=(0, 1))
    square, held = jnp.ones((n, n), np.float32), [jnp.ones(size, np.float32) for _ in range(3)]

    def updated() -> Any:
        held[:2] = update(*held)
        return held[0]

    taken = in_turns({"flops": lambda: product(square, square), "bytes": updated})
    return Device("core", {"float32": 2 * n**3 / taken["flops"]}, 1e12, 5 * 4 * size / taken["bytes"])


def link() -> Link:
    """What a device passes on in a second of a core's time: a sum of 4 MB over all devices."""
    many, size = max(DEVICES), 1_000_000
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:many]), ("d",))
    spec = jax.sharding.PartitionSpec
    total = jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, "d"), mesh=mesh, in_specs=spec("d"), out_specs=spec(), check_vma=False))
    data = jax.device_put(np.ones((many, size), np.float32), jax.sharding.NamedSharding(mesh, spec("d")))
    taken = in_turns({0: lambda: jax.block_until_ready(total(data))})[0]
    return Link(many * wire_bytes("all-reduce", 4 * size, many) / taken)


def measure(index: int) -> None:
    """Print the rows of one case, as JSON; in a process of its own, since JAX fixes the number of devices at its start."""
    jax.config.update("jax_num_cpu_devices", max(DEVICES))
    case = CASES[index]
    given: dict[str, Any] = {"device": core(), "links": Links("memory", link()), "cores": _cores()}
    batch = len(next(iter(case.feed().values())))
    for kind, make in KINDS.items():
        _compare(case, kind, kind, {n: _side(case, make, n, n) for n in DEVICES}, {batch: 1}, batch_per_device=batch, **given)
    sides = {n: _side(case, OursParallel, n, 1) for n in DEVICES} | {0: _side(case, OursParallel, 1, 1 / max(DEVICES))}
    told = {batch: 1, batch // max(DEVICES): 0}
    _compare(case, "data parallel", "data parallel, one batch", sides, told, batch=batch, **given)


def _side(case: Case, make: Callable[[Case, int], Ours], devices: int, times: float) -> Ours:
    """A case on so many devices, fed so many times its batch."""
    side = Ours(case) if devices == 1 else make(case, devices)
    rows = {n: int(len(v) * times) for n, v in side.feed.items()}
    side.feed = {n: np.concatenate([v] * max(1, int(times)))[: rows[n]] for n, v in side.feed.items()}
    return side


def _compare(case: Case, strategy: str, title: str, sides: dict[int, Ours], told: Mapping[int, int], **given: Any) -> None:
    """Print a row: milliseconds on each number of devices as measured, and planned over measured.

    told: samples -> the side of one device that says how long they take.
    """
    taken = in_turns({n: s.run for n, s in sides.items()})
    one, measured = sides[1], {samples: taken[n] for samples, n in told.items()}
    rows = fluid.plan(one.main, DEVICES, strategies=strategy, fetch_list=[one.loss], measured=measured, **given).rows
    ratios = [(row.seconds or 0.0) * _cores() / taken[row.devices] for row in rows]
    cells = [f"{taken[n] / _cores() * 1e3:.2f}" for n in DEVICES] + [f"{ratio:.2f}" for ratio in ratios]
    print(json.dumps([case.name, title, *cells]), flush=True)


def _cores() -> int:
    return os.cpu_count() or 1


def _rows() -> Iterator[list[str]]:
    for index in CHOSEN:
        command = [sys.executable, "-m", "benchmarks", "_planning", str(index)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **STEADY}) as found:
            assert found.stdout is not None
            yield from map(json.loads, found.stdout)
        if found.returncode:
            raise subprocess.CalledProcessError(found.returncode, command)


def table() -> list[Table]:
    """Milliseconds of a step as measured, and planned over measured; the case's batch on each device, or on all together ("one batch")."""
    heads = ["model", "strategy", *(f"ms on {n}" for n in DEVICES), *(f"planned / measured on {n}" for n in DEVICES)]
    title = "Planned steps on virtual devices: CPU time of a step over the cores, which the plan is told on 1 device (medians of turns)"
    return [shown("planned steps", title, heads, _rows(), widths=[44, 26, 10, 10, 10, 10, 24, 24, 24, 24])]
