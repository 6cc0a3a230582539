"""Processes of a job that live and do nothing: found by questions that go unanswered, and by steps
that do not come. No sockets here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

PING = 10.0  # seconds between questions
# seconds without an answer after which a process is named, and after which the job is ended (JAX's
# own heartbeats would end it after 100, without saying whose fault it is)
UNANSWERED, GIVEN_UP = 30.0, 90.0
BEHIND = 40.0  # seconds that others wait in a step after which the one that does not come is named
ASLEEP = 5.0  # a pause between two looks that counts as the machine's or the launcher's own


class Watched(Protocol):
    """A process. steps: those that it has begun. heard, moved: when it said something, and when it
    began its last step. named: why it was named, while that is true.
    """

    steps: int
    heard: float
    moved: float
    named: str

    @property
    def name(self) -> str: ...

    @property
    def where(self) -> str: ...

    @property
    def trains(self) -> bool: ...


class Hangs:
    """Looks again and again. tell: is given a sentence for each process that is named."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell, self._looked = tell, 0.0

    def look(self, now: float, running: Sequence[Watched]) -> str:
        """Name who does not answer, or does not come to a step in which others wait. The sentence
        that ends the job where one has been silent for too long, else "".
        """
        if now - self._looked > ASLEEP:  # it is not the others' silence
            for one in running:
                one.heard = one.moved = now
        self._looked = now
        far = max((p for p in running if p.trains), key=lambda p: p.steps, default=None)
        for one in running:
            why = _why(one, far, now)
            if why and not one.named:
                self._tell(f"{one.name} ({one.where}) {why}")
            one.named = why
            if now - one.heard > GIVEN_UP:
                return (
                    f"{one.name} ({one.where}) has not answered for {now - one.heard:.0f} s: it is"
                    " stopped, or its machine hangs"
                )
        return ""


def _why(one: Watched, far: Watched | None, now: float) -> str:
    if now - one.heard > UNANSWERED:
        return "does not answer: it is stopped, or its machine hangs"
    if far is None or not one.trains or one.steps >= far.steps:
        return ""
    if now - max(one.moved, far.moved) <= BEHIND:
        return ""
    return (
        f"has not begun step {one.steps + 1}, in which {far.name} has waited for"
        f" {now - far.moved:.0f} s: it hangs, or does something else"
    )


__all__ = ["ASLEEP", "PING", "Hangs", "Watched"]
