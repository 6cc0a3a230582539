"""Makes the process wait at its end for checkpoints that are being written."""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # registers its own end, which must come after ours  # noqa: F401
import sys
import threading
from typing import Protocol
from weakref import WeakSet

from ..errors import FluidError


class Pending(Protocol):
    """Something that is written in the background."""

    def wait(self) -> None:
        """Return when everything is written. Raises FluidError if that failed."""


_open: WeakSet[Pending] = WeakSet()


def add(writer: Pending) -> None:
    """Make the process wait for it at its end."""
    _open.add(writer)


def _wait_for_all() -> None:
    for writer in list(_open):
        try:
            writer.wait()
        except FluidError as error:
            print(f"fluidjax: {error}", file=sys.stderr)


# orbax cannot finish after Python has ended its thread pools, which happens before atexit runs.
# There is no public way to run earlier. Without this hook the current checkpoint stays unfinished,
# and is not chosen.
getattr(threading, "_register_atexit", atexit.register)(_wait_for_all)
