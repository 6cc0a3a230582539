"""A run that stops and goes on from a checkpoint is, bit for bit, the run that never stopped."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.checkpoint.record import lines
from fluidjax.errors import FluidTypeError, FluidValueError

from .model import Job, build, values

ROOT = Path(__file__).parents[2]


def elsewhere(folder: Path, until: int, seed: int = 5, *more: str) -> dict[str, Any]:
    """What another process makes of it, which goes on from the latest checkpoint."""
    command = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "tests.checkpoint.model",
        str(folder),
        str(until),
        str(seed),
        *more,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.first(1)
@pytest.mark.parametrize(("seed", "optimizer"), [(5, "adam"), (0, "optax")])
def test_a_new_process_goes_on_bit_for_bit(tmp_path: Path, seed: int, optimizer: str) -> None:
    if optimizer == "optax":
        pytest.importorskip("optax")
    whole = Job(seed=seed, optax=optimizer == "optax")
    whole.train(10, str(tmp_path), save_at=[5])  # the second half runs while the files are written
    fluid.io.wait_checkpoint(tmp_path)
    rest = elsewhere(tmp_path, 10, seed, optimizer)
    assert len(whole.losses) == 10 and len(set(whole.losses)) == 10
    assert rest["losses"] == whole.losses[5:]
    assert rest["state"] == whole.state()


def test_what_later_steps_do_is_not_in_the_checkpoint(tmp_path: Path) -> None:
    job = Job()
    job.train(3)
    there = job.state()
    job.save(str(tmp_path), 3)
    job.train(9)
    assert job.state() != there
    job.load(str(tmp_path))
    assert job.state() == there


def test_restoring_in_the_same_process_repeats_the_steps(tmp_path: Path) -> None:
    job = Job()
    job.train(14, str(tmp_path), save_at=[4, 8], asynchronous=False)
    told = job.load(str(tmp_path), step=4)
    assert (told.step, told.position) == (4, fluid.io.Position(0, 4))
    again, job.losses = job.losses, []
    job.train(14)
    assert job.losses == again[4:]


def test_the_random_state_is_what_makes_it_so(tmp_path: Path) -> None:
    job = Job()
    job.train(6, str(tmp_path), save_at=[3])
    job.load(str(tmp_path))
    seed, runs = job.exe.random_state(job.main)
    job.exe.set_random_state(job.main, seed, runs + 1)
    again, job.losses = job.losses, []
    job.train(6)
    assert job.losses != again[3:]


def test_packed_and_single_arrays(tmp_path: Path) -> None:
    job = Job(width=2000)  # the weights are larger than what travels packed
    job.train(2)
    kinds = {
        type(job.scope.find_var(n).storage.read()).__module__.split(".")[0]
        for n in values(job.main, job.scope)
    }
    assert kinds == {"numpy", "jaxlib"}
    there = job.state()
    job.save(str(tmp_path))
    job.train(4)
    job.load(str(tmp_path))
    assert job.state() == there


def test_steps_names_and_how_many_stay(tmp_path: Path) -> None:
    job = Job()
    assert fluid.io.get_latest_checkpoint_serial(tmp_path / "none") == -1
    assert not (tmp_path / "none").exists()
    assert [job.save(str(tmp_path)) for _ in range(3)] == [0, 1, 2]
    assert job.save(str(tmp_path), 7) == 7
    with fluid.io.Checkpoint(tmp_path) as folder:
        fluid.io.wait_checkpoint(tmp_path)
        assert folder.steps() == [1, 2, 7]
    job.save(str(tmp_path), max_num_checkpoints=2, asynchronous=False)
    assert fluid.io.get_latest_checkpoint_serial(tmp_path) == 8
    assert fluid.io.Checkpoint(tmp_path).steps() == [7, 8]
    with pytest.raises(
        FluidValueError, match="holds a checkpoint of step 8, and step 8 is not after it"
    ):
        job.save(str(tmp_path), 8)
    fluid.io.clean_checkpoint(tmp_path, after=7)
    assert job.save(str(tmp_path), 8, asynchronous=False) == 8
    fluid.io.clean_checkpoint(tmp_path, delete_dir=True)
    assert not tmp_path.exists()


def test_trainer_args_come_back(tmp_path: Path) -> None:
    job = Job()
    args = {"epoch": 3, "best": 0.25, "names": ["a", None, True], "é": {}}
    job.save(str(tmp_path), trainer_args=args)
    assert job.load(str(tmp_path)).trainer_args == args
    for bad in ({"x": float("nan")}, {"x": np.float32(1)}, {"x": (1,)}, {1: 2}):
        with pytest.raises(FluidTypeError, match="trainer_args"):
            job.save(str(tmp_path), trainer_args=bad)


def test_odd_names_values_and_lods(tmp_path: Path) -> None:
    program, scope = fluid.Program(), fluid.Scope()
    given = {
        "a/../b@GRAD": np.arange(3),
        "nothing": np.zeros((0, 4), "float32"),
        "scalar": np.array(2.5),
        "flags": np.array([True, False]),
        "with.dots": np.arange(4, dtype="float16"),
        "ünï": np.array([[7]], "int32"),
    }
    with fluid.program_guard(program):
        for name, value in given.items():
            program.global_block().create_var(
                name=name, shape=value.shape, dtype=str(value.dtype), persistable=True
            )
            scope.var(name).get_tensor().set(value)
    scope.find_var("a/../b@GRAD").get_tensor().set_lod([[0, 1, 3]])
    exe, other = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    fluid.io.save_checkpoint(exe, tmp_path, program, scope=scope)
    fluid.io.load_checkpoint(exe, tmp_path, program, scope=other)
    for name, value in given.items():
        found = other.find_var(name).value
        assert (
            found.dtype == value.dtype
            and found.shape == value.shape
            and np.array_equal(found, value)
        )
    assert other.find_var("a/../b@GRAD").get_tensor().lod() == [[0, 1, 3]]


def test_jobs_of_another_size_have_the_same_checkpoints(tmp_path: Path) -> None:
    """The trainer program stands for the program before transpile, with its optimizer state."""

    def trainer(trainers: int, pservers: str) -> Any:
        main, startup, _ = build(seed=0)
        job = fluid.DistributeTranspiler()
        job.transpile(
            0, program=main, pservers=pservers, trainers=trainers, startup_program=startup
        )
        return job.get_trainer_program(wait_port=False)

    run = Job(seed=0)
    run.train(1)
    two, three = trainer(2, "127.0.0.1:6174"), trainer(3, "127.0.0.1:6174,127.0.0.2:6174")
    assert lines(two.desc) != lines(three.desc) != lines(run.main.desc)
    fluid.io.save_checkpoint(run.exe, tmp_path, two, scope=run.scope)
    there = fluid.Scope()
    fluid.io.load_checkpoint(run.exe, tmp_path, three, scope=there)
    assert "fc_0.w_0_moment1_0" in there.local_var_names()
    assert all(np.array_equal(there.get(n), v) for n, v in values(run.main, run.scope).items())
    # so does the program itself
    fluid.io.load_checkpoint(run.exe, tmp_path, run.main, scope=run.scope)
