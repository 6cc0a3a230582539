"""Parameter-server jobs on a mesh of their trainers: here of devices of one process, against
recorded jobs of 1.8.5.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import cli
from fluidjax.devices.placement import Mesh
from fluidjax.dist.spmd.parallel import Parallel
from fluidjax.dist.spmd.pserver import on_mesh
from fluidjax.runtime.runnable import Runnable
from tests.dist.jobs import feeds, final, initial, kept, local, recorded, transpiled

SYNC = [
    name
    for name, r in recorded().items()
    if r.get("losses") and r["losses"][0] and not name.startswith("async")
]


def mesh_job(job: dict[str, Any]) -> tuple[Runnable, fluid.Program, str]:
    main, startup, loss = local(job)
    first = startup.clone()
    t = transpiled(
        main, startup, job["n_trainers"], job["n_pservers"], job["sync_mode"], job["config"]
    )
    ranks = job["n_trainers"]
    parallel = Parallel(Mesh(tuple(jax.devices()[:ranks])), on_mesh(t.plan, ranks))
    return Runnable(fluid.Program.from_desc(t.plan.main), parallel), first, loss.name


@pytest.mark.slow
@pytest.mark.parametrize("name", SYNC)
def test_recorded_jobs(name: str) -> None:
    """Each trainer's loss in every step, and the parameters at the end."""
    record = recorded()[name]
    program, startup, loss = mesh_job(record["job"])
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    for parameter, value in initial(record["job"]).items():
        scope.var(parameter).set(value)
    losses = [
        exe.run(program, step, [loss], scope=scope)[0].ravel() for step in feeds(record["job"])
    ]
    np.testing.assert_allclose(np.array(losses).T, record["losses"], atol=1e-5, rtol=0)
    for parameter, value in final(name).items():
        np.testing.assert_allclose(
            kept(scope.get(parameter)), value, atol=1e-5, rtol=0, err_msg=parameter
        )


@pytest.mark.slow
@pytest.mark.parametrize(("form", "trainers", "pservers"), [
    ("fleet", 2, 2), ("pserver", 1, 1), pytest.param("fleet2", 2, 2, marks=pytest.mark.thorough),
])  # fmt: skip
@pytest.mark.usefixtures("forked")
def test_a_script_in_the_documents_form_runs_as_a_job(
    form: str, trainers: int, pservers: int, tmp_path: Path
) -> None:
    """By fleet (1.8's, Paddle 2's) against the recorded job of two trainers; by the transpiler for
    one against one process.
    """
    record = recorded()["mlp_adam"]
    steps = feeds(record["job"])
    given = {f"{n}_{t}": np.array([step[t][n] for step in steps]) for t in range(2) for n in "xy"}
    np.savez(tmp_path / "given.npz", **given, **initial(record["job"]))
    script = Path(__file__).with_name(f"{form}_script.py")
    words = ["--nproc", str(trainers), "--pservers", str(pservers)]
    if form == "fleet2":
        words = [
            "--workers",
            "127.0.0.1:6170,127.0.0.1:6171",
            "--servers=127.0.0.1:6172,127.0.0.1:6173",
            "--run_mode",
            "ps",
        ]
    assert cli.main(["launch", *words, str(script), str(tmp_path)]) == 0
    found = [dict(np.load(tmp_path / f"trainer_{t}.npz")) for t in range(trainers)]
    if trainers == 2:
        expected, losses = final("mlp_adam"), np.array(record["losses"])
    else:
        main, startup, loss = local(record["job"])
        exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
        exe.run(startup, scope=scope)
        for name, value in initial(record["job"]).items():
            scope.var(name).set(value)
        losses = np.array(
            [[exe.run(main, step[0], [loss], scope=scope)[0].item() for step in steps]]
        )
        expected = {p.name: scope.get(p.name) for p in main.all_parameters()}
    if form == "fleet":
        assert sum(
            "moment" in file.name for file in (tmp_path / "checkpoint").iterdir()
        ) == 2 * len(initial(record["job"]))
    for trainer, want in zip(found, losses, strict=True):
        np.testing.assert_allclose(trainer["losses"].ravel(), want, atol=1e-5, rtol=0)
        for name, value in expected.items():
            np.testing.assert_allclose(kept(trainer[name]), value, atol=1e-5, rtol=0, err_msg=name)
            np.testing.assert_array_equal(trainer[name], found[0][name])
    if form != "pserver":
        exe, scope = fluid.Executor(), fluid.Scope()
        with fluid.scope_guard(scope):
            fluid.io.load_inference_model(str(tmp_path / "model"), exe)
        for name in expected:
            np.testing.assert_array_equal(scope.get(name), found[0][name])


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_an_asynchronous_script_runs_as_a_job(tmp_path: Path) -> None:
    """Against the ranks of one process with the same seed: the same order of arrival, so the same
    losses and parameters.
    """
    job = dict(recorded()["mlp_adam"]["job"], sync_mode=False, config={"sync_mode": False})
    steps = feeds(job)
    given = {f"{n}_{t}": np.array([step[t][n] for step in steps]) for t in range(2) for n in "xy"}
    np.savez(tmp_path / "given.npz", **given, **initial(job))
    script = Path(__file__).with_name("pserver_script.py")
    assert (
        cli.main(["launch", "--nproc", "2", "--pservers", "2", str(script), str(tmp_path), "async"])
        == 0
    )
    program, startup, loss = mesh_job(job)
    program.program.random_seed = 4
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    for name, value in initial(job).items():
        scope.var(name).set(value)
    losses = np.array([exe.run(program, step, [loss], scope=scope)[0].ravel() for step in steps])
    for t in range(2):
        trainer = dict(np.load(tmp_path / f"trainer_{t}.npz"))
        np.testing.assert_allclose(trainer["losses"].ravel(), losses[:, t], atol=1e-6, rtol=0)
        for name in initial(job):
            np.testing.assert_allclose(
                trainer[name], scope.get(name), atol=1e-6, rtol=0, err_msg=name
            )
