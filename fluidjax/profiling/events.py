"""The events that a profile records while it is on: the time and the thread of each op."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

clock = time.perf_counter


@dataclass(frozen=True)
class Event:
    """One run of an op. called: when the call returned; end: when its results were computed.
    Seconds of `clock`.

    name: the op type. number: the index among the program's ops of that type. depth: the number of
    control ops around it.
    """

    name: str
    number: int
    thread: int
    depth: int
    begin: float
    called: float
    end: float
    loc: str = ""

    @property
    def seconds(self) -> float:
        return self.end - self.begin


@dataclass
class Recording:
    """All events since the profile was turned on, or cleared. ran: seconds of whole runs; compiled:
    the part of them that was spent compiling.
    """

    state: str
    option: str
    began: float = field(default_factory=clock)
    events: list[Event] = field(default_factory=list)
    ran: float = 0.0
    compiled: float = 0.0
    threads: dict[int, int] = field(default_factory=dict)

    def clear(self) -> None:
        """Drop the recorded events; the profile stays on."""
        self.began, self.ran, self.compiled = clock(), 0.0, 0.0
        self.events.clear()

    def took(self, seconds: float) -> None:
        """Record the time of a whole run."""
        self.ran += seconds

    def took_to_compile(self, seconds: float) -> None:
        """Record the part of a run that was spent compiling."""
        self.compiled += seconds

    def add(
        self,
        name: str,
        times: tuple[float, float, float],
        number: int = 0,
        depth: int = 0,
        loc: str = "",
    ) -> None:
        """Record one run of an op. times: when it began, when the call returned, and when the
        results were computed.
        """
        thread = self.threads.setdefault(threading.get_ident(), len(self.threads))
        self.events.append(Event(name, number, thread, depth, *times, loc))


class Recorder:
    """Holds the current recording, for all executors of the process; None while no profile is
    on.
    """

    def __init__(self) -> None:
        self.on: Recording | None = None


RECORDER = Recorder()
