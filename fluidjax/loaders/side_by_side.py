"""Readers that run in parallel, each in a process of its own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ..errors import FluidError, FluidValueError
from .processes import Sender, Worker, close_all, ready, start

Reader = Callable[[], Iterable[Any]]


def in_turn(readers: Sequence[Reader], fair: bool) -> Iterator[Any]:
    """The samples of all readers. fair: one from each reader in turn, with tuples as lists; else in
    the order in which they are ready.
    """
    workers: list[Worker] = []
    try:
        for number, reader in enumerate(readers):
            work = functools.partial(_send, reader=reader)
            start(workers, work, f"reader {number} of multiprocess_reader")
        running = list(workers)
        while running:
            for worker in list(running) if fair else ready(running):
                more, sample = _next_sample(worker)
                if more:
                    yield _listed(sample) if fair else sample
                else:
                    running.remove(worker)
    finally:
        close_all(workers)


def _next_sample(worker: Worker) -> tuple[bool, Any]:
    """The next sample of a reader. Raises FluidValueError (Paddle raises a ValueError) with the
    reader's error as its cause.
    """
    try:
        found: tuple[bool, Any] = worker.take()
    except FluidError:
        raise
    except Exception as exc:
        raise FluidValueError(f"{worker.name} raised {type(exc).__name__}: {exc}") from exc
    return found


def _send(sender: Sender, reader: Reader) -> None:
    for sample in reader():
        if sample is None:
            raise FluidValueError("a reader of multiprocess_reader gave None for a sample")
        sender.send((True, sample))
    sender.send((False, None))


def _listed(sample: Any) -> Any:
    return [_listed(one) for one in sample] if isinstance(sample, list | tuple) else sample


__all__ = ["in_turn"]
