"""Parameter-server jobs on a mesh of their trainers: here of devices of one process, against recorded jobs of 1.8.5."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.dist.parallel import Parallel
from fluidjax.dist.pserver_mesh import on_mesh
from fluidjax.errors import UnsupportedError
from fluidjax.ranks import Mesh
from tests.dist.jobs import feeds, final, initial, kept, local, recorded, transpiled

SYNC = [name for name, r in recorded().items() if r.get("losses") and r["losses"][0] and not name.startswith("async")]


class OnMesh:
    """A program as Executor.run takes it: with the ranks that it runs on."""

    def __init__(self, program: fluid.Program, parallel: Parallel) -> None:
        self._program, self._parallel = program, parallel


def mesh_job(job: dict[str, Any]) -> tuple[OnMesh, fluid.Program, str]:
    main, startup, loss = local(job)
    program, first = main.clone(), startup.clone()
    t = transpiled(main, startup, job["n_trainers"], job["n_pservers"], job["sync_mode"], job["config"])
    ranks = job["n_trainers"]
    parallel = Parallel(Mesh(tuple(jax.devices()[:ranks])), on_mesh(t.plan, ranks))
    return OnMesh(program, parallel), first, loss.name


@pytest.mark.parametrize("name", SYNC)
def test_recorded_jobs(name: str) -> None:
    """Each trainer's loss in every step, and the parameters at the end."""
    record = recorded()[name]
    program, startup, loss = mesh_job(record["job"])
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    for parameter, value in initial(record["job"]).items():
        scope.var(parameter).set(value)
    losses = [exe.run(program, step, [loss], scope=scope)[0].ravel() for step in feeds(record["job"])]
    np.testing.assert_allclose(np.array(losses).T, record["losses"], atol=1e-5, rtol=0)
    for parameter, value in final(name).items():
        np.testing.assert_allclose(kept(scope.get(parameter)), value, atol=1e-5, rtol=0, err_msg=parameter)


def test_what_a_mesh_does_not_run() -> None:
    job = dict(recorded()["mlp_sgd"]["job"], sync_mode=False, config={"sync_mode": False})
    with pytest.raises(UnsupportedError, match="in sync mode, not in async"):
        mesh_job(job)
