"""Who is named as one that hangs, and when."""

from __future__ import annotations

from dataclasses import dataclass

from fluidjax.dist.jobs.hangs import Hangs


@dataclass
class Process:
    name: str
    steps: int = 0
    trains: bool = True
    heard: float = 0.0
    moved: float = 0.0
    named: str = ""
    where: str = "process 1 on host h"


def looked(seconds: int, running: list[Process], answer: set[str]) -> tuple[list[str], str, int]:
    """What is told within so many seconds, the verdict, and when that comes."""
    told: list[str] = []
    watch = Hangs(told.append)
    for now in range(1, seconds):
        for one in running:
            if one.name in answer:
                one.heard = float(now)
        if verdict := watch.look(float(now), running):
            return told, verdict, now
    return told, "", seconds


def test_one_that_does_not_answer_is_named_within_a_minute_and_ends_the_job() -> None:
    running = [Process("trainer 0"), Process("trainer 1"), Process("pserver 0", trains=False)]
    told, verdict, _ = looked(60, running, {"trainer 0", "pserver 0"})
    assert told == [
        "trainer 1 (process 1 on host h) does not answer: it is stopped, or its machine hangs"
    ]
    assert not verdict
    running = [Process("trainer 0"), Process("pserver 0", trains=False)]
    told, verdict, when = looked(200, running, {"trainer 0"})
    assert len(told) == 1 and 90 < when < 100  # before JAX's heartbeats
    assert verdict.startswith("pserver 0 (process 1 on host h) has not answered for 91 s")


def test_one_that_does_not_come_to_a_step_is_named_within_a_minute() -> None:
    running = [Process("trainer 0", 13), Process("trainer 1", 12), Process("trainer 2", 13)]
    everyone = {one.name for one in running}
    told, verdict, _ = looked(60, running, everyone)
    assert told == [
        "trainer 1 (process 1 on host h) has not begun step 13, in which trainer 0 has waited for"
        " 41 s: it hangs, or does something else"
    ]
    assert not verdict
    assert looked(300, [Process("trainer 0", 13), Process("trainer 1", 13)], everyone)[0] == []


def test_a_pause_of_the_one_who_looks_is_nobodys_fault() -> None:
    told: list[str] = []
    watch, running = Hangs(told.append), [Process("trainer 0", 2), Process("trainer 1", 1)]
    for now in (1.0, 1000.0, 1001.0):  # the machine slept
        assert watch.look(now, running) == ""
    assert told == []
