"""Holds Ctrl-C back while an interruption would leave work half done."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back until the end of the block (in the main thread; other threads are never
    interrupted).
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[Any] = []
    old = signal.signal(signal.SIGINT, lambda *event: arrived.append(event))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, old)
        if arrived and callable(old):
            old(*arrived[0])
