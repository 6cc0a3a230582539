"""SIGTERM, by which schedulers announce the end of a process: a loop that saves checkpoints polls
it between two steps, everything else exits in an orderly way.

JAX handles the signal from C++ without ending the process, so `listen` must come after
jax.distributed.
"""

from __future__ import annotations

import os
import signal
import threading

EXIT_CODE = 75  # "temporary failure; try again later" in sysexits.h


class Preempted(SystemExit):
    """This process got SIGTERM after its job's state was saved; the next start resumes from there."""

    def __init__(self) -> None:
        super().__init__(EXIT_CODE)


class Terminated(SystemExit):
    """This process got SIGTERM, and no code handles it."""

    def __init__(self) -> None:
        super().__init__(TERMINATED)


TERMINATED = 128 + signal.SIGTERM  # a shell's convention
_holders = 0
_requested = False


def listen() -> None:
    """Make SIGTERM raise Terminated or, during a hold, set `is_requested`.

    The script's own handler is kept. Outside of the main thread this does nothing, as Python
    requires.
    """
    if threading.current_thread() is threading.main_thread():
        if signal.getsignal(signal.SIGTERM) in (signal.SIG_DFL, _hear):
            signal.signal(signal.SIGTERM, _hear)


def _hear(number: int, frame: object) -> None:
    global _requested
    _requested = True
    if not _holders:
        raise Terminated


def hold() -> None:
    """Begin a hold: the caller polls `is_requested`, and ends the process itself."""
    global _holders
    _holders += 1
    listen()


def release() -> None:
    """End a hold. Raises Terminated if it was the last, and SIGTERM has come."""
    global _holders
    _holders -= 1
    if _requested and not _holders:
        raise Terminated


def unheard() -> bool:
    """Whether SIGTERM has come, and there is no hold."""
    return _requested and not _holders


def is_requested() -> bool:
    """Whether SIGTERM has been received."""
    return _requested


def _forget() -> None:
    """Make SIGTERM end a forked child (of a data loader, for example)."""
    global _holders, _requested
    if _holders or signal.getsignal(signal.SIGTERM) is _hear:
        _holders, _requested = 0, False
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


os.register_at_fork(after_in_child=_forget)

__all__ = [
    "EXIT_CODE",
    "TERMINATED",
    "Preempted",
    "Terminated",
    "hold",
    "is_requested",
    "listen",
    "release",
    "unheard",
]
