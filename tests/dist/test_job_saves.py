"""What a parameter-server job saves and loads: the files of Paddle 1.8.5, and a resumed job equals
an uninterrupted one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.dist.jobs.children import free_ports
from fluidjax.errors import JobError, LoadError
from fluidjax.saved import jobs
from tests import forked

SCRIPT = Path(__file__).with_name("saving_script.py")
PARAMS = (
    "batch_norm_0.b_0",
    "batch_norm_0.w_0",
    "fc_0.b_0",
    "fc_0.w_0",
    "fc_1.b_0",
    "fc_1.w_0",
    "fc_1.w_1",
    "table",
)
STATES = ("beta1_pow_acc_0", "beta2_pow_acc_0", "moment1_0", "moment2_0")
# What two trainers of Paddle 1.8.5 wrote for this script: trainer 1 what its program keeps, trainer
# 0 all.
OF_ONE = {"@LR_DECAY_COUNTER@", "batch_norm_0.w_1", "batch_norm_0.w_2", *PARAMS} - {"table"}
OF_ZERO = OF_ONE | {"table"} | {f"{p}_{s}" for p in PARAMS for s in STATES}


def job(trainers: list[str], pservers: list[str]) -> None:
    """A job of two trainers and two pservers with these words, to its end."""
    listed = [f"127.0.0.1:{port}" for port in free_ports(2)]
    roles = [["trainer", "--id", str(k), *trainers] for k in range(2)] + [
        ["pserver", "--current", e, *pservers] for e in listed
    ]
    env = {k: v for k, v in os.environ.items() if "PADDLE" not in k} | {"JAX_PLATFORMS": "cpu"}
    command = [
        sys.executable,
        "-m",
        "fluidjax",
        "run",
        str(SCRIPT),
        "--endpoints",
        ",".join(listed),
        "--role",
    ]
    pipe: dict[str, Any] = {"text": True, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    running = [forked.Popen([*command, *words], env=env, **pipe) for words in roles]
    try:
        results = [(p.communicate(timeout=120)[0], p.returncode) for p in running]
    finally:
        for p in running:
            p.kill()
    assert [code for _, code in results] == [0] * 4, results


@pytest.mark.slow
def test_a_resumed_job_equals_an_uninterrupted_one(tmp_path: Path) -> None:
    """Bit for bit, with the optimizer's state, a schedule, a parameter in two blocks and a sparse
    table; resumed by the pservers, as in 1.8.5, and by the trainers themselves."""
    whole, half, again, here = (str(tmp_path / name) for name in ("whole", "half", "again", "here"))
    job(["--last", "4", "--save", whole], [])
    job(["--last", "2", "--save", half], [])
    assert [{p.name for p in Path(f"{half}{k}").iterdir()} for k in range(2)] == [OF_ZERO, OF_ONE]
    job(["--first", "2", "--last", "4", "--save", again], ["--load", f"{half}0"])
    job(["--first", "2", "--last", "4", "--save", here, "--load_here", f"{half}0"], [])
    for name in OF_ZERO:
        saved = Path(f"{whole}0", name).read_bytes()
        assert (
            Path(f"{again}0", name).read_bytes() == Path(f"{here}0", name).read_bytes() == saved
        ), name
        assert name in OF_ONE or not Path(f"{whole}1", name).exists()
    changed = [
        n for n in OF_ZERO if Path(f"{half}0", n).read_bytes() != Path(f"{whole}0", n).read_bytes()
    ]
    assert len(changed) == len(OF_ZERO)


# -- in one process --------------------------------------------------------------------------------

EPS = "127.0.0.1:6174,127.0.0.1:6175"


def planned() -> Any:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 120]), 150))
        fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    t = fluid.DistributeTranspiler()
    t.transpile(0, program=main, startup_program=startup, pservers=EPS, trainers=2)
    return t


def folder(path: Path, plan: Any, value: float, but: str = "") -> Path:
    """A folder as trainer 0 saves it, in which everything is this value."""
    arrays = {n: np.full(v.shape, value, "float32") for n, v in jobs.on_servers(plan).items()}
    arrays |= {p.name: np.full(p.shape, value, "float32") for p in plan.params}
    program, scope = fluid.Program(), fluid.Scope()
    for name, array in arrays.items():
        if name != but:
            program.global_block().create_var(
                name=name, shape=array.shape, dtype="float32", persistable=True
            )
            scope.var(name).set(array)
    with fluid.scope_guard(scope):
        fluid.io.save_persistables(fluid.Executor(), str(path), program)
    return path


def test_each_pserver_loads_what_it_owns(tmp_path: Path) -> None:
    """From folders of their own, where they wish: a block from each."""
    t = planned()
    loaded = {}
    for k, endpoint in enumerate(EPS.split(",")):
        program = t.get_pserver_program(endpoint)
        fluid.io.load_persistables(
            fluid.Executor(), str(folder(tmp_path / str(k), t.plan, k + 1.0)), program
        )
        loaded[k] = program.info.loaded_from
    scope = fluid.Scope()
    for name, var in {**t.plan.main.blocks[0].vars}.items():
        if var.persistable:
            scope.var(name).set(np.zeros(var.shape, "float32"))
    jobs.take_loaded(t.plan, loaded, scope)
    (cut,) = (p for p in t.plan.params if len(p.blocks) == 2)
    for name in (cut.name, f"{cut.name}_velocity_0"):
        got = scope.get(name)
        for block in cut.blocks:
            assert (got[block.rows] == EPS.split(",").index(block.endpoint) + 1).all()
    (whole,) = (p for p in t.plan.params if len(p.blocks) == 1)
    assert (
        set(scope.get(whole.name))
        == set(scope.get(f"{whole.name}_velocity_0"))
        == {EPS.split(",").index(whole.blocks[0].endpoint) + 1}
    )


def test_a_folder_that_lacks_a_state(tmp_path: Path) -> None:
    """As trainers of an older job saved them, parameters alone."""
    t = planned()
    program = t.get_pserver_program(EPS.split(",")[0])
    path = folder(tmp_path / "params", t.plan, 1.0, but="fc_0.w_0_velocity_0")
    with pytest.raises(LoadError, match=r"fc_0\.w_0_velocity_0"):
        fluid.io.load_persistables(fluid.Executor(), str(path), program)
    assert program.info.loaded_from == ("", "")


def test_a_folder_that_a_trainer_cannot_read(tmp_path: Path) -> None:
    t = planned()
    text = (
        r"pserver 1 has loaded '/nowhere', which this trainer cannot read \(.*the folder has to be"
        r" there for them too"
    )
    with pytest.raises(JobError, match=text):
        jobs.take_loaded(t.plan, {1: ("/nowhere", "")}, fluid.Scope())


def test_a_number_that_is_there_for_each_block(tmp_path: Path) -> None:
    """So 1.8.5 saves the power of beta of a parameter in two blocks: the shape is [1], and the
    number stands there twice.
    """
    program, scope = fluid.Program(), fluid.Scope()
    program.global_block().create_var(name="power", shape=[1], dtype="float32", persistable=True)
    scope.var("power").set(np.float32([0.59]))
    path = tmp_path / "power"
    with fluid.scope_guard(scope):
        fluid.io.save_persistables(fluid.Executor(), str(tmp_path), program)
        number = np.float32([0.59]).tobytes()
        path.write_bytes(path.read_bytes() + number)
        scope.var("power").set(np.float32([0.0]))
        fluid.io.load_persistables(fluid.Executor(), str(tmp_path), program)
        assert scope.get("power") == np.float32(0.59)
        path.write_bytes(path.read_bytes() + np.float32([0.6]).tobytes())
        with pytest.raises(fluid.errors.ParseError, match="8 bytes follow the tensor"):
            fluid.io.load_persistables(fluid.Executor(), str(tmp_path), program)
