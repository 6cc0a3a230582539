"""The recorded pserver jobs of Paddle 1.8.5 (real processes over localhost): programs, losses,
final parameters.

Data and first values are drawn here as they were for the recordings: NumPy's RandomState repeats
itself everywhere.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.dist import LocalJob
from tests.golden import desc_from_golden
from tests.nets import build_forward, fresh, resolve

DATA = Path(__file__).parents[1] / "data" / "jobs"
EVERY = 8  # of large parameters, the recordings keep each eighth row


@cache
def recorded() -> dict[str, Any]:
    """Name -> {job, losses, local_concat_batch_losses, trainer_exit, programs, ...}."""
    return json.loads(gzip.decompress((DATA / "recorded.json.gz").read_bytes()))


def final(name: str) -> dict[str, np.ndarray]:
    """Parameters of trainer 0 at the end of a recorded job."""
    with np.load(DATA / "final.npz") as file:
        return {
            key.partition(":")[2]: file[key] for key in file.files if key.startswith(f"{name}:")
        }


def kept(value: np.ndarray) -> np.ndarray:
    """What the recordings keep of a parameter."""
    return value[::EVERY] if value.size > 2000 else value


def feeds(job: Mapping[str, Any]) -> list[list[dict[str, np.ndarray]]]:
    """[step][trainer] -> feed."""
    kind, batch, steps = job["datakind"], job["batch"], job["steps"]
    drawn = []
    for t in range(job["n_trainers"]):
        r = np.random.RandomState(100 + t)
        if kind == "fit":
            x = r.uniform(-1, 1, (steps, batch, 13)).astype("float32")
            y = (x.dot(np.linspace(-1, 1, 13).astype("float32"))[..., None] + 0.5).astype("float32")
        elif kind == "emb":
            x = r.randint(0, 50, (steps, batch, 1)).astype("int64")
            y = (x % 4).astype("int64")
        else:
            x = r.uniform(-1, 1, (steps, batch, {"mlp": 8, "mlp128": 128}[kind])).astype("float32")
            y = (
                ((x[..., :2] > 0).astype("int64") * np.array([1, 2]))
                .sum(-1)[..., None]
                .astype("int64")
            )
        drawn.append((x, y))
    return [[{"x": x[s], "y": y[s]} for x, y in drawn] for s in range(steps)]


def initial(job: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """First values of the parameters, by name."""
    main, _, _ = local(job)
    r = np.random.RandomState(7)
    return {
        p.name: (r.uniform(-0.5, 0.5, p.shape) / max(1.0, np.sqrt(p.shape[0]) / 3)).astype(
            "float32"
        )
        for p in main.global_block().all_parameters()
    }


def local(job: Mapping[str, Any]) -> tuple[fluid.Program, fluid.Program, Any]:
    """The program of a job before it is transpiled: main, startup, loss."""
    with fresh() as (main, startup):
        loss, env = build_forward(dict(job))
        if job.get("clip"):
            with pytest.warns(UserWarning, match="set_gradient_clip"):
                fluid.clip.set_gradient_clip(resolve(job["clip"], env))
        resolve(job["optimizer"], env).minimize(loss)
    return main, startup, loss


def local_losses(job: Mapping[str, Any]) -> tuple[list[float], fluid.Scope]:
    """Losses and final scope of one process that trains on the trainers' batches, one after
    another.
    """
    main, startup, loss = local(job)
    scope, exe = fluid.Scope(), fluid.Executor(fluid.CPUPlace())
    exe.run(startup, scope=scope)
    for name, value in initial(job).items():
        scope.var(name).set(value)
    losses = []
    for step in feeds(job):
        feed = {n: np.concatenate([f[n] for f in step]) for n in ("x", "y")}
        losses.append(float(exe.run(main, feed, [loss], scope=scope)[0]))
    return losses, scope


def program(recording: Mapping[str, Any]) -> fluid.Program:
    return fluid.Program.from_desc(desc_from_golden(recording))


def job_of(name: str, **options: Any) -> LocalJob:
    """The job of the programs that Paddle 1.8.5 made."""
    made = recorded()[name]["programs"]
    trainers = [(program(t["main"]), program(t["startup"])) for t in made["trainers"]]
    pservers = {
        ep: (program(p["main"]), program(p["startup"])) for ep, p in made["pservers"].items()
    }
    return LocalJob(trainers, pservers, **options)


def transpiled(
    main: fluid.Program,
    startup: fluid.Program,
    trainers: int = 2,
    pservers: int = 2,
    sync_mode: bool = True,
    config: Mapping[str, Any] | None = None,
) -> fluid.DistributeTranspiler:
    """The transpiler after transpile, for trainer 0."""
    settings = fluid.DistributeTranspilerConfig()
    for name, value in (config or {}).items():
        setattr(settings, name, value)
    t = fluid.DistributeTranspiler(config=settings)
    endpoints = ",".join(f"127.0.0.1:{6174 + i}" for i in range(pservers))
    t.transpile(
        0,
        program=main,
        startup_program=startup,
        pservers=endpoints,
        trainers=trainers,
        sync_mode=sync_mode,
    )
    return t


def our_job(name: str, **options: Any) -> LocalJob:
    """The started job of the programs that fluid.DistributeTranspiler makes."""
    job = recorded()[name]["job"]
    main, startup, _ = local(job)
    t = transpiled(
        main, startup, job["n_trainers"], job["n_pservers"], job["sync_mode"], job["config"]
    )
    made = LocalJob.of(t, **options)
    made.start(initial(job))
    return made


def losses_of(job: LocalJob, record: Mapping[str, Any], loss: str = "mean_0.tmp_0") -> np.ndarray:
    """[trainer, step]: run a job to its end."""
    return np.array(
        [[float(fetched[0]) for fetched in job.step(step, [loss])] for step in feeds(record["job"])]
    ).T


@cache
def unusual() -> dict[str, Any]:
    """Programs of Paddle 1.8.5 for jobs that were not run: name -> {case, config, programs}; two
    trainers, two pservers.
    """
    return json.loads(gzip.decompress((DATA / "more.json.gz").read_bytes()))


LINE = {"datakind": "fit", "batch": 8, "steps": 8, "n_trainers": 2}


def line(name: str, **options: Any) -> tuple[LocalJob, dict[str, np.ndarray]]:
    """A started job that fits a line, and the first values of w and b."""
    made = unusual()[name]["programs"]
    trainers = [(program(t["main"]), program(t["startup"])) for t in made["trainers"]]
    job = LocalJob(
        trainers,
        {ep: (program(p["main"]), program(p["startup"])) for ep, p in made["pservers"].items()},
        **options,
    )
    first = {
        "fc_0.w_0": np.linspace(-0.3, 0.3, 13, dtype="float32")[:, None],
        "fc_0.b_0": np.full(1, 0.1, "float32"),
    }
    job.start(first)
    return job, first


def line_grads(
    feed: Mapping[str, np.ndarray], values: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Gradients of mean((x w + b - y)^2)."""
    off = feed["x"] @ values["fc_0.w_0"] + values["fc_0.b_0"] - feed["y"]
    return {"fc_0.w_0": 2 * feed["x"].T @ off / len(off), "fc_0.b_0": 2 * off.mean(0)}
