"""Pauses Python's garbage collector."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Pause the collector while many objects are made and none becomes garbage. Otherwise it would
    scan all objects again and again.
    """
    was = rest()
    try:
        yield
    finally:
        wake(was)


def rest() -> bool:
    """Pause the collector; returns the argument for `wake`."""
    was = gc.isenabled()
    gc.disable()
    return was


def wake(was: bool) -> None:
    """Restore the collector's state from before `rest`.

    Objects that were made in the meantime go to the oldest generation at once. Otherwise the
    collector would scan all of them twice, in the two younger generations. This is done only if no
    objects are frozen, because those would be unfrozen too.
    """
    if was:
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        gc.enable()
