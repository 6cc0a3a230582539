"""A job of two processes saves checkpoints, and goes on from one bit for bit; one process can take them up as well."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fluidjax as fluid

from .model import Job

ROOT = Path(__file__).parents[2]


def launch(folder: Path, until: int, kind: str) -> subprocess.CompletedProcess[str]:
    """A job of two processes."""
    script = str(ROOT / "tests" / "checkpoint" / "job.py")
    command = [sys.executable, "-m", "fluidjax", "launch", "--nproc", "2", script, str(folder), str(until), kind]
    env = {k: v for k, v in os.environ.items() if "PADDLE" not in k} | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=240)


def launched(folder: Path, until: int, kind: str) -> list[dict[str, Any]]:
    """What the two processes print."""
    done = launch(folder, until, kind)
    assert done.returncode == 0, done.stderr
    said = sorted(line for line in done.stdout.splitlines() if "RESULT" in line)
    return [json.loads(line.split("RESULT", 1)[1]) for line in said]


@pytest.mark.slow
def test_two_processes_with_their_optimizer_state_in_pieces(tmp_path: Path) -> None:
    whole = launched(tmp_path, 4, "pieces")
    assert len(whole) == 2 and whole[0]["losses"] != whole[1]["losses"]
    one = Job(normed=True)
    assert one.load(str(tmp_path)).step == 4
    assert one.state() == whole[0]["state"]
    fluid.io.clean_checkpoint(tmp_path, after=2)
    rest = launched(tmp_path, 4, "pieces")
    assert [r["losses"] for r in rest] == [w["losses"][2:] for w in whole]
    assert [r["state"] for r in rest] == [w["state"] for w in whole]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("lone", "trainer 0 saves a checkpoint before step 3, but trainer 1 has begun that step without; every trainer has to do so"),
        ("apart", "trainer 0 and trainer 1 do not take the same checkpoint at the same time; the first difference: trainer 0 has"),
    ],
)
def test_trainers_that_do_not_save_together(kind: str, sentence: str, tmp_path: Path) -> None:
    """A sentence, where orbax would wait."""
    done = launch(tmp_path / "folder", 4, kind)
    assert done.returncode != 0
    assert f"fluidjax launch: {sentence}" in done.stderr or f"[trainer 0] fluidjax.errors.JobError: {sentence}" in done.stderr
