"""A profile's table, in Paddle's form, and its trace, for Perfetto and chrome://tracing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .events import Event, Recording

SORTED = {
    "default": "event first end time", "calls": "number of calls", "total": "total time", "max": "maximum time",
    "min": "minimum time", "ave": "average time",
}  # fmt: skip
_WIDTH = 12


@dataclass
class _Row:
    """The sum of the events of one name; milliseconds."""

    name: str
    calls: int = 0
    total: float = 0.0
    dispatch: float = 0.0
    least: float = float("inf")
    most: float = 0.0

    def count(self, begin: float, called: float, end: float) -> None:
        took = 1e3 * (end - begin)
        self.calls, self.total, self.dispatch = (
            self.calls + 1,
            self.total + took,
            self.dispatch + 1e3 * (called - begin),
        )
        self.least, self.most = min(self.least, took), max(self.most, took)


_KEYS: dict[str, Callable[[_Row], float]] = {
    "calls": lambda r: r.calls, "total": lambda r: r.total, "max": lambda r: r.most, "min": lambda r: r.least,
    "ave": lambda r: r.total / r.calls,
}  # fmt: skip


def report(recording: Recording, key: str) -> str:
    """The table: a row for each op type of each thread, ordered by `key` (SORTED), the largest
    first; then rows for its parts.

    Ratio is the share of the time of all outermost ops. The time of an op with a block includes the
    times of the block's ops.
    """
    everything = sum(e.seconds for e in recording.events if not e.depth) * 1e3
    ran, compiled = 1e3 * recording.ran, 1e3 * recording.compiled
    rest = max(ran - everything - compiled, 0.0)
    rows = list(_rows(recording, key))
    names = max((len(label) for label, _ in rows), default=0) + 4
    both = recording.state != "CPU"
    head = [
        "Calls",
        "Total",
        *(["CPU Time (Ratio)", "GPU Time (Ratio)"] if both else []),
        "Min.",
        "Max.",
        "Ave.",
        "Ratio.",
    ]
    return "\n".join([
        "", "------------------------->     Profiling Report     <-------------------------", "",
        f"Place: {recording.state}", "Time unit: ms", f"Sorted by {SORTED[key]} in descending order in the same thread", "",
        f"Total time: {everything + rest:.6g}",
        f"  Computation time       Total: {everything:<12.6g}Ratio: {_percent(everything, everything + rest)}",
        f"  Framework overhead     Total: {rest:<12.6g}Ratio: {_percent(rest, everything + rest)}",
        f"  Compilation (not in the total): {compiled:.6g}", "",
        "-------------------------       Event Summary       -------------------------", "",
        "Event".ljust(max(names, 8)) + "".join(_cell(h) for h in head),
        *(label.ljust(max(names, 8)) + _figures(row, everything, both) for label, row in rows), "",
    ])  # fmt: skip


def _cell(text: str) -> str:
    return text.ljust(_WIDTH if len(text) < _WIDTH else 24)


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole if whole else 0:.6g}%"


def _figures(row: _Row, everything: float, both: bool) -> str:
    wait = row.total - row.dispatch
    parts = (
        [
            f"{v:.6f} ({v / row.total if row.total else 0:.6f})".ljust(24)
            for v in (row.dispatch, wait)
        ]
        if both
        else []
    )
    times = [
        f"{v:.6g}".ljust(_WIDTH)
        for v in (
            row.least,
            row.most,
            row.total / row.calls,
            row.total / everything if everything else 0,
        )
    ]
    return "".join([str(row.calls).ljust(_WIDTH), f"{row.total:.6g}".ljust(_WIDTH), *parts, *times])


def _rows(recording: Recording, key: str) -> Iterable[tuple[str, _Row]]:
    """(label, row) in order: one for each op type; then, under OpDetail, for its parts; under
    AllOpDetail, for its ops and their parts.
    """
    for thread in sorted({e.thread for e in recording.events}):
        mine = [e for e in recording.events if e.thread == thread]
        for row in _grouped(mine, key, lambda e: e.name):
            yield f"thread{thread}::{row.name}", row
            of_type = [e for e in mine if e.name == row.name]
            if recording.option == "OpDetail":
                yield from _parts(of_type, f"  thread{thread}::{row.name}")
            elif recording.option == "AllOpDetail":
                for one in _grouped(of_type, key, lambda e: f"{e.name}{e.number}"):
                    yield f"  {one.name}", one
                    yield from _parts(
                        [e for e in of_type if f"{e.name}{e.number}" == one.name], f"    {one.name}"
                    )


def _grouped(events: Iterable[Event], key: str, name: Callable[[Event], str]) -> list[_Row]:
    rows: dict[str, _Row] = {}
    for e in events:
        rows.setdefault(name(e), _Row(name(e))).count(e.begin, e.called, e.end)
    return (
        sorted(rows.values(), key=_KEYS[key], reverse=True) if key in _KEYS else list(rows.values())
    )


def _parts(events: Iterable[Event], label: str) -> Iterable[tuple[str, _Row]]:
    """The call itself, and the wait for its results."""
    call, wait = _Row("call"), _Row("wait")
    for e in events:
        call.count(e.begin, e.called, e.called)
        wait.count(e.called, e.end, e.end)
    yield f"{label}/call", call
    yield f"{label}/wait", wait


def trace(recording: Recording) -> bytes:
    """The events as JSON of the Trace Event Format: microseconds since the profile began; each op's
    number and the user's line.
    """
    named = [
        {"ph": "M", "pid": 0, "tid": t, "name": "thread_name", "args": {"name": f"thread{t}"}}
        for t in recording.threads.values()
    ]
    events = [
        {
            "ph": "X", "pid": 0, "tid": e.thread, "name": e.name, "cat": "op", "ts": 1e6 * (e.begin - recording.began),
            "dur": 1e6 * e.seconds, "args": {"op": f"{e.name}{e.number}", "line": e.loc},
        }
        for e in recording.events
    ]  # fmt: skip
    return json.dumps({"displayTimeUnit": "ms", "traceEvents": [*named, *events]}).encode()
