"""A 2x2 job whose processes are killed again and again ends with the bits of the run that nobody
disturbed.

The driver is benchmarks/faults.py, which does this at random; docs/launch.md has its figures.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import faults
from benchmarks.faults import (
    Job,
    Kill,
    Setting,
    killed_run,
    latest,
    restarted,
    same,
    unfinished,
    whole_run,
)
from tests import forked

SETTING = Setting(steps=16, every=3, width=256)


@pytest.mark.slow
def test_kill_9_of_a_pserver_and_of_a_trainer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each restart goes on from the last checkpoint and is killed in its turn; the last one comes
    to its end.
    """
    monkeypatch.setattr(
        faults,
        "subprocess",
        SimpleNamespace(**vars(forked.AS_SUBPROCESS) | {"Popen": forked.launcher}),
    )
    whole = whole_run(tmp_path / "whole", SETTING)
    folder, resumed = tmp_path / "job", []
    for kill in (Kill("pserver 1", 5, False, 0.0), Kill("trainer 1", 6, True, 0.0)):
        outcome = killed_run(folder, SETTING, kill)
        assert outcome.at >= kill.step and outcome.seconds < 30
        assert not outcome.silent
        if kill.writing:
            # the last files may just have been written
            assert outcome.cut or outcome.resumed >= kill.step
            assert all(
                p.name.split(".")[0] != str(latest(folder))
                for p in unfinished(folder / "checkpoints")
            )
        resumed.append(outcome.resumed)
    assert resumed == sorted(resumed) and 0 < resumed[-1] < SETTING.steps
    restarted(folder, SETTING, whole)


@pytest.mark.slow
def test_a_job_that_is_started_again_by_its_launcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trainer is killed, then a pserver: the job goes on by itself, with the same bits."""
    monkeypatch.setattr(
        faults,
        "subprocess",
        SimpleNamespace(**vars(forked.AS_SUBPROCESS) | {"Popen": forked.launcher}),
    )
    whole = whole_run(tmp_path / "whole", SETTING)
    folder = tmp_path / "job"
    folder.mkdir()
    with Job(folder, SETTING, restarts=2) as job:
        job.strike(Kill("trainer 0", 8, False, 0.0))
        job.again(1)
        first = latest(folder)
        job.strike(Kill("pserver 1", 12, False, 0.0))
        job.again(2)
        second = latest(folder)
        job.finish()
    assert 0 < first <= second < SETTING.steps
    same(folder, job, second, whole)
    assert job.said("fluidjax launch: starts the job again, 2 of 2 times")


@pytest.mark.slow
def test_a_job_that_was_started_again_often_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        faults,
        "subprocess",
        SimpleNamespace(**vars(forked.AS_SUBPROCESS) | {"Popen": forked.launcher}),
    )
    with Job(tmp_path, SETTING, restarts=1) as job:
        job.strike(Kill("trainer 1", 2, False, 0.0))
        job.again(1)
        job.strike(Kill("trainer 1", 3, False, 0.0))
        assert job.ended(60) == 137
    assert job.restarted == 1
