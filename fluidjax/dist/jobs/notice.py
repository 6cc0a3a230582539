"""SIGTERM, by which schedulers say that a process is to end soon: a loop that saves checkpoints
hears it between two steps, everything else ends in an orderly way.

JAX listens for it from C++, and then nothing ends; so `listen` comes after jax.distributed.
"""

from __future__ import annotations

import os
import signal
import threading

EXIT_CODE = 75  # "temporary failure; try again later", as others know it from sysexits.h


class Preempted(SystemExit):
    """This process got SIGTERM, and its job's state is saved: the next start goes on from there."""

    def __init__(self) -> None:
        super().__init__(EXIT_CODE)


class Terminated(SystemExit):
    """This process got SIGTERM, and no code in it was prepared for that."""

    def __init__(self) -> None:
        super().__init__(TERMINATED)


TERMINATED = 128 + signal.SIGTERM  # as a shell would report it
_holders = 0
_requested = False


def listen() -> None:
    """From now on SIGTERM raises Terminated, or, during a hold, is kept for `is_requested`.

    A handler of the script's own stays. In another thread than the main one this does nothing, as
    Python wants it.
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
    """Whether SIGTERM has asked this process to end."""
    return _requested


def _forget() -> None:
    """A forked child, of a data loader for example, is ended by SIGTERM."""
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
