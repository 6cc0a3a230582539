"""AutoCheckpoint: by steps, by time, and on SIGTERM; what goes on from it ends with the same
bits.
"""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import cli
from fluidjax.checkpoint import auto as module
from fluidjax.checkpoint import folder, snapshot
from tests import forked

from .model import Job, feed_of

ROOT = Path(__file__).parents[2]
SCRIPT = str(ROOT / "tests" / "checkpoint" / "auto_job.py")
FOREVER = "1000000"


def auto_of(run: Job, folder: Path, **options: Any) -> fluid.io.AutoCheckpoint:
    return fluid.io.AutoCheckpoint(
        run.exe, folder, run.runs, reader=run.reader, scope=run.scope, **options
    )


def train(run: Job, auto: fluid.io.AutoCheckpoint, until: int) -> list[int]:
    """The steps after which it saved."""
    saved = []
    while auto.steps < until:
        for batch in run.reader():
            run.exe.run(run.runs, feed=feed_of(batch), fetch_list=[run.loss], scope=run.scope)
            if auto.step({"at": auto.steps + 1}):
                saved.append(auto.steps)
            if auto.steps == until:
                break
    return saved


def test_by_steps_and_on_with_the_same_bits(tmp_path: Path) -> None:
    whole = Job()
    whole.train(11)
    first = Job()
    with auto_of(first, tmp_path, every_steps=4) as auto:
        assert auto.resume() == 0
        assert train(first, auto, 9) == [4, 8]
    second = Job()
    with auto_of(second, tmp_path, every_steps=4) as auto:
        assert auto.resume() == auto.steps == 8
        train(second, auto, 11)
    assert second.state() == whole.state()
    assert fluid.io.load_checkpoint(second.exe, tmp_path, second.main).trainer_args == {"at": 8}


def test_by_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten seconds a step."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    run = Job()
    with auto_of(run, tmp_path, every_seconds=35.0) as auto:
        saved = []
        for step in range(1, 11):
            clock.now += 10.0
            saved += [step] if auto.step() else []
    assert saved == [4, 8]


@pytest.mark.parametrize(
    ("seconds", "stay"), [(None, [5, 6]), (3600.0, [1, 5, 6]), (1e-3, [1, 2, 3, 4, 5, 6])]
)
def test_what_stays(seconds: float | None, stay: list[int], tmp_path: Path) -> None:
    """The last two, and of those before the ones that are far enough apart."""
    run = Job()
    with auto_of(run, tmp_path, every_steps=1, keep=2, keep_seconds=seconds) as auto:
        for _ in range(6):
            auto.step()
            auto.wait()
    assert fluid.io.Checkpoint(tmp_path).steps() == stay


