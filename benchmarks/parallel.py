"""Data parallel steps on virtual CPU devices, against a hand-written jax.shard_map step of the same
model.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec

import fluidjax as fluid
from fluidjax.devices.placement import IN_FLIGHT
from fluidjax.devices.placement import Mesh as RankMesh
from fluidjax.dist.spmd.pserver import PserverJob
from fluidjax.runtime.runnable import Runnable

from . import flax_models
from .cases import CASES, Case, Ours
from .page import Table, shown
from .timing import interleaved

DEVICES = (2, 4, 8)
CHOSEN = (0, 1, 3, 4)  # ResNet-18 takes seconds a step where two cores act as eight devices


class OursParallel(Ours):
    """A case through with_data_parallel, or with its optimizer's state sharded."""

    def __init__(self, case: Case, devices: int, sharded: bool = False) -> None:
        super().__init__(case)
        strategy = fluid.BuildStrategy()
        if sharded:
            strategy.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
        places = [fluid.CPUPlace()] * devices
        self.program = fluid.CompiledProgram(self.main).with_data_parallel(
            self.loss.name, strategy, places=places
        )

    def run(self) -> Any:
        return self.exe.run(
            self.program,
            feed=self.feed,
            fetch_list=[self.loss],
            scope=self.scope,
            return_numpy=False,
        )[0]


class OursPservers(Ours):
    """A case as a parameter-server job on a mesh: as many trainers as pservers, and every rank is
    one of each.
    """

    def __init__(self, case: Case, ranks: int) -> None:
        super().__init__(case)
        t = fluid.DistributeTranspiler()
        endpoints = ",".join(f"127.0.0.1:{6174 + i}" for i in range(ranks))
        with fluid.program_guard(self.main.clone(), fluid.Program()):
            t.transpile(0, pservers=endpoints, trainers=ranks)
        job = PserverJob(RankMesh(tuple(jax.devices()[:ranks])), t.plan)
        self.program = Runnable(fluid.Program.from_desc(t.plan.main), job)

    def run(self) -> Any:
        return self.exe.run(
            self.program,
            feed=self.feed,
            fetch_list=[self.loss],
            scope=self.scope,
            return_numpy=False,
        )[0]


def hand_written(case: Case, devices: int) -> Callable[[], Any]:
    """The step of a case, spread by jax.shard_map: each device takes its part of the batch,
    gradients are averaged.
    """
    mesh = Mesh(np.array(jax.devices()[:devices]), ("d",))
    feed = case.feed()
    state, step = flax_models.step(case.model(), case.optimizers()[1], feed, "d")
    replicated, split = PartitionSpec(), PartitionSpec("d")
    spread = jax.shard_map(
        step,
        mesh=mesh,
        in_specs=(replicated, split),
        out_specs=(replicated, split),
        check_vma=False,
    )
    jitted = jax.jit(spread, donate_argnums=0)
    held = [jax.device_put(state, jax.sharding.NamedSharding(mesh, replicated))]

    def run() -> Any:
        held[0], loss = jitted(held[0], feed)
        return loss

    return run


KINDS: dict[str, Callable[[Case, int], Ours]] = {
    "": OursParallel,
    ", sharded": lambda case, devices: OursParallel(case, devices, sharded=True),
    ", pservers": OursPservers,
}


def measure(devices: int) -> None:
    """Print a line of JSON for each row of one number of devices; in a process of its own, since
    JAX fixes the number at its start.
    """
    jax.config.update("jax_num_cpu_devices", devices)
    for case in (CASES[i] for i in CHOSEN):
        for kind, make in KINDS.items():
            ours = make(case, devices)
            t = interleaved(
                ours.run,
                hand_written(case, devices),
                jax.block_until_ready,
                turns=11,
                budget=8.0,
                most=IN_FLIGHT,
            )
            print(json.dumps([case.name + kind, f"{t.ratio:.3f} ({t.ours * 1e3:.3f})"]), flush=True)


def table() -> list[Table]:
    """The ratios on 2, 4 and 8 devices."""
    cells: dict[str, list[str]] = {}
    for devices in DEVICES:
        print(f"  on {devices} virtual devices", flush=True)
        out = subprocess.run(
            [sys.executable, "-m", "benchmarks", "_parallel", str(devices)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, cell in map(json.loads, out.stdout.splitlines()):
            cells.setdefault(name, []).append(cell)
    title = (
        "A data parallel step, state whole, sharded or on pservers, over a hand-written shard_map,"
        " replicated; in brackets our ms"
    )
    heads = ["model", *(f"{devices} devices" for devices in DEVICES)]
    return [
        shown(
            "parallel",
            title,
            heads,
            ([name, *row] for name, row in cells.items()),
            widths=[56, 18, 18, 18],
        )
    ]
