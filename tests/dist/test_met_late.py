"""Jobs that a script of its own joins by jax.distributed.initialize: the processes meet at the
first step that needs all.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fluidjax.dist.jobs import wire
from tests import forked

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys, time
import jax
rank = int(sys.argv[2])
jax.distributed.initialize(sys.argv[1], 2, rank)
from tests.dist import trainers
{before}
found = trainers.{case}()
print("loss", found["loss"].ravel().tolist(), flush=True)
"""


def start(case: str, before: str = "") -> list[tuple[int, str, str]]:
    """(exit code, stdout, stderr) of two processes; they must end before jax's heartbeats would end
    them (100 s).
    """
    words = [
        sys.executable,
        "-c",
        SCRIPT.format(case=case, before=before),
        f"127.0.0.1:{wire.free_port()}",
    ]
    env = {k: v for k, v in os.environ.items() if "PADDLE" not in k} | {"JAX_PLATFORMS": "cpu"}
    running = [
        forked.Popen(
            [*words, str(rank)],
            cwd=ROOT,
            env=env,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for rank in (0, 1)
    ]
    try:
        return [
            (p.returncode, out, err) for p in running for out, err in [p.communicate(timeout=95)]
        ]
    finally:
        for p in running:
            p.kill()


def test_they_train_and_end() -> None:
    results = start("here", 'trainers.here, here = (lambda: here("plain")), trainers.here')
    assert [code for code, _, _ in results] == [0, 0], results
    assert all(out.splitlines()[-1].startswith("loss [") for _, out, _ in results)


def test_a_feed_of_another_size_in_one_of_them() -> None:
    results = start("late")
    assert all(code for code, _, _ in results)
    text = (
        "trainer 1 has new sizes in its feed, a new program or new state before step 3, but trainer"
        " 0 has begun that step without"
    )
    assert text in results[0][2]


def test_one_that_stops_early() -> None:
    (code, _, err), _ = start(
        "here",
        'trainers.STEPS -= rank\ntrainers.here, here = (lambda: here("plain")), trainers.here',
    )
    assert (
        code
        and "trainer 1 ended after 2 steps, but trainer 0 has begun step 3, which needs every trainer"
        in err
    )


def test_one_that_is_killed() -> None:
    kill = """
import os
class Stop(list):
    def __iter__(self):
        for number, feed in enumerate(list.__iter__(self)):
            if number == 2 and rank: os.kill(os.getpid(), 9)
            yield feed
trainers.batches, batches = (lambda *a: Stop(batches(*a))), trainers.batches
trainers.here, here = (lambda: here("plain")), trainers.here
"""
    (code, _, err), (killed, _, _) = start("here", kill)
    assert killed == -9 and code
    assert (
        "trainer 0 ends because trainer 1 (process " in err
        and "ended without a word: it was killed, or it crashed" in err
    )


def test_processes_that_cannot_reach_one_another_train_all_the_same() -> None:
    unreachable = """
from fluidjax.dist.jobs import cluster, process, wire
cluster.one_machine, wire.own_address, process.MEETING = (lambda: False), (lambda *_: "192.0.2.1"), 1.0
trainers.here, here = (lambda: here("plain")), trainers.here
"""
    for code, out, err in start("here", unreachable):
        assert code == 0 and out.splitlines()[-1].startswith("loss [")
        assert "RuntimeWarning: the job's processes cannot all reach trainer 0 at 192.0.2.1:" in err
