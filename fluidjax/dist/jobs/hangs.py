"""Detection of hanging processes, by unanswered questions and missing steps. No sockets here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

PING = 10.0  # seconds between questions
# seconds without an answer until a process is reported, and until the job is ended (JAX's own
# heartbeats would end it after 100, without naming the process)
UNANSWERED, GIVEN_UP = 30.0, 90.0
BEHIND = 40.0  # seconds that others wait in a step until the missing process is reported
ASLEEP = 5.0  # a longer pause between two checks counts as one of the machine or the launcher


class Watched(Protocol):
    """A process. steps: the number of steps begun. heard, moved: the times of its last message, and
    of the beginning of its last step. named: the current reason for reporting it.
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
    """Checks periodically. tell: is called with a message for each reported process."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell, self._looked = tell, 0.0

    def look(self, now: float, running: Sequence[Watched]) -> str:
        """Report processes that do not answer, or are missing in a step in which others wait.
        Returns the reason to end the job if one has been silent for too long, else "".
        """
        if now - self._looked > ASLEEP:  # the pause was here, not in the others
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
