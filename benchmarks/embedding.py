"""A training step with an embedding: how its time grows with the height of the table, with sparse
and dense gradients.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

import fluidjax as fluid
from fluidjax.devices.placement import Mesh
from fluidjax.dist.spmd.pserver import PserverJob, startup_on_mesh
from fluidjax.runtime.runnable import Runnable
from fluidjax.state.buffers import in_force

from .page import Table, shown
from .timing import seconds

HEIGHTS = (10_000, 100_000, 1_000_000)
MESH_HEIGHTS = (*HEIGHTS, 10_000_000)
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
            lowered = compiled.function().lower(
                *compiled.bind(self.scope).arrays, self.feeds[0], 0, 0
            )
        text = lowered.compile().as_text()
        height, width = self.scope.find_var("table").value.shape
        return len(re.findall(rf"= f32\[{height},{width}\]\S* copy\(", text))


def measure(optimizer: str, height: int, sparse: bool) -> tuple[float, int]:
    """Median seconds a step, and the table-sized copies in it."""
    training = Training(optimizer, height, sparse)
    seconds(training.run, jax.block_until_ready, 5)
    calls = 200 if sparse else 10
    times = sorted(seconds(training.run, jax.block_until_ready, calls) for _ in range(7))
    return times[3], training.copies()


def table() -> list[Table]:
    """Milliseconds a step, on one device and of a parameter-server job on a mesh."""

    def rows() -> Iterator[list[str]]:
        for name in OPTIMIZERS:
            for sparse in (True, False):
                cells = (measure(name, h, sparse) for h in HEIGHTS)
                yield [
                    name + (" sparse" if sparse else " dense"),
                    *(f"{s * 1e3:.3f} ({n})" for s, n in cells),
                ]

    title = (
        f"Embedding [height, {WIDTH}], batch {BATCH}: ms a step by height (table-sized copies in"
        " the compiled step)"
    )
    alone = shown("embedding", title, ["optimizer", *(f"{h:,}" for h in HEIGHTS)], rows())
    call = (
        f"import jax; jax.config.update('jax_num_cpu_devices', {DEVICES}); from"
        " benchmarks.embedding import on_mesh; on_mesh()"
    )
    out = subprocess.run(
        [sys.executable, "-c", call], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    job = (
        f"A parameter-server job on {DEVICES} virtual CPU devices, embedding [height, 16], {BATCH}"
        " ids in all"
    )
    title = f"{job}: ms a step by height, the best of 15 runs"
    return [
        alone,
        shown(
            "embedding on a mesh",
            title,
            ["optimizer", *(f"{h:,}" for h in MESH_HEIGHTS)],
            map(json.loads, out.splitlines()),
        ),
    ]


class MeshTraining:
    """A parameter-server job with a table, on a mesh: DEVICES trainers, each of which is a pserver
    too.
    """

    def __init__(self, optimizer: str, height: int, distributed: bool) -> None:
        main, startup = fluid.Program(), fluid.Program()
        with fluid.unique_name.guard(), fluid.program_guard(main, startup):
            ids = fluid.data("ids", [None, 1], "int64")
            given = {"is_sparse": True, "is_distributed": distributed, "param_attr": "table"}
            hidden = fluid.layers.fc(
                fluid.embedding(ids, [height, 16], **given), 16, num_flatten_dims=2
            )
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
    """Print a line of JSON for each kind of table: the step times of parameter-server jobs on a
    mesh, with as many ids in all.
    """
    kinds = {
        "SGD, is_sparse": ("SGD", False),
        "Adagrad, is_sparse": ("Adagrad", False),
        "SGD, is_distributed": ("SGD", True),
    }
    for name, (optimizer, distributed) in kinds.items():
        cells = [name]
        for height in MESH_HEIGHTS:
            training = MeshTraining(optimizer, height, distributed)
            seconds(training.run, jax.block_until_ready, 16)
            times = sorted(seconds(training.run, jax.block_until_ready, 16) for _ in range(15))
            cells.append(f"{times[0] * 1e3:.3f}")
        print(json.dumps(cells), flush=True)
