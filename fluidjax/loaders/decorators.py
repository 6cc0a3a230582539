"""Readers: functions without arguments that return an iterable of samples, and functions that make
new readers from them.
"""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import Any

from ..errors import ArgumentError, FluidTypeError, FluidValueError
from .channel import Background

Reader = Callable[[], Iterable[Any]]


@dataclass(frozen=True)
class ReaderPass:
    """One pass over a reader that knows its position: its number, and the number of batches that it
    skips at the beginning.
    """

    epoch: int
    skip: int = 0


# The pass that a reader is read for; our threads that read ahead inherit their consumer's.
reading_pass: ContextVar[ReaderPass | None] = ContextVar("reading_pass", default=None)


class ComposeNotAligned(FluidValueError):
    """The readers that compose combines have different lengths."""


def cache(reader: Reader) -> Reader:
    """A reader that keeps all samples of `reader`, which is read once, at this call."""
    samples = tuple(_checked("cache", reader)())

    def cached() -> Iterator[Any]:
        yield from samples

    return cached


def map_readers(func: Callable[..., Any], *readers: Reader) -> Reader:
    """A reader of ``func(a, b, ...)`` on one sample from each reader; it ends with the shortest
    reader.
    """
    for r in readers:
        _checked("map_readers", r)

    def mapped() -> Iterator[Any]:
        yield from map(func, *(r() for r in readers))

    return mapped


def shuffle(reader: Reader, buf_size: int, seed: int | None = None) -> Reader:
    """A reader that shuffles blocks of `buf_size` samples.

    seed: None uses Python's ``random``. With a number the order of pass n depends only on it and n,
    so that a run can resume from a checkpoint in the middle of a pass: n is the pass of the
    DataLoader or resumable reader around it, else counted here. Without a seed resuming raises
    FluidValueError.
    """
    _checked("shuffle", reader)
    if seed is not None and type(seed) is not int:
        raise FluidTypeError(f"shuffle's seed is a whole number or None, not {type(seed).__name__}")
    counter = itertools.count()

    def shuffled() -> Iterator[Any]:
        now = reading_pass.get()
        if seed is None and now is not None and now.skip:
            raise FluidValueError(
                "a shuffle without a seed cannot resume in the middle of a pass, because its order"
                " would change; give shuffle a seed"
            )
        number = next(counter) if now is None else now.epoch
        draw = random.shuffle if seed is None else random.Random(f"{seed} {number}").shuffle
        samples = iter(reader())
        while block := list(itertools.islice(samples, max(1, buf_size))):
            draw(block)
            yield from block

    return shuffled


def chain(*readers: Reader) -> Reader:
    """A reader of the first reader's samples, then the second's, and so on."""
    for r in readers:
        _checked("chain", r)

    def chained() -> Iterator[Any]:
        for r in readers:
            yield from r()

    return chained


def compose(*readers: Reader, check_alignment: bool = True) -> Reader:
    """A reader of tuples of one sample from each reader; samples that are tuples are flattened.

    Readers of different lengths raise ComposeNotAligned or, with check_alignment=False, end with
    the shortest.
    """
    for r in readers:
        _checked("compose", r)
    end = object()

    def composed() -> Iterator[tuple[Any, ...]]:
        streams = [iter(r()) for r in readers]
        for row in (
            itertools.zip_longest(*streams, fillvalue=end)
            if check_alignment
            else zip(*streams, strict=False)
        ):
            short = [i for i, sample in enumerate(row) if sample is end]
            if short:
                raise ComposeNotAligned(
                    f"outputs of readers are not aligned: reader {short[0]} of {len(readers)} ends"
                    " before the others; check_alignment=False stops at the shortest"
                )
            yield tuple(
                itertools.chain.from_iterable(s if isinstance(s, tuple) else (s,) for s in row)
            )

    return composed


def buffered(reader: Reader, size: int) -> Reader:
    """A reader whose samples a background thread reads, up to `size` ahead (0: any number).

    Errors of `reader` are raised in the consumer; the thread ends when the consumer stops.
    """
    _checked("buffered", reader)

    def ahead() -> Iterator[Any]:
        yield from Background(reader, size, "fluidjax-buffered")

    return ahead


