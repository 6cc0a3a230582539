"""A training step with an embedding: how its time grows with the height of the table, with sparse and dense gradients."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import fluidjax as fluid
from fluidjax.dist.sharded_table import Split, lookup, make, update
from fluidjax.ops.selected import SelectedRows

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
        (compiled,) = self.exe._compiled[self.main].values()
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
    print(f"\nThe same table over {DEVICES} virtual CPU devices, Adagrad: ms a step")
    call = f"import jax; jax.config.update('jax_num_cpu_devices', {DEVICES}); from benchmarks.embedding import sharded; sharded()"
    subprocess.run([sys.executable, "-c", call], check=True)


def sharded() -> None:
    """Print the step times of a table over a mesh, with as many ids in all."""
    mesh = Mesh(np.array(jax.devices()[:DEVICES]), ("x",))
    for height in HEIGHTS:
        with jax.enable_x64(True):
            run = _on_mesh(mesh, Split(height, DEVICES, dealt=True))
            seconds(run, jax.block_until_ready, 5)
            times = sorted(seconds(run, jax.block_until_ready, 16) for _ in range(9))
        print(f"{height:>12,}{times[4] * 1e3:>12.3f}", flush=True)


def _on_mesh(mesh: Mesh, split: Split) -> Callable[[], Any]:
    rate = np.full(1, 0.1, np.float32)

    def body(shard: Any, moment: Any, ids: Any) -> Any:
        rows = lookup(shard, ids, split, "x")
        slots = {"Param": shard, "Moment": moment, "LearningRate": rate}
        new = update("adagrad", slots, {}, SelectedRows(ids, rows, split.height), split, "x")
        return new["ParamOut"], new["MomentOut"]

    over = PartitionSpec("x")
    step = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=(over,) * 3, out_specs=(over, over)), donate_argnums=(0, 1))
    rng = np.random.default_rng(0)
    held = [make(split, mesh, "x", WIDTH, "float32", lambda rows: np.ones((len(rows), WIDTH), "float32")) for _ in range(2)]
    ids = jax.device_put(rng.integers(0, split.height, BATCH), NamedSharding(mesh, over))

    def run() -> Any:
        held[:] = step(*held, ids)
        return held[0]

    return run
