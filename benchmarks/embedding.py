"""A training step with an embedding: how its time grows with the height of the table, with sparse and dense gradients."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import jax
import numpy as np

import fluidjax as fluid
from fluidjax.dist.spmd.pserver import PserverJob, startup_on_mesh
from fluidjax.dist.spmd.runnable import Runnable
from fluidjax.runtime.placement import Mesh
from fluidjax.runtime.state_buffers import in_force

from .timing import seconds

HEIGHTS = (10_000, 100_000, 1_000_000)
WIDTH, BATCH, DEVICES = 32, 256, 4
OPTIMIZERS = {
    "SGD": lambda: fluid.optimizer.SGD(0.1),
    "Adagrad": lambda: fluid.optimizer.Adagrad(0.1),
    "Adam lazy": lambda: fluid.optimizer.Adam(0.1, lazy_mode=True),
}


class Training:
    """The mean square of what an fc makes of BATCH rows of a table [height, WIDTH]."""

    def __init__(self, optimizer: str, height: int, sparse: bool) -> None:
        self.main, startup = fluid.Program(), fluid.Program()
        with fluid.unique_name.guard(), fluid.program_guard(self.main, startup):
            ids = fluid.data("ids", [None, 1], "int64")
            rows = fluid.embedding(ids, [height, WIDTH], is_sparse=sparse, param_attr="table")
            hidden = fluid.layers.fc(rows, 16, num_flatten_dims=2)
            OPTIMIZERS[optimizer]().minimize(fluid.layers.mean(fluid.layers.square(hidden)))
        self.exe, self.scope = fluid.Executor(), fluid.Scope()
        self.exe.run(startup, scope=self.scope)
        rng = np.random.default_rng(0)
        self.feeds = [{"ids": rng.integers(0, height, (BATCH, 1))} for _ in range(8)]
        self.calls = 0

    def run(self) -> Any:
        """One step; returns the table, to wait for."""
        self.calls += 1
        self.exe.run(self.main, self.feeds[self.calls % 8], scope=self.scope, return_numpy=False)
        return self.scope.find_var("table").value

    def copies(self) -> int:
        """Copies of something as large as the table in the compiled step."""
        (compiled,) = self.exe.compiled_steps(self.main)
        with jax.enable_x64(True):
            lowered = compiled.function().lower(*compiled.bind(self.scope).arrays, self.feeds[0], 0, 0)
        text = lowered.compile().as_text()
        (height, width) = self.scope.find_var("table").value.shape
        return len(re.findall(rf"= f32\[{height},{width}\]\S* copy\(", text))


def measure(optimizer: str, height: int, sparse: bool) -> tuple[float, int]:
    """Median seconds a step, and the table-sized copies in it."""
    training = Training(optimizer, height, sparse)
    seconds(training.run, jax.block_until_ready, 5)
    calls = 200 if sparse else 10
    times = sorted(seconds(training.run, jax.block_until_ready, calls) for _ in range(7))
    return times[3], training.copies()


def table() -> None:
    """Milliseconds a step."""
    print(f"\nEmbedding [height, {WIDTH}], batch {BATCH}: ms a step (table-sized copies in the compiled step)")
    print(f"{'':<22}" + "".join(f"{h:>16,}" for h in HEIGHTS))
    for name in OPTIMIZERS:
        for sparse in (True, False):
            cells = (measure(name, h, sparse) for h in HEIGHTS)
            shown = "".join(f"{s * 1e3:>12.3f} ({n})" for s, n in cells)
            print(f"{name + (' sparse' if sparse else ' dense'):<22}{shown}", flush=True)
    call = f"import jax; jax.config.update('jax_num_cpu_devices', {DEVICES}); from benchmarks.embedding import on_mesh; on_mesh()"
    subprocess.run([sys.executable, "-c", call], check=True)


class MeshTraining:
    """A parameter-server job with a table, on a mesh: DEVICES trainers, each of which is a pserver too."""

    def __init__(self, optimizer: str, height: int, distributed: bool) -> None:
        main, startup = fluid.Program(), fluid.Program()
        with fluid.unique_name.guard(), fluid.program_guard(main, startup):
            ids = fluid.data("ids", [None, 1], "int64")
            given = {"is_sparse": True, "is_distributed": distributed, "param_attr": "table"}
            hidden = fluid.layers.fc(fluid.embedding(ids, [height, 16], **given), 16, num_flatten_dims=2)
            OPTIMIZERS[optimizer]().minimize(fluid.layers.mean(fluid.layers.square(hidden)))
        t = fluid.DistributeTranspiler()
        endpoints = ",".join(f"127.0.0.1:{6174 + k}" for k in range(DEVICES))
        t.transpile(0, program=main, startup_program=startup, pservers=endpoints, trainers=DEVICES)
        where = Mesh(tuple(jax.devices()[:DEVICES]))
        self.exe, self.scope = fluid.Executor(), fluid.Scope()
        first = fluid.Program.from_desc(t.plan.startup)
        first.update_info(pserver_plan=t.plan)
        self.exe.run(Runnable(first, startup_on_mesh(first, where)), scope=self.scope)
        self.main = Runnable(fluid.Program.from_desc(t.plan.main), PserverJob(where, t.plan))
        rng = np.random.default_rng(0)
        self.feeds = [{"ids": rng.integers(0, height, (BATCH, 1))} for _ in range(8)]
        self.calls = 0

    def run(self) -> Any:
        """One step; returns what it made, to wait for."""
        self.calls += 1
        self.exe.run(self.main, self.feeds[self.calls % 8], scope=self.scope, return_numpy=False)
        return in_force(self.scope)[0].arrays


def on_mesh() -> None:
    """Print the step times of tables of parameter-server jobs on a mesh, with as many ids in all."""
    heights = (*HEIGHTS, 10_000_000)
    print(f"\nA parameter-server job on {DEVICES} virtual CPU devices, embedding [height, 16], {BATCH} ids in all")
    print("ms a step, the best of 15 runs")
    print(f"{'':<22}" + "".join(f"{h:>16,}" for h in heights))
    kinds = {"SGD, is_sparse": ("SGD", False), "Adagrad, is_sparse": ("Adagrad", False), "SGD, is_distributed": ("SGD", True)}
    for shown, (optimizer, distributed) in kinds.items():
        print(f"{shown:<22}", end="", flush=True)
        for height in heights:
            training = MeshTraining(optimizer, height, distributed)
            seconds(training.run, jax.block_until_ready, 16)
            times = sorted(seconds(training.run, jax.block_until_ready, 16) for _ in range(15))
            print(f"{times[0] * 1e3:>16.3f}", end="", flush=True)
        print()
