"""A process that is killed while it writes a checkpoint leaves whole ones alone to be chosen."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
from tests import forked

from .killed import NAMES, program

ROOT = Path(__file__).parents[2]
MOMENTS = 4
# by which one must have met a save: how long one takes, and how long it stays unfinished, is the
# machine's affair
ATTEMPTS = 24


def killed_within(folder: Path, part: float) -> None:
    """Kill a process that saves without end, this part of the way from the third save to the
    fourth.
    """
    command = [sys.executable, "-m", "tests.checkpoint.killed", str(folder)]
    process = forked.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"ready\n"
        begun = []
        for _ in range(3):
            assert process.stdout.readline().startswith(b"begun")
            begun.append(time.monotonic())
        time.sleep(part * (begun[-1] - begun[-2]))
        process.kill()
        assert process.wait(60) == -9


@pytest.mark.slow
def test_kill_9_at_random_moments(tmp_path: Path) -> None:
    draw, exe, made = random.Random(11), fluid.Executor(fluid.CPUPlace()), program()
    unfinished, last = 0, -1
    for attempt in range(1, ATTEMPTS + 1):
        killed_within(tmp_path, draw.random())
        unfinished += any("tmp" in path.name for path in tmp_path.iterdir())
        step = fluid.io.get_latest_checkpoint_serial(tmp_path)
        assert step >= last
        last = step
        for whole in fluid.io.Checkpoint(tmp_path).steps():
            scope = fluid.Scope()
            told = fluid.io.load_checkpoint(exe, tmp_path, made, step=whole, scope=scope)
            assert told.step == whole
            assert all(
                np.array_equal(scope.get(n), np.full((300, 200), whole, "float32")) for n in NAMES
            )
        if attempt >= MOMENTS and unfinished and last > 0:
            break
    assert unfinished and last > 0  # some were cut off, and some were whole


def test_what_looks_unfinished_is_not_chosen(tmp_path: Path) -> None:
    exe, made, scope = fluid.Executor(fluid.CPUPlace()), program(), fluid.Scope()
    for name in NAMES:
        scope.var(name).value = np.zeros((300, 200), "float32")
    fluid.io.save_checkpoint(exe, tmp_path, made, 3, scope=scope, asynchronous=False)
    for name in (
        "9.orbax-checkpoint-tmp/state",
        "9.orbax-checkpoint-tmp/job",
        "8/state",
        "7",
        "-5/state",
        "x/job",
        "010/state",
        "010/job",
    ):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "6").write_text("a file")
    assert fluid.io.Checkpoint(tmp_path).steps() == [3]
    assert fluid.io.load_checkpoint(exe, tmp_path, made, scope=scope).step == 3


def test_a_removal_that_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was to go does not look whole, and goes later."""
    exe, made, scope = fluid.Executor(fluid.CPUPlace()), program(), fluid.Scope()
    for name in NAMES:
        scope.var(name).value = np.zeros((300, 200), "float32")
    folder = fluid.io.Checkpoint(tmp_path, keep=2, asynchronous=False)
    for step in (1, 2, 3):
        folder.save(exe, made, step, scope=scope)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2", "3"]

    def cut_off(path: Path, **_: object) -> None:
        if path.exists():
            next(path.rglob("_METADATA")).unlink()
            raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("fluidjax.checkpoint.folder.shutil.rmtree", cut_off)
        folder.clean(after=2)
    assert folder.steps() == [2] and folder.restore(exe, made, scope=scope).step == 2
    folder.save(exe, made, 4, scope=scope)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2", "4"]


@pytest.mark.slow
def test_the_end_of_the_process_waits(tmp_path: Path) -> None:
    script = (
        "import numpy as np, fluidjax as fluid\nfrom tests.checkpoint.killed import NAMES,"
        " program\nscope = fluid.Scope()\nfor name in NAMES: scope.var(name).value = np.ones((300,"
        " 200), 'float32')\nfluid.io.save_checkpoint(fluid.Executor(fluid.CPUPlace()),"
        f" {str(tmp_path)!r}, program(), 4, scope=scope)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert fluid.io.get_latest_checkpoint_serial(tmp_path) == 4
