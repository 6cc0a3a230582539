"""Planned steps against measured ones on 1, 2, 4 and 8 virtual CPU devices.

The devices share the machine's cores, so a step takes their work over the cores, and what is
compared is work: CPU seconds of the process, which other processes on the machine do not add to.
They do slow it down, so all sides take many short turns in one process. Told to the plan are the
CPU seconds of a step on one device while every core has such a step to do, of a sum over all
devices for the speed of the links, of a matrix product for a core's operations, and of an update
for its memory; everything else is predicted.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding

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
# The C library gives a step's temporaries back after each step and asks the kernel for their pages
# anew, at a price that differs from process to process by a third; and so does the speed of memory
# in small pages. So memory is kept, in large pages, and in the one arena that may be larger than 64
# MB.
STEADY = {
    "GLIBC_TUNABLES": (
        "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=4000000000:glibc.malloc.trim_threshold=16000000000"
        ":glibc.malloc.arena_max=1"
    )
}
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
    """What a core does in a second: operations of a matrix product, and bytes that an update reads
    and writes.
    """
    n, size = 512, 4_000_000
    product = jax.jit(jnp.matmul)
    update = jax.jit(lambda p, m, g: (p - 0.1 * (0.9 * m + g), 0.9 * m + g), donate_argnums=(0, 1))
    square, held = jnp.ones((n, n), np.float32), [jnp.ones(size, np.float32) for _ in range(3)]

    def updated() -> Any:
        held[:2] = update(*held)
        return held[0]

    taken = in_turns({"flops": lambda: product(square, square), "bytes": updated})
    return Device(
        "core", {"float32": 2 * n**3 / taken["flops"]}, 1e12, 5 * 4 * size / taken["bytes"]
    )


def link() -> Link:
    """What a device passes on in a second of a core's time: what the update of a layer of 4 MB
    takes longer that sums its gradient.

    A sum alone, of values that lie ready and that nobody uses, finds them in caches and takes less.
    """
    many, side, rows = max(DEVICES), 1000, 128
    mesh, spec = (
        jax.sharding.Mesh(np.array(jax.devices()[:many]), ("d",)),
        jax.sharding.PartitionSpec(),
    )
    filled = jax.device_put(
        [np.full(shape, 1e-3, np.float32) for shape in [(rows, side)] + 4 * [(side, side)]],
        NamedSharding(mesh, spec),
    )

    def updating(summed: bool, held: list[Any]) -> Callable[[], Any]:
        def update(x: Any, w: Any, m: Any) -> tuple[Any, Any]:
            gradient = x.T @ (x @ w)
            m = 0.9 * m + (jax.lax.psum(gradient, "d") if summed else gradient)
            return w - 1e-3 * m, m

        jitted = jax.jit(
            jax.shard_map(update, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False),
            donate_argnums=(1, 2),
        )

        def run() -> Any:
            held[:] = jax.block_until_ready(jitted(filled[0], *held))
            return held[0]

        return run

    taken = in_turns({True: updating(True, filled[1:3]), False: updating(False, filled[3:5])})
    return Link(many * wire_bytes("all-reduce", 4 * side**2, many) / (taken[True] - taken[False]))


@dataclass(frozen=True)
class OnDevice(fluid.CPUPlace):
    """One of the virtual devices."""

    index: int

    def device(self) -> Any:
        return jax.devices("cpu")[self.index]


class Everywhere:
    """A case on one device, on as many at the same time as there are cores, so that no core helps
    or waits for another.

    It is there as often as the most devices would have it: by where in memory its arrays happen to
    lie, a step of a millisecond takes up to 1.4 times as long, and a mesh has some of each kind.
    """

    def __init__(self, case: Case, times: float) -> None:
        self.sides = [_fed(Ours(case), times) for _ in range(max(DEVICES))]
        for i, side in enumerate(self.sides):
            side.exe = fluid.Executor(OnDevice(i % _cores()))

    def run(self) -> Any:
        return [side.run() for side in self.sides]


def measure(index: int) -> None:
    """Print the rows of one case, as JSON; in a process of its own, since JAX fixes the number of
    devices at its start.
    """
    jax.config.update("jax_num_cpu_devices", max(DEVICES))
    case = CASES[index]
    given: dict[str, Any] = {"device": core(), "links": Links("memory", link()), "cores": _cores()}
    batch = len(next(iter(case.feed().values())))
    for kind, make in KINDS.items():
        _compare(
            case,
            kind,
            kind,
            {n: _side(case, make, n, n) for n in DEVICES},
            [1],
            batch_per_device=batch,
            **given,
        )
    sides = {n: _side(case, OursParallel, n, 1) for n in DEVICES}
    _compare(
        case,
        "data parallel",
        "data parallel, one batch",
        sides,
        [1, 1 / max(DEVICES)],
        batch=batch,
        **given,
    )


def _side(case: Case, make: Callable[[Case, int], Ours], devices: int, times: float) -> Ours:
    """A case on so many devices, fed so many times its batch."""
    return _fed(Ours(case) if devices == 1 else make(case, devices), times)


def _fed(side: Ours, times: float) -> Ours:
    """It, fed so many times its batch."""
    rows = {n: int(len(v) * times) for n, v in side.feed.items()}
    side.feed = {
        n: np.concatenate([v] * max(1, int(times)))[: rows[n]] for n, v in side.feed.items()
    }
    return side


def _compare(
    case: Case,
    strategy: str,
    title: str,
    sides: dict[int, Ours],
    parts: Sequence[float],
    **given: Any,
) -> None:
    """Print a row: milliseconds on each number of devices as measured, and planned over measured.

    parts: of the case's batch, whose times on one device the plan gets.
    """
    on_one = {
        len(next(iter(side.sides[0].feed.values()))): side
        for side in (Everywhere(case, part) for part in parts)
    }
    taken = in_turns(
        {n: s.run for n, s in sides.items()}
        | {("on_one", samples): side.run for samples, side in on_one.items()}
    )
    one, measured = (
        sides[1],
        {samples: taken["on_one", samples] / len(side.sides) for samples, side in on_one.items()},
    )
    rows = fluid.plan(
        one.main, DEVICES, strategies=strategy, fetch_list=[one.loss], measured=measured, **given
    ).rows
    ratios = [(row.seconds or 0.0) * _cores() / taken[row.devices] for row in rows]
    cells = [f"{taken[n] / _cores() * 1e3:.2f}" for n in DEVICES] + [
        f"{ratio:.2f}" for ratio in ratios
    ]
    print(json.dumps([case.name, title, *cells]), flush=True)


def _cores() -> int:
    return os.cpu_count() or 1


def _rows() -> Iterator[list[str]]:
    for index in CHOSEN:
        command = [sys.executable, "-m", "benchmarks", "_planning", str(index)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, **STEADY}
        ) as found:
            assert found.stdout is not None
            yield from map(json.loads, found.stdout)
        if found.returncode:
            raise subprocess.CalledProcessError(found.returncode, command)


def table() -> list[Table]:
    """Milliseconds of a step as measured, and planned over measured; the case's batch on each
    device, or on all together ("one batch").
    """
    heads = [
        "model",
        "strategy",
        *(f"ms on {n}" for n in DEVICES),
        *(f"planned / measured on {n}" for n in DEVICES),
    ]
    title = (
        "Planned steps on virtual devices: CPU time of a step over the cores, which the plan is"
        " told on 1 device (medians of turns)"
    )
    return [
        shown(
            "planned steps", title, heads, _rows(), widths=[44, 26, 10, 10, 10, 10, 24, 24, 24, 24]
        )
    ]
