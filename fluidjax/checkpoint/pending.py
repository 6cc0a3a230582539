"""Checkpoints that are being written when the process ends: it waits for them."""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401  # registers its own end, which must come after ours
import sys
import threading
from typing import TYPE_CHECKING
from weakref import WeakSet

from ..errors import FluidError

if TYPE_CHECKING:
    from .folder import Checkpoint

_open: WeakSet[Checkpoint] = WeakSet()


def add(checkpoint: Checkpoint) -> None:
    """Have the process wait for it."""
    _open.add(checkpoint)


def _wait_for_all() -> None:
    for checkpoint in list(_open):
        try:
            checkpoint.wait()
        except FluidError as error:
            print(f"fluidjax: {error}", file=sys.stderr)


# orbax cannot finish once Python has ended its thread pools, which is before atexit's turn. There is no public way to be
# earlier; where this one is missing, the checkpoint under way stays unfinished, and is not chosen.
getattr(threading, "_register_atexit", atexit.register)(_wait_for_all)
