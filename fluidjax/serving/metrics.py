"""Counts and durations in Prometheus's text format."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterable, Mapping

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128)


class Histogram:
    """The number of observations up to each of these bounds."""

    def __init__(self, bounds: Iterable[float]) -> None:
        self.bounds = tuple(bounds)
        self._counts = [0] * (len(self.bounds) + 1)
        self._sum = 0.0
        self._lock = threading.Lock()

    def add(self, value: float) -> None:
        at = next((i for i, b in enumerate(self.bounds) if value <= b), len(self.bounds))
        with self._lock:
            self._counts[at] += 1
            self._sum += value

    def lines(self, name: str) -> Iterable[str]:
        with self._lock:
            counts, total = list(self._counts), self._sum
        below = 0
        for bound, count in zip((*self.bounds, "+Inf"), counts, strict=True):
            below += count
            yield f'{name}_bucket{{le="{bound}"}} {below}'
        yield f"{name}_sum {total!r}"
        yield f"{name}_count {below}"


class Metrics:
    """The requests that came, and how long they took."""

    def __init__(self) -> None:
        self.answers: Counter[int] = Counter()  # by status; only the event loop's thread changes it
        self.seconds = Histogram(SECONDS)
        self.rows = Histogram(ROWS)
        self.runs = Histogram(SECONDS)

    def text(self, now: Mapping[str, tuple[str, float]]) -> str:
        """The text. now: values from elsewhere: name -> (help, value)."""
        found = [
            "# HELP fluidjax_answers_total Answers to requests for inference, by status.",
            "# TYPE fluidjax_answers_total counter",
            *(f'fluidjax_answers_total{{code="{c}"}} {n}' for c, n in sorted(self.answers.items())),
        ]
        for name, help_text, histogram in (
            ("request_seconds", "From a request to its answer.", self.seconds),
            ("batch_rows", "Rows that ran together, padding left out.", self.rows),
            ("run_seconds", "Runs of the model.", self.runs),
        ):
            found += [f"# HELP fluidjax_{name} {help_text}", f"# TYPE fluidjax_{name} histogram"]
            found += histogram.lines(f"fluidjax_{name}")
        for name, (help_text, value) in now.items():
            kind = "counter" if name.endswith("_total") else "gauge"
            found += [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}", f"{name} {value!r}"]
        return "\n".join(found) + "\n"


def resident_bytes() -> int:
    """The memory of this process; 0 if the system does not report it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
