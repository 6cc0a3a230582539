"""Work beside the program's own: one piece at a time, in a thread, and no exit of the process waits for it.

XLA cannot be stopped. If Python ended while it compiles, it would take apart what XLA reads, and unwind the thread through
C++ when that comes back: the process would die of a signal. So whoever leaves meanwhile lets XLA go on with what it has, until
the process ends a moment later, or waits for it where that cannot be had (`_leave`).
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import cache

import jax

STOPS = 10.0  # seconds in which a thread that runs Python has surely stopped
AGAIN = 0.05  # seconds after which one that has not is told once more

_turn = threading.Lock()  # held by the piece that is done now
_entering = threading.Lock()  # held to look at the two below, or to set one
_leaving = False
_inside: threading.Thread | None = None  # the thread that cannot be stopped now
_threads: set[threading.Thread] = set()


def in_background(work: Callable[[], Iterator[None]]) -> Future[None]:
    """Have `work` done; the future tells when it is, or what it raised.

    work: a generator that yields once, before the part that cannot be stopped.
    """
    future: Future[None] = Future()
    thread = threading.Thread(target=_run, args=(work, future), name="fluidjax-background", daemon=True)
    _at_exit()
    _threads.add(thread)
    thread.start()
    return future


def _run(work: Callable[[], Iterator[None]], future: Future[None]) -> None:
    global _inside
    try:
        with _turn:
            steps = work()
            next(steps)
            with _entering:
                if _leaving:
                    raise InterruptedError("the process ends")
                _inside = threading.current_thread()
            for _ in steps:
                pass
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(None)
    finally:
        _inside = None
        _threads.discard(threading.current_thread())


@cache
def _at_exit() -> None:
    atexit.register(_leave)


def _leave() -> None:
    """Stop the threads that run Python, and see to it that nobody meets the one that does not."""
    global _leaving
    with _entering:
        _leaving, inside = True, _inside
    gc.disable()  # what is raised in a callback of the collector is told, and heard by nobody
    others = [t for t in _threads if t is not inside and t.ident is not None]
    for thread in others:
        _tell(thread)
    if inside is not None and not _let_go():
        inside.join()
    for thread in others:
        end = time.monotonic() + STOPS
        while thread.is_alive() and time.monotonic() < end:
            thread.join(AGAIN)
            _tell(thread)  # again, for it may have been in a finalizer, which nothing can leave so


def _tell(thread: threading.Thread) -> None:
    """Raise SystemExit in it, where it would be heard."""
    if not _collects(thread):
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit))


def _collects(thread: threading.Thread) -> bool:
    """Whether it is in a callback of the collector. If it is not, and collects no more, it never will be."""
    callbacks = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None and frame.f_code not in callbacks:
        frame = frame.f_back
    return frame is not None


def _let_go() -> bool:
    """Whether this process can end while XLA compiles: what it reads stays, its thread does not come back, and nothing of C++
    is taken apart. Only where this was tried: a later Python takes apart more.
    """
    if sys.version_info >= (3, 12):
        return False
    try:
        libc, libcxx = ctypes.CDLL(None), ctypes.CDLL("libstdc++.so.6")
        stay, end = (ctypes.cast(f, ctypes.c_void_p) for f in (libc.pause, libc._exit))
        # Where Python would end a thread that comes back, C++ forbids that and calls what is set here.
        set_terminate, on_exit = libcxx._ZSt13set_terminatePFvvE, libc.on_exit
    except (OSError, AttributeError):
        return False
    set_terminate(stay)
    on_exit(end, None)  # called with the exit status, before C++'s destructors
    kept = [v for n, m in list(sys.modules.items()) if n.partition(".")[0] in ("jax", "jaxlib") for v in list(vars(m).values())]
    for value in (*kept, *{d.client for d in jax.local_devices()}):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))
    return True
