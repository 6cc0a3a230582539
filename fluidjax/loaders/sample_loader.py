"""Batches of a data set's samples, with or without worker processes: the loader of
DataLoader(dataset, ...).
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import FluidTypeError, FluidValueError
from .channel import Background
from .processes import Sender, Worker, close_all, start
from .samples import BatchSampler, Dataset, IterableDataset

Collate = Callable[[list[Any]], Any]
_AHEAD = 2  # batches in progress in each worker


@dataclass(frozen=True)
class WorkerInfo:
    """The number of this worker process, the number of workers, and the data set."""

    id: int
    num_workers: int
    dataset: Any


_this: WorkerInfo | None = None  # set in a worker


def get_worker_info() -> WorkerInfo | None:
    """The current worker; None outside of worker processes."""
    return _this


def fields_of(samples: list[Any]) -> list[np.ndarray]:
    """A batch: one array for each field of the samples, with a new first dimension. Raises
    FluidValueError for unequal shapes.
    """
    rows = [[sample] if isinstance(sample, np.ndarray) else list(sample) for sample in samples]
    if len({len(row) for row in rows}) > 1:
        raise FluidValueError(
            f"the samples of a batch have {sorted({len(row) for row in rows})} fields"
        )
    try:
        return [np.stack(field) for field in zip(*rows, strict=True)]
    except ValueError:
        shapes = [sorted({np.shape(value) for value in field}) for field in zip(*rows, strict=True)]
        raise FluidValueError(
            f"the fields of a batch's samples differ in shape: {shapes}; give a collate_fn that"
            " pads them"
        ) from None


@dataclass(frozen=True)
class Plan:
    """How batches are made, in this process or in workers."""

    dataset: Any
    sampler: Any
    batch_size: int
    drop_last: bool
    collate: Collate
    workers: int
    timeout: float | None
    init: Callable[[int], None] | None

    def here(self) -> Iterator[Any]:
        """The batches, made by this process."""
        if self.sampler is not None:
            for indices in self.sampler:
                yield self.collate([self.dataset[i] for i in indices])
            return
        samples = iter(self.dataset)
        while batch := list(itertools.islice(samples, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.collate(batch)

    def work(self, sender: Sender, number: int) -> None:
        """In a worker: answer each request with a batch, and whether there is one."""
        global _this
        _this = WorkerInfo(number, self.workers, self.dataset)
        if self.init is not None:
            self.init(number)
        batches = self.here() if self.sampler is None else None
        while True:
            indices = sender.receive()
            if batches is None:
                sender.send((True, self.collate([self.dataset[i] for i in indices])))
            else:
                batch = next(batches, None)
                sender.send((batch is not None, batch))

    def gathered(self, workers: Sequence[Worker]) -> Iterator[Any]:
        """The workers' batches, in the order of the requests."""
        asked: deque[Worker] = deque()
        wanted = iter(self.sampler) if self.sampler is not None else itertools.repeat(None)
        turn, done = itertools.cycle(workers), set[Worker]()
        for indices in itertools.islice(wanted, _AHEAD * len(workers)):
            asked.append(next(turn))
            asked[-1].send(indices)
        while asked:
            worker = asked.popleft()
            more, batch = worker.take(self.timeout)
            if not more:
                done.add(worker)
                continue
            if worker not in done:
                for indices in itertools.islice(wanted, 1):
                    worker.send(indices)
                    asked.append(worker)
            yield batch


class SampleLoader:
    """The iteration over a data set: batches for each place. See DataLoader."""

    def __init__(
        self, dataset: Any, feed_list: Any, places: Any, return_list: bool, batch_sampler: Any, batch_size: int, shuffle: bool,
        drop_last: bool, collate_fn: Any, num_workers: int, use_buffer_reader: bool, timeout: float, worker_init_fn: Any,
        loader: Any,
    ) -> None:  # fmt: skip
        if not isinstance(dataset, Dataset):
            made = type(dataset).__name__
            raise FluidTypeError(
                f"DataLoader takes a paddle.io.Dataset, not {made}; for a generator there is"
                " from_generator"
            )
        if not return_list and not feed_list:
            raise FluidValueError(
                "a DataLoader needs a feed_list, the variables that the fields are for, or"
                " return_list=True"
            )
        if type(num_workers) is not int or num_workers < 0 or timeout < 0:
            raise FluidValueError(
                f"a DataLoader's num_workers and timeout are numbers from 0, not {num_workers!r}"
                f" and {timeout!r}"
            )
        self.batch_sampler = _sampler(dataset, batch_sampler, batch_size, shuffle, drop_last)
        self.dataset, self.feed_list, self.return_list, self.num_workers = (
            dataset,
            feed_list,
            return_list,
            num_workers,
        )
        self._places = list(places) if isinstance(places, list | tuple) else [places]
        self._plan = Plan(
            dataset,
            self.batch_sampler,
            batch_size,
            drop_last,
            collate_fn or fields_of,
            num_workers,
            timeout or None,
            worker_init_fn,
        )
        self._loader, self._buffer = loader, use_buffer_reader

    def __len__(self) -> int:
        """The number of batches of a pass. Raises FluidTypeError for an IterableDataset."""
        return len(self.dataset) if self.batch_sampler is None else len(self.batch_sampler)

    def __call__(self) -> Iterator[Any]:
        return iter(self)

    def __iter__(self) -> Iterator[Any]:
        """Each batch as a feed for Executor.run: a list with a dict for each place; with
        return_list, lists of arrays instead.
        """
        if not self.num_workers:
            with contextlib.closing(
                Background(lambda: self._groups(self._plan.here), _AHEAD, "fluidjax-loader")
            ) as groups:
                yield from groups
            return
        workers: list[Worker] = []
        try:
            for number in range(self.num_workers):
                work = functools.partial(self._plan.work, number=number)
                start(workers, work, f"worker {number} of the DataLoader")
            alone = self.return_list and len(self._places) == 1
            # workers read ahead, so no further thread is needed
            for group in self._groups(lambda: self._plan.gathered(workers)):
                yield group[0] if alone else group  # as in 1.8.5
        finally:
            close_all(workers)

    def _groups(self, batches: Callable[[], Iterable[Any]]) -> Iterator[Any]:
        """A batch for each place, checked and on the device if variables are known; groups that are
        too small are left out.
        """
        if self.feed_list:
            loader = self._loader(self.feed_list, _AHEAD, self._buffer, True, self.return_list)
            yield from loader.set_batch_generator(batches, self._places).groups()
            return
        made = iter(batches())
        while len(group := list(itertools.islice(made, len(self._places)))) == len(self._places):
            yield group


def _sampler(dataset: Any, given: Any, batch_size: int, shuffle: bool, drop_last: bool) -> Any:
    """The sampler of sample numbers; None for a data set to iterate over."""
    if isinstance(dataset, IterableDataset):
        if given is not None or shuffle:
            raise FluidValueError(
                "an IterableDataset has its own order; batch_sampler and shuffle have no effect on "
                "it"
            )
        if type(batch_size) is not int or batch_size <= 0:
            raise FluidValueError(
                f"a DataLoader's batch_size is a positive whole number, not {batch_size!r}"
            )
        return None
    if given is None:
        return BatchSampler(dataset, shuffle=shuffle, batch_size=batch_size, drop_last=drop_last)
    if (batch_size, shuffle, drop_last) != (1, False, False):
        raise FluidValueError(
            "a batch_sampler has its own batch_size, shuffle and drop_last; do not pass them as "
            "well"
        )
    return given


__all__ = ["SampleLoader", "WorkerInfo", "get_worker_info"]
