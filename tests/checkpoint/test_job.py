"""A job of two processes saves checkpoints, and goes on from one bit for bit; one process can take
them up as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fluidjax as fluid
from fluidjax import cli

from .model import Job

ROOT = Path(__file__).parents[2]
Launch = Callable[[Path, int, str], tuple[int, str, str]]


@pytest.fixture
def launch(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, forked: None
) -> Launch:
    """A job of two processes: exit code, stdout, stderr."""
    monkeypatch.chdir(ROOT)

    def run(folder: Path, until: int, kind: str) -> tuple[int, str, str]:
        code = cli.main(
            [
                "launch",
                "--nproc",
                "2",
                str(ROOT / "tests" / "checkpoint" / "job.py"),
                str(folder),
                str(until),
                kind,
            ]
        )
        return code, *capfd.readouterr()

    return run


def launched(launch: Launch, folder: Path, until: int, kind: str) -> list[dict[str, Any]]:
    """What the two processes print."""
    code, out, err = launch(folder, until, kind)
    assert code == 0, err
    said = sorted(line for line in out.splitlines() if "RESULT" in line)
    return [json.loads(line.split("RESULT", 1)[1]) for line in said]


@pytest.mark.slow
def test_two_processes_with_their_optimizer_state_in_pieces(launch: Launch, tmp_path: Path) -> None:
    whole = launched(launch, tmp_path, 4, "pieces")
    assert len(whole) == 2 and whole[0]["losses"] != whole[1]["losses"]
    one = Job(normed=True)
    assert one.load(str(tmp_path)).step == 4
    assert one.state() == whole[0]["state"]
    fluid.io.clean_checkpoint(tmp_path, after=2)
    rest = launched(launch, tmp_path, 4, "pieces")
    assert [r["losses"] for r in rest] == [w["losses"][2:] for w in whole]
    assert [r["state"] for r in rest] == [w["state"] for w in whole]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (
            "lone",
            (
                "trainer 0 saves a checkpoint before step 3, but trainer 1 has begun that step"
                " without; every trainer has to do so"
            ),
        ),
        (
            "apart",
            (
                "trainer 0 and trainer 1 do not take the same checkpoint at the same time; the"
                " first difference: trainer 0 has"
            ),
        ),
    ],
)
def test_trainers_that_do_not_save_together(
    launch: Launch, kind: str, sentence: str, tmp_path: Path
) -> None:
    """A sentence, where orbax would wait."""
    code, _, err = launch(tmp_path / "folder", 4, kind)
    assert code != 0
    told = (
        "fluidjax launch: ",
        "[trainer 0] fluidjax.errors.JobError: ",
        "[trainer 0] fluidjax: trainer 0 ends because ",
    )
    assert any(f"{who}{sentence}" in err for who in told), err
