"""A 2x2 job whose processes are killed again and again ends with the bits of the run that nobody
disturbed.

The driver is benchmarks/faults.py, which does this at random; docs/launch.md has its figures.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import faults
from benchmarks.faults import Kill, Setting, killed_run, latest, restarted, unfinished, whole_run
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
