"""Mistakes in scripts with parameter servers end the whole job with a sentence: under the launcher,
and started by hand.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fluidjax import cli
from fluidjax.dist.jobs.env import Endpoint
from fluidjax.dist.jobs.launch import job_specs
from tests import forked

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
SCRIPT = str(Path(__file__).with_name("mistaken.py"))
SENTENCES = {
    "batches": (
        "trainer 1 ended after 3 steps, but trainer 0 has begun step 4, which needs every trainer;"
        " give all trainers the same"
    ),
    "program": (
        "trainer 0 and trainer 1 run different programs; the first difference: trainer 0 has"
    ),
    "trainers": "the program is for 3 trainers, but the job has 2",
    "endpoint": "there is no pserver '127.0.0.1:1'",
}


def by_hand(mistake: str) -> list[tuple[str, int, str]]:
    """(name, exit code, stderr) of two trainers and a pserver that know one another from the
    environment; before heartbeats (100 s).
    """
    command = [sys.executable, "-m", "fluidjax", "launch", SCRIPT, mistake]
    specs = job_specs(
        command, 2, 1, Endpoint("127.0.0.1", 1), "", environ=os.environ | {"JAX_PLATFORMS": "cpu"}
    )
    envs = [{k: v for k, v in spec.env.items() if not k.startswith("FLUIDJAX")} for spec in specs]
    running = [
        forked.Popen(
            command, cwd=ROOT, env=env, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        for env in envs
    ]
    try:
        return [
            (s.name, p.returncode, err)
            for s, p in zip(specs, running, strict=True)
            for _, err in [p.communicate(timeout=95)]
        ]
    finally:
        for p in running:
            p.kill()


@pytest.mark.parametrize("mistake", SENTENCES)
@pytest.mark.usefixtures("forked")
def test_under_the_launcher(
    mistake: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert cli.main(["launch", "--nproc", "2", "--pservers", "1", SCRIPT, mistake]) == 1
    _, err = capfd.readouterr()
    (report,) = [line for line in err.splitlines() if line.startswith("fluidjax launch: ")]
    assert SENTENCES[mistake] in report


# What may end a process before the sentence reaches it: JAX, from C++; and trainer 0, which holds
# the hub, may be gone by then.
FASTER = ("the JAX distributed service detected fatal errors", "ends because trainer 0 is gone")


@pytest.mark.parametrize("mistake", ["batches", "endpoint"])
def test_by_hand(mistake: str) -> None:
    ended = by_hand(mistake)
    assert any(SENTENCES[mistake] in err for _, _, err in ended)
    for name, code, err in ended:
        assert code, f"{name} ended well"
        assert any(told in err for told in (SENTENCES[mistake], *FASTER)), f"{name}: {err}"
