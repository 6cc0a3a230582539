"""DataLoader: batches of a Python generator, which a background thread checks and copies to the
device.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ..base.progress import asked, bar
from ..core import EOFException
from ..data_feeder import sample_rule, stacked
from ..devices.place import Place, as_place
from ..errors import (
    ArgumentError,
    FeedError,
    FluidError,
    FluidTypeError,
    FluidValueError,
    ReaderError,
)
from ..feeds.feeding import FeedRule, ranges, rule_for
from ..graph.program import Program
from ..graph.variable import Variable
from ..lod_tensor import LoDTensor, as_tensor
from .by_length import batch_by_length
from .channel import Background
from .decorators import ReaderPass, batch, reading_pass
from .own_iteration import OwnIteration
from .position import Positioned
from .sample_loader import SampleLoader

if TYPE_CHECKING:
    from .slots.loader import DatasetLoader

Source = Callable[[], Iterable[Any]]
Feed = dict[str, Any]


def _user_items(reader: Source) -> Iterator[Any]:
    """The items of a user's reader. Raises ReaderError with the reader's error as its cause."""
    try:
        yield from reader()
    except (FluidError, EOFException):
        raise
    except Exception as exc:
        raise ReaderError(f"the reader of a DataLoader raised {type(exc).__name__}: {exc}") from exc


class GeneratorLoader(OwnIteration, Positioned):
    """The result of DataLoader.from_generator: set a generator, then iterate, or start it and run
    the program.

    Iterating (``for data in loader():``) yields feeds for Executor.run: a list with one dict of
    LoDTensors for each place, which are arrays too; with return_list, lists instead of dicts. Each
    iteration calls the generator again, in a thread that is up to `capacity` batches ahead; leaving
    the loop stops it. An error of the generator is the cause of a ReaderError (an EnforceNotMet) in
    the loop. Dtypes, shapes and ranges (labels, ids) are checked on the host before the transfer:
    FeedError.

    ``position`` is the pass and the number of its batches so far; ``resume(position)`` makes the
    next pass begin there (docs/checkpoints.md).
    """

    def __init__(
        self,
        feed_list: Sequence[Variable] | None,
        capacity: int | None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = False,
        drop_last: bool = True,
    ) -> None:
        if not capacity or int(capacity) <= 0:
            raise FluidValueError(
                "a DataLoader needs a capacity, the number of batches to prefetch, not"
                f" {capacity!r}"
            )
        if not feed_list:
            raise FluidValueError(
                "a DataLoader needs a feed_list: the variables that the generator's batches are for"
            )
        for var in feed_list:
            sample_rule(var)
        super().__init__()
        self._feed_list = list(feed_list)
        self._capacity = int(capacity)
        self._to_device = use_double_buffer
        self._iterable = iterable
        self._return_list = return_list
        self._drop_last = drop_last
        self._places: list[Place] = []
        self._source: Source | None = None
        self._running: Background | None = None
        self._pass = ReaderPass(0)
        if not iterable:
            # Executor.run asks these loaders for the feed
            self._program.update_info(readers=(*self._program.info.readers, self))

    @property
    def iterable(self) -> bool:
        return self._iterable

    @property
    def _program(self) -> Program:
        return self._feed_list[0].block.program

    # -- sources of batches ------------------------------------------------------------------------

    def set_sample_generator(
        self, reader: Source, batch_size: int, drop_last: bool = True, places: Any = None, sort_window: int = 0,
        sort_seed: int | None = None,
    ) -> GeneratorLoader:  # fmt: skip
        """`reader` yields samples (a tuple with a field for each variable); `batch_size` of them
        make a batch.

        drop_last: leave out a shorter last batch. places: a place or a list of them; required if
        the loader is iterated over. Samples are converted as by DataFeeder. sort_window: sort so
        many batches of samples at a time by the length of their first field, and yield them in an
        order that sort_seed decides (``reader.batch_by_length``); 0: do not sort.
        """
        if sort_window:
            return self.set_sample_list_generator(
                batch_by_length(reader, batch_size, sort_window, sort_seed, drop_last), places
            )
        return self.set_sample_list_generator(batch(reader, batch_size, drop_last), places)

    def set_sample_list_generator(self, reader: Source, places: Any = None) -> GeneratorLoader:
        """`reader` yields batches as lists of samples, such as ``paddle.batch`` makes."""

        def feeds() -> Iterator[Feed]:
            rules = self._rules()
            for samples in _user_items(reader):
                feed = stacked(rules, samples)
                yield {rule.name: rule(feed[rule.name]) for rule in rules}

        return self._set(feeds, reader, places)

    def set_batch_generator(self, reader: Source, places: Any = None) -> GeneratorLoader:
        """`reader` yields batches: a tuple or list with an array of the declared dtype for each
        variable.
        """

        def feeds() -> Iterator[Feed]:
            rules = self._rules()
            for arrays in _user_items(reader):
                yield _checked_batch(rules, arrays)

        return self._set(feeds, reader, places)

    def _set(
        self, feeds: Callable[[], Iterator[Feed]], reader: Any, places: Any
    ) -> GeneratorLoader:
        if not callable(reader):
            raise FluidTypeError(
                "a DataLoader takes a function that returns a generator, not"
                f" {type(reader).__name__}"
            )
        if self._iterable:
            if places is None:
                raise ArgumentError(
                    "places cannot be None when the DataLoader is iterable; give fluid.CPUPlace(),"
                    " for instance"
                )
            many = places if isinstance(places, list | tuple) else [places]
            if not many:
                raise FluidValueError("a DataLoader needs at least one place")
            self._places = [as_place(p) for p in many]
        self._source = feeds
        return self

    def _rules(self) -> list[FeedRule]:
        """The rules of each variable, with the ranges that the program's ops expect at this
        time.
        """
        desc = self._program.desc
        bounds = ranges(desc, tuple(op for block in desc.blocks for op in block.ops))
        return [rule_for(var.desc, bounds.get(var.name, ())) for var in self._feed_list]

    # -- iterating ---------------------------------------------------------------------------------

    def __call__(self) -> GeneratorLoader:
        return self

    def __iter__(self) -> Iterator[list[Any]]:
        if not self._iterable:
            raise ArgumentError(
                "this DataLoader is not iterable: it was made with iterable=False; call start() and"
                " run the program"
            )
        return self._batches(self._ready())

    def _ready(self) -> Source:
        if self._source is None:
            raise ArgumentError(
                "the DataLoader has no source of data yet; call set_sample_generator or the like"
                " first"
            )
        return self._source

    def _batches(self, source: Source) -> Iterator[list[Any]]:
        now = self._begin()
        with (
            contextlib.closing(self._ahead(now, self._placed(source, now.skip))) as groups,
            bar("loader", show=asked()) as progress,
        ):
            for group in groups:
                self._handed_out(now)
                yield group
                progress.step()
        self._ended(now)

    def _ahead(self, now: ReaderPass, items: Iterable[Any]) -> Background:
        """The items, read ahead as part of a pass."""
        context = contextvars.copy_context()
        context.run(reading_pass.set, now)
        return context.run(lambda: Background(lambda: items, self._capacity, "fluidjax-loader"))

    def groups(self) -> Iterator[list[Any]]:
        """The batches of a pass in the form that iterating yields, made in the caller's thread."""
        return self._placed(self._ready(), 0)

    def _placed(self, source: Source, skip: int) -> Iterator[list[Any]]:
        """Groups of a feed for each place, on its device; the first `skip` are left out."""
        devices = [place.device() for place in self._places]
        group: list[Feed] = []
        for feed in _skipping(skip * len(devices), source):
            group.append(self._put(feed, devices[len(group)]))
            if len(group) == len(devices):
                yield self._shown(group)
                group = []
        if group and not self._drop_last:
            yield self._shown(group)

    def _put(self, feed: Feed, device: Any) -> Feed:
        """The feed copied to the device, so that the generator may reuse its arrays; the executor
        transfers LoDTensors.
        """
        if not self._to_device:
            return feed
        with jax.enable_x64(True):
            # A copy of our own: on the CPU a transfer may still read the generator's array after it
            # returns.
            return {
                n: v if isinstance(v, LoDTensor) else jax.device_put(np.array(v), device)
                for n, v in feed.items()
            }

    def _shown(self, group: list[Feed]) -> list[Any]:
        if self._return_list:
            return [[as_tensor(feed[v.name]) for v in self._feed_list] for feed in group]
        return [{n: as_tensor(v) for n, v in feed.items()} for feed in group]

    # -- feeding the program by itself -------------------------------------------------------------

    def start(self) -> None:
        """Begin reading; each Executor.run of the program then takes a batch, until it raises
        core.EOFException.

        Raises ArgumentError for a loader that is iterated over, FluidValueError before reset() of
        an earlier start.
        """
        self._needs_start("start")
        if self._running is not None:
            raise FluidValueError("the DataLoader was started before; call reset() first")
        source = self._ready()
        self._pass = now = self._begin()
        self._running = self._ahead(
            now, (self._put(feed, None) for feed in _skipping(now.skip, source))
        )

    def reset(self) -> None:
        """Stop reading, so that start() can begin again from the first batch."""
        self._needs_start("reset")
        if self._running is not None:
            self._running.close()
            self._running = None

    def _reset(self) -> None:
        """Stop reading, also in an iteration of the loader itself: reset() of either kind of
        loader.
        """
        iterator, self._iterator = self._iterator, None
        if iterator is not None:
            iterator.close()  # type: ignore[attr-defined]
        if not self._iterable:
            self.reset()

    def _needs_start(self, what: str) -> None:
        if self._iterable:
            raise ArgumentError(
                f"{what}() cannot be called when the DataLoader is iterable; make it with"
                " iterable=False"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The variables that it feeds."""
        return tuple(v.name for v in self._feed_list)

    @property
    def drops_last(self) -> bool:
        """Whether last batches are left out if they are fewer than the devices."""
        return self._drop_last

    def next_feed(self) -> Feed:
        """The next batch of a started loader, for the executor. Raises EOFException at the end."""
        if self._running is None:
            raise FluidValueError(
                f"{self._feed_list[0].name!r} comes from a reader (py_reader, or a DataLoader with"
                " iterable=False); call its start() before the program runs"
            )
        feed, more = self._running.next()
        if not more:
            self._ended(self._pass)
            end = EOFException("There is no next data.")
            end.names = self.names
            raise end
        self._handed_out(self._pass)
        return feed


def _skipping(count: int, source: Source) -> Iterator[Any]:
    """The items of a source after the first `skip`. The source is called at the first access."""
    yield from islice(source(), count, None)


def _checked_batch(rules: Sequence[FeedRule], arrays: Any) -> Feed:
    """The arrays by name. Raises FeedError for arrays that do not fit."""
    names = ", ".join(repr(rule.name) for rule in rules)
    if isinstance(arrays, Mapping) or not isinstance(arrays, tuple | list):
        raise FeedError(
            f"a batch is a tuple or list of arrays for {names}, not a {type(arrays).__name__}"
        )
    if len(arrays) != len(rules):
        raise FeedError(
            f"a batch holds {len(arrays)} arrays, but the feed_list has {len(rules)} variables:"
            f" {names}"
        )
    # a device array with a range is copied to the host to be checked; this is the background thread
    return {
        rule.name: rule(
            np.asarray(value) if rule.ranges and isinstance(value, jax.Array) else value
        )
        for rule, value in zip(rules, arrays, strict=True)
    }


class DataLoader(SampleLoader):
    """Batches of a data set's samples, one pass for each iteration; `from_generator` and
    `from_dataset` make other loaders.

    dataset: a paddle.io.Dataset or IterableDataset. feed_list: the variables of a sample's fields;
    their dtypes, shapes and ranges are checked. places: default the first device; if there are
    several, each gets a batch. return_list: lists of arrays instead of dicts. batch_sampler: lists
    of numbers of samples, in place of batch_size, shuffle and drop_last. collate_fn: makes a list
    of arrays from a list of samples; default one array for each field. num_workers: processes that
    read and collate; they are forked and end with the iteration. use_buffer_reader: copy batches to
    the device before their use. use_shared_memory: accepted as in Fluid. timeout: seconds to wait
    for a worker's batch before a TimeoutError; 0: no limit. worker_init_fn: called in each worker
    with its number.

    Raises FluidTypeError, FluidValueError for arguments that do not fit. The iteration raises the
    data set's errors, with the worker's traceback as their cause, and WorkerDied.
    """

    def __init__(
        self, dataset: Any, feed_list: Sequence[Variable] | None = None, places: Any = None, return_list: bool = False,
        batch_sampler: Any = None, batch_size: int = 1, shuffle: bool = False, drop_last: bool = False, collate_fn: Any = None,
        num_workers: int = 0, use_buffer_reader: bool = True, use_shared_memory: bool = True, timeout: float = 0,
        worker_init_fn: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            dataset, feed_list, as_place(None) if places is None else places, return_list, batch_sampler, batch_size, shuffle, drop_last,
            collate_fn, num_workers, use_buffer_reader, timeout, worker_init_fn, GeneratorLoader,
        )  # fmt: skip

    @staticmethod
    def from_generator(
        feed_list: Sequence[Variable] | None = None,
        capacity: int | None = None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = False,
        use_multiprocess: bool = False,
        drop_last: bool = True,
    ) -> GeneratorLoader:
        """A loader for these fed variables.

        capacity: the number of batches to prefetch. use_double_buffer: copy them to the device
        before their use; otherwise they stay NumPy arrays. iterable: iterate over the loader;
        False: start() it and run the program without feed. return_list: yield lists instead of
        dicts. use_multiprocess: no effect for static programs, as in Fluid. drop_last: with several
        places, leave out last batches that are fewer than the places.

        Raises FluidValueError without feed_list or capacity.
        """
        return GeneratorLoader(
            feed_list, capacity, use_double_buffer, iterable, return_list, drop_last
        )

    @staticmethod
    def from_dataset(dataset: Any, places: Any, drop_last: bool = True) -> DatasetLoader:
        """A loader of the batches of a dataset of files from DatasetFactory().create_dataset.

        places: a place, or a list of them; each gets a batch. drop_last: leave out an incomplete
        last batch, or last batches that are fewer than the places. Raises FluidTypeError for
        another dataset.
        """
        from .slots.loader import DatasetLoader

        return DatasetLoader(dataset, places, drop_last)


class PyReader(GeneratorLoader):
    """The older name of DataLoader.from_generator, with ``decorate_*`` for ``set_*``."""

    def __init__(
        self,
        feed_list: Sequence[Variable] | None = None,
        capacity: int | None = None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = False,
    ) -> None:
        super().__init__(feed_list, capacity, use_double_buffer, iterable, return_list)

    def decorate_sample_generator(
        self, sample_generator: Source, batch_size: int, drop_last: bool = True, places: Any = None
    ) -> None:
        """As set_sample_generator."""
        self.set_sample_generator(sample_generator, batch_size, drop_last, places)

    def decorate_sample_list_generator(self, reader: Source, places: Any = None) -> None:
        """As set_sample_list_generator."""
        self.set_sample_list_generator(reader, places)

    def decorate_batch_generator(self, reader: Source, places: Any = None) -> None:
        """As set_batch_generator."""
        self.set_batch_generator(reader, places)


__all__ = ["DataLoader", "PyReader"]
