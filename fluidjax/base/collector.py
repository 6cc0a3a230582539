"""Python's garbage collector, left out for a moment."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Where many objects are made and none becomes garbage: the collector would look through all that there are, over and over."""
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
    """As it was before it rested."""
    if was:
        gc.enable()
