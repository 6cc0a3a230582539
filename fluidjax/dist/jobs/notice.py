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
    """This process was told to end, and its job's state is saved: whoever starts it again goes on."""

    def __init__(self) -> None:
        super().__init__(EXIT_CODE)


class Terminated(SystemExit):
    """This process was told to end, and nothing in it waited for that."""

    def __init__(self) -> None:
        super().__init__(TERMINATED)


TERMINATED = 128 + signal.SIGTERM  # as a shell would report it
_holders = 0
_told = False


def listen() -> None:
    """From now on SIGTERM raises Terminated, or, while somebody holds it, is kept for `told`.

    A handler of the script's own stays. In another thread than the main one this does nothing, as
    Python wants it.
    """
    if threading.current_thread() is threading.main_thread():
        if signal.getsignal(signal.SIGTERM) in (signal.SIG_DFL, _hear):
            signal.signal(signal.SIGTERM, _hear)


def _hear(number: int, frame: object) -> None:
    global _told
    _told = True
    if not _holders:
        raise Terminated


def hold() -> None:
    """Somebody asks `told` again and again, and ends the process himself."""
    global _holders
    _holders += 1
    listen()


def release() -> None:
    """The end of a hold. Raises Terminated if it was the last, and the process was told to end."""
    global _holders
    _holders -= 1
    if _told and not _holders:
        raise Terminated


def unheard() -> bool:
    """Whether this process was told to end, and nobody holds that."""
    return _told and not _holders


def told() -> bool:
    """Whether this process was told to end."""
    return _told


def _forget() -> None:
    """A forked child, of a data loader for example, is ended by SIGTERM."""
    global _holders, _told
    if _holders or signal.getsignal(signal.SIGTERM) is _hear:
        _holders, _told = 0, False
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


os.register_at_fork(after_in_child=_forget)

__all__ = [
    "EXIT_CODE",
    "TERMINATED",
    "Preempted",
    "Terminated",
    "hold",
    "listen",
    "release",
    "told",
    "unheard",
]
