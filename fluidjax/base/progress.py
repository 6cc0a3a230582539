"""Shows the progress of long work on stderr: bars and temporary lines, by tqdm; nothing if stderr
is not watched.

``FLAGS_progress``: auto (shown if stderr is a terminal, and in notebooks), on, off, or json (a line
of JSON on stderr, every ten seconds). docs/progress.md is the user's view.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from ..errors import FluidValueError
from .flags import flag

SOON = 3.0  # seconds before a wait is shown
OFTEN = 10.0  # seconds between lines that are not overwritten
_ON, _OFF, _JSON = ("on", "1", "true"), ("off", "0", "false"), ("json",)


def shown() -> bool:
    """Whether progress is shown. Raises FluidValueError for an unknown value of FLAGS_progress."""
    return asked() or (flag("FLAGS_progress") == "auto" and _watched())


def asked() -> bool:
    """Whether FLAGS_progress is on or json, not only auto. Then loops that a script writes itself
    get bars too.
    """
    value = str(flag("FLAGS_progress")).lower()
    if value not in ("auto", *_ON, *_OFF, *_JSON):
        raise FluidValueError(f"FLAGS_progress is auto, on, off or json, not {value!r}")
    return value in (*_ON, *_JSON)


def _in_json() -> bool:
    return str(flag("FLAGS_progress")).lower() in _JSON


def _write(what: str, **more: Any) -> None:
    """Write a line of JSON: the time, the work, and how far it is."""
    line = {"time": round(time.time(), 3), "what": what}
    print(
        json.dumps(line | {n: v for n, v in more.items() if v is not None}),
        file=stream(),
        flush=True,
    )


class _Lines:
    """A bar as lines of JSON, at intervals and at the end; it has the methods of tqdm that Bar
    calls.
    """

    def __init__(self, what: str, total: int | None) -> None:
        self._what, self._total, self._done, self._note = what, total, 0, ""
        self._began = self._last = time.monotonic()

    def set_postfix_str(self, note: str, refresh: bool = True) -> None:
        self._note = note

    def update(self, n: int) -> None:
        self._done += n
        if time.monotonic() - self._last >= OFTEN:
            self.write_state()

    def write(self, text: str, file: Any, end: str) -> None:
        print(text, file=file, end=end, flush=True)

    def write_state(self, ended: bool | None = None) -> None:
        self._last = time.monotonic()
        seconds = round(self._last - self._began, 3)
        note = self._note or None
        _write(
            self._what, done=self._done, total=self._total, seconds=seconds, told=note, ended=ended
        )


def stream() -> TextIO | None:
    """The stream for progress: the current stderr; None if there is none."""
    return sys.stderr


def _watched() -> bool:
    """Whether the stream shows lines that are overwritten."""
    found = stream()
    return (found is not None and found.isatty()) or in_notebook()


def in_notebook() -> bool:
    """Whether this runs in a Jupyter kernel, whose stderr is not a terminal but shows such lines
    too.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


class Bar:
    """A counter. If progress is not shown, its methods do nothing except print."""

    def __init__(self, held: Any) -> None:
        self._held = held

    def step(self, note: str = "", n: int = 1) -> None:
        """Count `n` more. note: a few words after the bar."""
        if self._held is not None:
            if note:
                self._held.set_postfix_str(note, refresh=False)
            self._held.update(n)

    def print(self, text: str) -> None:
        """Write to stdout, above the bar."""
        if self._held is None:
            print(text, end="", flush=True)
        else:
            self._held.write(text, file=sys.stdout, end="")


@contextlib.contextmanager
def bar(
    what: str, total: int | None = None, unit: str = "batch", show: bool | None = None
) -> Iterator[Bar]:
    """A bar for a loop. total: the number of items, if known. show: whether to show it; default
    `shown`.
    """
    if not (shown() if show is None else show):
        yield Bar(None)
        return
    if _in_json():
        lines = _Lines(what, total)
        try:
            yield Bar(lines)
        finally:
            lines.write_state(ended=True)
        return
    from tqdm import tqdm

    with tqdm(
        total=total, desc=what, unit=f" {unit}", leave=False, file=stream(), dynamic_ncols=True
    ) as held:
        yield Bar(held)


@contextlib.contextmanager
def waiting(what: str | Callable[[], str], after: float | None = None) -> Iterator[None]:
    """Show what is waited for and for how long, once the wait takes `after` seconds (default SOON).
    The line is removed at the end.

        with waiting("compiling a step of 2,300 ops"):  # compiling a step of 2,300 ops ... 12 s
    """
    if not shown():
        yield
        return
    ended = threading.Event()
    line = threading.Thread(
        target=_tell,
        args=(what, SOON if after is None else after, ended),
        name="fluidjax-progress",
        daemon=True,
    )
    line.start()
    try:
        yield
    finally:
        ended.set()
        line.join()


def _tell(what: str | Callable[[], str], after: float, ended: threading.Event) -> None:
    began = time.monotonic()
    if ended.wait(after):
        return
    if _in_json():
        more = True
        while more:
            text = what if isinstance(what, str) else what()
            _write(text, seconds=round(time.monotonic() - began, 3))
            more = not ended.wait(OFTEN)
        _write(text, seconds=round(time.monotonic() - began, 3), ended=True)
        return
    from tqdm import tqdm

    every = 1.0 if _watched() else OFTEN  # lines in a file are not overwritten
    with tqdm(bar_format="{desc}", leave=False, file=stream(), dynamic_ncols=True) as held:
        while True:
            text = what if isinstance(what, str) else what()
            held.set_description_str(f"{text} ... {int(time.monotonic() - began)} s")
            if ended.wait(every):
                return


def tell(text: str) -> None:
    """Write a permanent line to stderr."""
    if shown() and _in_json():
        _write(text)
    elif shown():
        print(text, file=stream(), flush=True)


def size(n: int) -> str:
    """A number of bytes as ``1.2 GB``: units of a thousand, as in memory reports."""
    amount, units = float(n), ["bytes", "kB", "MB", "GB", "TB"]
    while amount >= 1000 and len(units) > 1:
        amount, units = amount / 1000, units[1:]
    return f"{amount:,.0f} {units[0]}" if units[0] == "bytes" else f"{amount:,.1f} {units[0]}"
