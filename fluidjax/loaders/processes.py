"""Worker processes of readers and loaders. They are forked, so that they can run any function, and
they end with the process that started them.

A worker runs the user's Python and NumPy, but not JAX, whose threads do not survive a fork.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import pickle
import signal
import traceback
import warnings
from array import array
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

from ..base.interrupts import uninterrupted
from ..errors import FluidError, FluidValueError

_LARGE = 1 << 14  # bytes of an array: a larger one is not copied into a message
_PATIENCE = 5.0  # seconds between a worker's checks that its parent still exists


class WorkerDied(FluidError, RuntimeError):
    """A worker process ended without an error message."""


class WorkerTraceback(Exception):
    """The traceback of an exception in a worker; the cause of the exception in its parent."""


class Worker:
    """A forked process that runs ``work(sender)``; the parent sends and receives through ``take``.

    Raises FluidValueError if processes cannot be forked.
    """

    def __init__(self, work: Callable[[Sender], None], name: str) -> None:
        if "fork" not in multiprocessing.get_all_start_methods():
            raise FluidValueError(
                "worker processes are forked, which this system cannot; use threads (num_workers=0,"
                " xmap_readers)"
            )
        context = multiprocessing.get_context("fork")
        self._mine, theirs = context.Pipe()
        self.name = name
        self._process = context.Process(
            target=_run, args=(work, theirs, os.getpid()), name=name, daemon=True
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that threads are not copied by a fork; see above
            self._process.start()
        theirs.close()

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def send(self, value: Any) -> None:
        """Send a value to the worker. If it has ended, `take` raises the reason after its last
        messages.
        """
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._mine.send(value)

    def take(self, timeout: float | None = None) -> Any:
        """The worker's next message. Raises the worker's error, WorkerDied, and TimeoutError after
        `timeout` seconds.
        """
        heard = wait([self._mine, self._process.sentinel], timeout)
        if not heard:
            raise TimeoutError(f"{self.name} gave nothing for {timeout} seconds")
        # it ends; its earlier messages still come
        if self._mine not in heard and not self._mine.poll(_PATIENCE):
            raise self._died()
        try:
            kind, value = _received(self._mine)
        except (EOFError, OSError):  # also in the middle of a message
            raise self._died() from None
        if kind == "error":
            error, text = value
            raise error from WorkerTraceback(f"\n\nin {self.name} (process {self.pid}):\n{text}")
        return value

    def _died(self) -> WorkerDied:
        self._process.join(_PATIENCE)
        return WorkerDied(
            f"{self.name} (process {self.pid}) {how_it_ended(self._process.exitcode)} before it was"
            " done"
        )

    def ends(self) -> tuple[Any, Any]:
        """Objects that are ready when the worker has sent something, or has ended."""
        return self._mine, self._process.sentinel

    def close(self) -> None:
        """End the process and release its resources."""
        self._process.kill()
        self._mine.close()
        self._process.join()
        self._process.close()


def how_it_ended(code: int | None) -> str:
    """The exit status of a process in words; None if there is none."""
    return (
        "is gone"
        if code is None
        else (
            f"was ended by {signal.Signals(-code).name}"
            if code < 0
            else f"ended with status {code}"
        )
    )


def ready(workers: Sequence[Worker]) -> list[Worker]:
    """The workers that have sent something or have ended; waits for the first."""
    ends = {end: worker for worker in workers for end in worker.ends()}
    return list(dict.fromkeys(ends[end] for end in wait(list(ends))))


def start(workers: list[Worker], work: Callable[[Sender], None], name: str) -> None:
    """Add a worker to those that `close_all` ends. Ctrl-C comes before or after the addition."""
    with uninterrupted():
        workers.append(Worker(work, name))


def close_all(workers: Sequence[Worker]) -> None:
    """End all the processes; Ctrl-C is held back."""
    with uninterrupted():
        for worker in workers:
            worker.close()


class Sender:
    """A worker's end of the connection to its parent."""

    def __init__(self, connection: Connection, parent: int) -> None:
        self._connection, self._parent = connection, parent

    def send(self, value: Any) -> None:
        large: list[memoryview] = []  # array data is sent without a copy

        def stays(buffer: pickle.PickleBuffer) -> bool:
            raw = buffer.raw()
            if raw.nbytes >= _LARGE:
                large.append(raw)
            return raw.nbytes < _LARGE

        self._send(pickle.dumps(("value", value), protocol=5, buffer_callback=stays), large)

    def fail(self, error: BaseException) -> None:
        text = "".join(traceback.format_exception(error))
        try:
            data = pickle.dumps(("error", (error, text)))
            pickle.loads(data)
        except Exception:  # for an exception that cannot be sent, send its text
            data = pickle.dumps(("error", (RuntimeError(f"{type(error).__name__}: {error}"), text)))
        self._send(data, ())

    def _send(self, data: bytes, large: Sequence[memoryview]) -> None:
        self._connection.send_bytes(array("q", [raw.nbytes for raw in large]).tobytes())
        self._connection.send_bytes(data)
        for raw in large:
            while raw.nbytes:
                raw = raw[os.write(self._connection.fileno(), raw) :]

    def receive(self) -> Any:
        """The parent's next message. Ends the process if the parent is gone."""
        while not self._connection.poll(_PATIENCE):
            if os.getppid() != self._parent:
                os._exit(1)
        return self._connection.recv()


def _received(connection: Connection) -> Any:
    """A Sender's message, received in the process that was forked; large arrays are read into their
    final memory. Raises EOFError at the end.
    """
    sizes = array("q", connection.recv_bytes())
    data = connection.recv_bytes()
    return pickle.loads(data, buffers=[_filled(connection.fileno(), size) for size in sizes])


def _filled(descriptor: int, size: int) -> np.ndarray:
    whole = np.empty(size, np.uint8)
    with memoryview(whole) as free:
        count = 0
        while count < size:
            more = os.readv(descriptor, [free[count:]])
            if not more:
                raise EOFError
            count += more
    return whole


def _run(work: Callable[[Sender], None], connection: Connection, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.freeze()  # a worker must not free the parent's objects, such as arrays on devices
    sender = Sender(connection, parent)
    try:
        work(sender)
    except (BrokenPipeError, ConnectionResetError, EOFError):
        pass  # the parent does not listen any more
    except BaseException as error:
        sender.fail(error)


__all__ = [
    "Sender",
    "Worker",
    "WorkerDied",
    "WorkerTraceback",
    "close_all",
    "how_it_ended",
    "ready",
    "start",
]
