"""Python's garbage collector, left out for a moment."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Where many objects are made and none becomes garbage: the collector would look through all
    that there are, over and over.
    """
    was = rest()
    try:
        yield
    finally:
        wake(was)


def rest() -> bool:
    """Have it rest; returns what `wake` takes."""
    was = gc.isenabled()
    gc.disable()
    return was


def wake(was: bool) -> None:
    """As it was before it rested.

    What was made meanwhile counts as old at once: else the collector would look through all of it
    twice, as new and as not so new. Only where nobody keeps objects from it, for those would come
    back too.
    """
    if was:
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        gc.enable()
