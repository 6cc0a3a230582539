"""Worker processes of readers and loaders. They are forked, so that they can run any function, and
they end with the process that started them.

A worker runs the user's Python and NumPy, and nothing of JAX, whose threads do not survive a fork.
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

_LARGE = 1 << 14  # bytes of an array from which on it is not copied into a message
_PATIENCE = 5.0  # seconds after which a worker looks whether its parent is still there


class WorkerDied(FluidError, RuntimeError):
    """A worker process ended without a word."""


class WorkerTraceback(Exception):
    """Where in a worker an exception was raised; the cause of the one that its parent raises."""


class Worker:
    """A forked process that runs ``work(sender)``; the parent sends and receives through ``take``.

    Raises FluidValueError where processes cannot be forked.
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
            warnings.simplefilter("ignore")  # that threads are not forked along; see above
            self._process.start()
        theirs.close()

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def send(self, value: Any) -> None:
        """Hand a value to the worker. Where it has ended `take` tells why, after what it sent
        before.
        """
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._mine.send(value)

    def take(self, timeout: float | None = None) -> Any:
        """What the worker sends next. Raises what the worker raised, WorkerDied, and TimeoutError
        after `timeout` seconds.
        """
        heard = wait([self._mine, self._process.sentinel], timeout)
        if not heard:
            raise TimeoutError(f"{self.name} gave nothing for {timeout} seconds")
        # it ends; what it sent before still comes
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
        """What is ready when it has sent something, and when it has ended."""
        return self._mine, self._process.sentinel

    def close(self) -> None:
        """End the process and give back what belonged to it."""
        self._process.kill()
        self._mine.close()
        self._process.join()
        self._process.close()


def how_it_ended(code: int | None) -> str:
    """In words what the exit status of a process says; None: there is none."""
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
    """Those workers that have sent something or have ended; waits for the first."""
    ends = {end: worker for worker in workers for end in worker.ends()}
    return list(dict.fromkeys(ends[end] for end in wait(list(ends))))


def start(workers: list[Worker], work: Callable[[Sender], None], name: str) -> None:
    """Add a worker to those that `close_all` ends; Ctrl-C comes before or after it is among
    them.
    """
    with uninterrupted():
        workers.append(Worker(work, name))


def close_all(workers: Sequence[Worker]) -> None:
    """End the processes, all of them: Ctrl-C waits."""
    with uninterrupted():
        for worker in workers:
            worker.close()


class Sender:
    """A worker's end: what it gives to its parent."""

    def __init__(self, connection: Connection, parent: int) -> None:
        self._connection, self._parent = connection, parent

    def send(self, value: Any) -> None:
        large: list[memoryview] = []  # what is in them goes as it is, without a copy

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
        except Exception:  # of an exception that cannot be sent, the text is
            data = pickle.dumps(("error", (RuntimeError(f"{type(error).__name__}: {error}"), text)))
        self._send(data, ())

    def _send(self, data: bytes, large: Sequence[memoryview]) -> None:
        self._connection.send_bytes(array("q", [raw.nbytes for raw in large]).tobytes())
        self._connection.send_bytes(data)
        for raw in large:
            while raw.nbytes:
                raw = raw[os.write(self._connection.fileno(), raw) :]

    def receive(self) -> Any:
        """What the parent sends next. Ends the process where the parent is gone."""
        while not self._connection.poll(_PATIENCE):
            if os.getppid() != self._parent:
                os._exit(1)
        return self._connection.recv()


def _received(connection: Connection) -> Any:
    """What a Sender sent, a fork of this very process; large arrays in it are read to where they
    stay. Raises EOFError at its end.
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.freeze()  # what the parent made, arrays on devices among it, is not for a worker to free
    sender = Sender(connection, parent)
    try:
        work(sender)
    except (BrokenPipeError, ConnectionResetError, EOFError):
        pass  # nobody listens any more
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