def firstn(reader: Reader, n: int) -> Reader:
    """A reader of the first `n` samples."""
    _checked("firstn", reader)

    def first() -> Iterator[Any]:
        yield from itertools.islice(reader(), n)

    return first


def xmap_readers(
    mapper: Callable[[Any], Any],
    reader: Reader,
    process_num: int,
    buffer_size: int,
    order: bool = False,
) -> Reader:
    """A reader of ``mapper(sample)``, computed by `process_num` threads, with `buffer_size` samples
    in progress.

    order: keep the samples' order; otherwise they come as they are ready. Errors of the mapper or
    the reader are raised in the consumer. Raises FluidValueError unless both numbers are positive.
    """
    _checked("xmap_readers", reader)
    for what, value in (("process_num", process_num), ("buffer_size", buffer_size)):
        if value <= 0:
            raise FluidValueError(f"xmap_readers' {what} is a positive number, not {value!r}")

    def mapped() -> Iterator[Any]:
        pool = ThreadPoolExecutor(process_num, "fluidjax-xmap")
        samples = buffered(reader, buffer_size)()
        try:
            yield from _in_pool(pool, mapper, samples, max(buffer_size, process_num), order)
        finally:
            samples.close()  # type: ignore[attr-defined]  # a generator
            pool.shutdown(cancel_futures=True)

    return mapped


def _in_pool(
    pool: ThreadPoolExecutor, mapper: Any, samples: Iterable[Any], ahead: int, order: bool
) -> Iterator[Any]:
    """Results of the mapper, with at most `ahead` of them in progress. The pool's threads inherit
    the context.
    """
    running: deque[Future[Any]] = deque()
    for sample in samples:
        running.append(pool.submit(copy_context().run, mapper, sample))
        if len(running) >= ahead:
            yield _take(running, order)
    while running:
        yield _take(running, order)


def _take(running: deque[Future[Any]], order: bool) -> Any:
    """Remove and return the result of the oldest future, or of any that is ready."""
    future = running[0] if order else next(iter(wait(running, return_when=FIRST_COMPLETED).done))
    running.remove(future)
    return future.result()


def multiprocess_reader(
    readers: list[Reader], use_pipe: bool = True, queue_size: int = 1000
) -> Reader:
    """A reader of the samples of several readers, each in a process of its own, which is forked and
    ends with the iteration.

    use_pipe: one sample of each reader in turn, with tuples as lists, as in 1.8.5; False: samples
    come as they are ready. queue_size: accepted as in Fluid; a reader waits when its pipe is full.
    An error of a reader is the cause of a FluidValueError in the consumer, with the traceback of
    the process. Raises FluidTypeError for anything but a list of readers, FluidValueError for a
    sample that is None.
    """
    if not isinstance(readers, list) or not readers:
        raise FluidTypeError(
            "multiprocess_reader takes a list of readers, with one reader at least"
        )
    for r in readers:
        _checked("multiprocess_reader", r)

    def read() -> Iterator[Any]:
        from .side_by_side import in_turn

        yield from in_turn(readers, use_pipe)

    return read


def batch(reader: Reader, batch_size: int, drop_last: bool = False) -> Reader:
    """A reader of lists of `batch_size` samples; the last may be shorter unless drop_last.

    Raises ArgumentError unless batch_size is positive.
    """
    _checked("batch", reader)
    batch_size = int(batch_size)
    if batch_size <= 0:
        raise ArgumentError(
            f"batch_size should be a positive integer, but got batch_size={batch_size}"
        )

    def batches() -> Iterator[list[Any]]:
        samples = iter(reader())
        while block := list(itertools.islice(samples, batch_size)):
            if len(block) == batch_size or not drop_last:
                yield block

    return batches


def _checked(who: str, reader: Any) -> Reader:
    if not callable(reader):
        raise FluidTypeError(
            f"{who} takes readers, functions that return an iterable of samples, not"
            f" {type(reader).__name__}"
        )
    return reader


__all__ = [
    "ComposeNotAligned",
    "batch",
    "buffered",
    "cache",
    "chain",
    "compose",
    "firstn",
    "map_readers",
    "multiprocess_reader",
    "shuffle",
    "xmap_readers",
]