@pytest.mark.parametrize("small", [0, 1 << 20], ids=["each", "together"])
def test_a_save_copies_the_state_once(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of arrays of numpy orbax would make copies of its own before a save returns, and of arrays
    that the next step takes over nothing would be left.
    """
    monkeypatch.setattr(snapshot, "SMALL", small)
    run = Job()
    names = [p.name for p in run.main.all_parameters()]
    kept = snapshot.take(names, run.scope)
    held = kept.pieces if small else kept.replicated
    assert held and all(isinstance(v, jax.Array) for v in held.values())
    assert len(held) == (1 if small else len(names))
    before = {n: np.array(v) for n, v in held.items()}
    was = {n: np.array(run.scope.find_var(n).value) for n in names}
    run.train(2)
    assert all((np.array(value) == before[n]).all() for n, value in held.items())
    for name in names:
        value = kept.placed[name].joined(lambda n: held[n][None]) if small else held[name]
        assert (np.array(value) == was[name]).all()
        assert (np.array(run.scope.find_var(name).value) != value).any()


def test_a_save_that_waited_for_the_last_one_is_quiet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """orbax warns of more than a second, in a log that is shown unless a script sets logs up."""
    run, seal = Job(), folder.seal
    monkeypatch.setattr(folder, "seal", lambda *given: (time.sleep(1.2), seal(*given)))
    with auto_of(run, tmp_path, every_steps=1) as auto:
        auto.step()
        logging.getLogger("absl").warning("something else")
        auto.step()
    assert [r.getMessage() for r in caplog.records if r.name == "absl"] == ["something else"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"every_steps": 0}, "every_steps is a number of steps, at least 1, or None; not 0"),
        ({"every_seconds": 0}, "every_seconds is a number of seconds above 0, or None; not 0"),
        ({"keep_seconds": -1}, "keep_seconds is a number of seconds above 0, or None; not -1"),
    ],
)
def test_intervals_that_are_none(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(fluid.errors.FluidValueError, match=re.escape(message)):
        auto_of(Job(), tmp_path, **options)


def alone(folder: Path, until: str, told: str) -> tuple[int, str, str]:
    command = [sys.executable, SCRIPT, str(folder), until, "0", told]
    env = {k: v for k, v in os.environ.items() if "PADDLE" not in k} | {"JAX_PLATFORMS": "cpu"}
    process = forked.Popen(
        command, cwd=ROOT, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, err = process.communicate(timeout=120)
    return process.returncode or 0, out, err


def test_sigterm_for_one_process(tmp_path: Path) -> None:
    code, out, err = alone(tmp_path, FOREVER, "0")
    assert (code, out.split()) == (75, ["RESUMED", "0"]), err
    assert fluid.io.get_latest_checkpoint_serial(tmp_path) == 3
    code, out, err = alone(tmp_path, "7", "none")
    assert code == 0 and out.splitlines()[0] == "RESUMED 3", err
    whole = Job(normed=True)
    whole.train(7)
    assert json.loads(out.split("RESULT", 1)[1]) == whole.state()


Launch = Callable[..., tuple[int, str, str]]


@pytest.fixture
def launch(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, forked: None
) -> Launch:
    """A job of two trainers: exit code, stdout, stderr."""
    monkeypatch.chdir(ROOT)

    def run(folder: Path, until: str, told: str, *options: str) -> tuple[int, str, str]:
        words = ["launch", "--nproc", "2", *options, SCRIPT, str(folder), until, "0", told]
        return cli.main(words), *capfd.readouterr()

    return run


def results(out: str) -> list[str]:
    return [line.split("RESULT", 1)[1] for line in sorted(out.splitlines()) if "RESULT" in line]


@pytest.mark.slow
def test_sigterm_for_one_trainer_is_for_all(launch: Launch, tmp_path: Path) -> None:
    """And under --restarts the job goes on by itself, to the end of one that nobody stopped."""
    code, out, err = launch(tmp_path / "a", FOREVER, "1")
    assert code == 75 and "ended with exit code 75" in err, err
    last = fluid.io.get_latest_checkpoint_serial(tmp_path / "a")
    assert last >= 3
    until = str(last + 3)
    code, out, err = launch(tmp_path / "a", until, "none")
    assert code == 0 and out.count(f"RESUMED {last}\n") == 2, err
    code, whole, err = launch(tmp_path / "b", until, "none")
    assert code == 0 and results(out) == results(whole) and len(results(out)) == 2, err


def launcher(*words: str) -> Any:
    return forked.launcher(
        [sys.executable, "-m", "fluidjax", "launch", "--nproc", "2", *words],
        cwd=ROOT,
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.slow
def test_sigterm_for_the_launcher(tmp_path: Path) -> None:
    """As a scheduler sends it; the job is not started again here, since it will be there."""
    process = launcher("--restarts", "2", SCRIPT, str(tmp_path), FOREVER, "0", "none")
    said: set[str] = set()
    while not {"[trainer 0] RESUMED 0\n", "[trainer 1] RESUMED 0\n"} <= said:
        said.add(process.stdout.readline())
        assert process.poll() is None
    process.terminate()
    _, err = process.communicate(timeout=120)
    assert process.returncode == 75
    assert "interrupted by SIGTERM; the trainers have saved a checkpoint" in err
    assert "again" not in err and fluid.io.get_latest_checkpoint_serial(tmp_path) >= 1


def test_sigterm_where_nothing_is_saved(tmp_path: Path) -> None:
    """In a job: as any other end."""
    process = launcher(SCRIPT, str(tmp_path), FOREVER, "0", "deaf")
    while not (found := re.match(r"\[trainer 1\] READY (\d+)", process.stdout.readline())):
        assert process.poll() is None
    os.kill(int(found[1]), signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 143
    assert "trainer 1 ended with exit code 143 (it was terminated by SIGTERM)" in err
