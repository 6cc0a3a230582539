"""Raises an error in a process that was forked after JAX was used, instead of letting it hang.

A fork copies the memory of XLA's client but none of its threads, so code that waits for them never
returns. Such a process cannot start JAX again either, because destroying the old client also waits
for its threads.
"""

from __future__ import annotations

import os
from typing import Any

from ..errors import UnsupportedError

in_use = False  # whether this process has asked JAX for its devices, which starts XLA's threads
without_threads = False  # whether it was forked from a process that had


def _in_child() -> None:
    global without_threads
    without_threads = without_threads or in_use


os.register_at_fork(after_in_child=_in_child)


def devices_asked_for() -> None:
    """Note that JAX's devices are about to be used. Raises UnsupportedError in a process that lacks
    XLA's threads.
    """
    global in_use
    in_use = True
    refuse()


def refuse_waiting(ready: bool) -> None:
    """Raises UnsupportedError in a forked child if a value is not ready: the thread of the parent
    that computes it does not exist in the child.
    """
    if without_threads and not ready:
        raise UnsupportedError(
            "this process was forked while another thread of its parent ran a program that changes"
            " these variables, so their values would never come; read them before the fork, or fork"
            " while no program runs"
        )


def refuse_unfinished(array: Any) -> None:
    """`refuse_waiting` for an array that may still be computed."""
    if without_threads:
        refuse_waiting(array.is_ready())


def refuse() -> None:
    """Raises UnsupportedError in a process that lacks XLA's threads."""
    if without_threads:
        raise UnsupportedError(
            "this process was forked from one that had made an executor or run a program, and a"
            " fork leaves out XLA's threads, so a program that runs here would wait for ever; make"
            " executors and predictors after the fork (gunicorn: load the model in the worker, or"
            " leave out --preload), or start processes by 'spawn'"
            " (multiprocessing.set_start_method('spawn'))"
        )
