"""DatasetFactory and its datasets of files of slots, over which Executor.train_from_dataset runs a
program.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import islice
from typing import Any, NoReturn

import numpy as np

from ...base.dtypes import VarType
from ...base.progress import waiting
from ...errors import FluidTypeError, FluidValueError, UnsupportedError, near
from ...graph.variable import Variable
from ..channel import Background
from . import proto
from .blocks import Blocks
from .feeds import Feed, Rooms, feed_of
from .files import AS_IT_IS, Commands, opened, show
from .lines import Slot, parse
from .parsers import Parser, parsers
from .records import Records, in_batches, joined

_AHEAD = 4  # blocks of a file that are parsed ahead
_HERE = 4  # blocks of the first file that are parsed here while a process starts
_BATCHES = 8  # batches that are made ahead
_NONE = Records((), np.zeros((0, 1), np.int64))  # no samples
_KINDS = {VarType.FP32: "float", VarType.INT64: "uint64"}


class DatasetBase:
    """Files of lines of slots, and the settings of their batches.

    Each line is a sample. It holds, for each variable in turn, the number of its values and then
    the values. A variable with a lod_level takes any number of values, as a LoDTensor of shape
    [values, 1]; any other variable takes the number that its shape gives.
    """

    def __init__(self, name: str) -> None:
        self.proto_desc = proto.new()
        self.proto_desc.name = name
        self.thread_num = 1
        self._rooms = Rooms()
        self.filelist: list[str] = []

    def set_pipe_command(self, pipe_command: str) -> None:
        """A shell command that reads a file on its standard input and writes lines of slots;
        default "cat".

        It runs once for each file, is shown on stderr before it runs, and gets the environment of
        this process.
        """
        if not isinstance(pipe_command, str) or not pipe_command.strip():
            raise FluidTypeError(f"set_pipe_command takes a shell command, not {pipe_command!r}")
        self.proto_desc.pipe_command = pipe_command

    def set_batch_size(self, batch_size: int) -> None:
        """The number of samples of a batch; the last batch of a pass may have fewer. Default 32."""
        if (
            isinstance(batch_size, bool)
            or not isinstance(batch_size, int | np.integer)
            or batch_size <= 0
        ):
            raise FluidValueError(
                f"set_batch_size takes a positive whole number, not {batch_size!r}"
            )
        self.proto_desc.batch_size = int(batch_size)

    def set_thread(self, thread_num: int) -> None:
        """The number of files that are read at the same time; their order stays. Training still
        runs one step after another.
        """
        if isinstance(thread_num, bool) or not isinstance(thread_num, int | np.integer):
            raise FluidTypeError(f"set_thread takes a whole number, not {thread_num!r}")
        self.thread_num = int(thread_num)

    def set_filelist(self, filelist: Sequence[str]) -> None:
        """The files, by name; a name that ends in .gz is a compressed one."""
        if isinstance(filelist, str) or not all(isinstance(name, str) for name in filelist):
            raise FluidTypeError(f"set_filelist takes a list of names of files, not {filelist!r}")
        self.filelist = list(filelist)

    def set_use_var(self, var_list: Sequence[Variable]) -> None:
        """The variables that the slots of a line are for, in order, of dtype float32 or int64.

        Raises FluidTypeError for anything but variables, FluidValueError for another dtype or a
        shape with several unknown sizes.
        """
        slots = self.proto_desc.multi_slot_desc.slots
        if not isinstance(var_list, Iterable) or isinstance(var_list, str | Variable):
            raise FluidTypeError(f"set_use_var takes a list of variables, not {var_list!r}")
        for var in var_list:
            if not isinstance(var, Variable):
                raise FluidTypeError(f"set_use_var takes variables, not {type(var).__name__}")
            if var.dtype not in _KINDS:
                raise FluidValueError(
                    f"files of slots hold float32 and int64; {var.name!r} is"
                    f" {VarType(var.dtype).name}"
                )
            slot = slots.add(name=var.name, type=_KINDS[var.dtype], is_used=True)
            if var.lod_level == 0:
                if sum(n < 0 for n in var.shape[1:]) > 1:
                    raise FluidValueError(
                        f"{var.name!r} of shape {list(var.shape)} leaves several sizes open, which"
                        " a line cannot say"
                    )
                slot.is_dense = True
                slot.shape.extend(var.shape)

    def set_hdfs_config(self, fs_name: str, fs_ugi: str) -> NoReturn:
        """Not supported. Raises UnsupportedError."""
        raise UnsupportedError(
            "set_hdfs_config: files are read from local folders; copy them there first"
        )

    def set_download_cmd(self, download_cmd: str) -> None:
        """Paddle's command for fetching remote files; kept without effect, because files are read
        from local folders.
        """
        if not isinstance(download_cmd, str):
            raise FluidTypeError(f"set_download_cmd takes a shell command, not {download_cmd!r}")
        self.download_cmd = download_cmd

    def set_rank_offset(self, rank_offset: str) -> None:
        """The name, in the description, of a variable that Paddle fills for samples merged by page
        views; no effect.
        """
        self.proto_desc.rank_offset = rank_offset

    def set_pv_batch_size(self, pv_batch_size: int) -> None:
        """The number of page views of a batch, in the description; no effect, because samples are
        not merged by page views.
        """
        self.proto_desc.pv_batch_size = pv_batch_size

    def desc(self) -> str:
        """The text of the description: slots, batch size, pipe command."""
        return proto.shown(self.proto_desc)

    # -- for the runners of programs ---------------------------------------------------------------

    def feeds(self, commands: Commands | None = None) -> Iterator[Feed]:
        """A pass: a feed for Executor.run for each batch. Raises FluidValueError for errors in the
        files.

        commands: keeps track of the running pipe commands.
        """
        slots = self._slots()
        for batch in in_batches(self._parts(commands or Commands()), self.proto_desc.batch_size):
            yield feed_of(batch, slots, self._rooms)

    def ahead(self) -> Background:
        """A pass whose batches a thread makes ahead. Closing it also ends pipe commands, even if
        they write nothing.
        """
        commands = Commands()
        return Background(lambda: self.feeds(commands), _BATCHES, "fluidjax-dataset", commands.end)

    def _parts(self, commands: Commands) -> Iterator[Records]:
        raise NotImplementedError

    def _slots(self, used: bool = True) -> list[Slot]:
        """The slots; used: only those that are fed."""
        if not self.proto_desc.multi_slot_desc.slots:
            raise FluidValueError(
                "the dataset does not know what its files hold; call set_use_var first"
            )
        return [
            Slot(s.name, s.type, tuple(s.shape) if s.is_dense else None, s.is_used)
            for s in self.proto_desc.multi_slot_desc.slots
            if s.is_used or not used
        ]

    def _read(self, commands: Commands) -> Iterator[Records]:
        """The contents of the files, one file after another; as many files as there are threads are
        read ahead.
        """
        if not self.filelist:
            return  # nothing is read, as in 1.8.5
        slots, command = self._slots(used=False), self.proto_desc.pipe_command or AS_IT_IS
        show(command, len(self.filelist))
        with ExitStack() as stack:
            apart = parsers(self.filelist, max(1, self.thread_num), slots, commands)
            stack.callback(_close, apart)

            def file(number: int) -> Background:
                parser = apart[number % len(apart)] if apart else None
                here = _HERE if number == 0 else 0
                parts = partial(
                    _parsed, self.filelist[number], command, slots, commands, parser, here
                )
                return Background(parts, _AHEAD, "fluidjax-dataset-file")

            numbers = iter(range(len(self.filelist)))
            running = [file(number) for number in islice(numbers, max(1, self.thread_num))]
            stack.callback(_close, running)
            stack.callback(commands.end)
            while running:
                yield from running[0]
                running.pop(0)
                running += [file(number) for number in islice(numbers, 1)]


def _close(running: Sequence[Background | Parser]) -> None:
    for one in running:
        one.close()


def _parsed(
    path: str,
    command: str,
    slots: Sequence[Slot],
    commands: Commands,
    parser: Parser | None,
    here: int,
) -> Iterator[Records]:
    """The contents of a file. parser: the process that parses it, except the first blocks, which
    are parsed here while the process starts.
    """
    as_it_is = command.strip() == AS_IT_IS
    shown_name, compressed = (
        path if as_it_is else f"{path} | {command}",
        as_it_is and path.endswith(".gz"),
    )
    with opened(path, command, commands) as stream:
        source: Any = gzip.GzipFile(fileobj=stream) if compressed else stream
        blocks = Blocks(source, path)
        if parser is not None:
            for content, number in islice(blocks, 0 if compressed else here):
                yield parse(content, slots, shown_name, number)
            if parser.ready():
                yield from parser.records(stream.fileno(), blocks, shown_name, compressed)
                return
        for content, number in blocks:
            yield parse(content, slots, shown_name, number)


class QueueDataset(DatasetBase):
    """A dataset whose files are read again in every pass, in order. Made by DatasetFactory."""

    feed = "MultiSlotDataFeed"

    def __init__(self) -> None:
        super().__init__(self.feed)

    def _parts(self, commands: Commands) -> Iterator[Records]:
        return self._read(commands)

    def local_shuffle(self) -> NoReturn:
        """Not supported for a dataset that is not in memory. Raises NotImplementedError."""
        raise NotImplementedError(
            f"a {type(self).__name__} is read in the order of its files; an InMemoryDataset can be"
            " shuffled"
        )

    def global_shuffle(self, fleet: Any = None) -> NoReturn:
        """Not supported for a dataset that is not in memory. Raises NotImplementedError."""
        self.local_shuffle()


class FileInstantDataset(QueueDataset):
    """A QueueDataset under another name of the feed in the description. Made by DatasetFactory."""

    feed = "MultiSlotFileInstantDataFeed"


class InMemoryDataset(DatasetBase):
    """A dataset that is read once, by load_into_memory, and may be shuffled. Made by
    DatasetFactory.

    As in 1.8.5, zeros among the values of a slot that is not dense are left out, and a sample with
    only zeros keeps one.
    """

    def __init__(self) -> None:
        super().__init__("MultiSlotInMemoryDataFeed")
        self._records: Records | None = None
        self._order: np.ndarray | None = None
        self._loading: Any = None
        self.queue_num: int | None = None
        self.fea_eval = False
        self._candidates = 0
        self.parse_ins_id = self.parse_content = self.merge_by_lineid = False

    def set_feed_type(self, data_feed_type: str) -> None:
        """The name of the feed in the description."""
        self.proto_desc.name = data_feed_type

    def set_queue_num(self, queue_num: int) -> None:
        """For Paddle's queues; kept without effect."""
        self.queue_num = queue_num

    def set_parse_ins_id(self, parse_ins_id: bool) -> None:
        """Whether each line begins with ``1 ID``, the name of the sample, which is skipped."""
        self.parse_ins_id = bool(parse_ins_id)

    def set_parse_content(self, parse_content: bool) -> None:
        """Whether ``1 TEXT`` comes before the slots, behind the name of the sample if there is one;
        it is skipped.
        """
        self.parse_content = bool(parse_content)

    def set_merge_by_lineid(self, merge_size: int = 2) -> None:
        """Make global_shuffle merge the samples of one name, which is not supported: it then raises
        UnsupportedError.
        """
        self.merge_by_lineid = self.parse_ins_id = True

    def set_generate_unique_feasigns(self, generate_uni_feasigns: bool, shard_num: int) -> None:
        """For tables of Paddle's own servers; no effect."""

    def generate_local_tables_unlock(
        self,
        table_id: int,
        fea_dim: int,
        read_thread_num: int,
        consume_thread_num: int,
        shard_num: int,
    ) -> None:
        """For tables of Paddle's own servers; no effect."""

    def _slots(self, used: bool = True) -> list[Slot]:
        before = [("ins_id", self.parse_ins_id), ("content", self.parse_content)]
        return [
            Slot(name, "uint64", None, False) for name, there in before if there and not used
        ] + super()._slots(used)

    def set_fleet_send_batch_size(self, fleet_send_batch_size: int = 1024) -> None:
        """For messages between trainers; no effect."""

    def set_fleet_send_sleep_seconds(self, fleet_send_sleep_seconds: int = 0) -> None:
        """For messages between trainers; no effect."""

    def load_into_memory(self) -> None:
        """Read the files. Raises FluidValueError for errors in them; the samples in memory do not
        change then.
        """
        with waiting(f"reading {len(self.filelist):,} files into memory"):
            self._keep(self._loaded(Commands()))

    def preload_into_memory(self, thread_num: int | None = None) -> None:
        """Begin to read the files in the background, until wait_preload_done. thread_num: the
        number of files at the same time.
        """
        if thread_num is not None:
            self.set_thread(thread_num)
        pool, commands = ThreadPoolExecutor(1, "fluidjax-preload"), Commands()
        self._loading = pool.submit(self._loaded, commands), commands
        pool.shutdown(wait=False)

    def wait_preload_done(self) -> None:
        """Wait until preload_into_memory is done. Raises its errors."""
        if self._loading is None:
            raise FluidValueError("nothing is being loaded; call preload_into_memory first")
        (loading, commands), self._loading = self._loading, None
        try:
            with waiting(f"waiting for {len(self.filelist):,} files that are read into memory"):
                self._keep(loading.result())
        finally:
            commands.end()  # Ctrl-C may have ended the wait

    def _loaded(self, commands: Commands) -> Records | None:
        parts = list(self._read(commands))
        if not parts:
            return None
        ragged = [slot.shape is None for slot in self._slots()]
        columns = zip(joined(parts).columns, ragged, strict=True)
        return Records.of([c.without_zeros() if drop else c for c, drop in columns])

    def _keep(self, records: Records | None) -> None:
        self._records, self._order = records or _NONE, None

    def _ready(self, what: str) -> Records:
        if self._records is None:
            raise FluidValueError(f"{what} needs data in memory; call load_into_memory first")
        return self._records

    def _parts(self, commands: Commands) -> Iterator[Records]:
        records = self._ready("an InMemoryDataset")
        size = max(int(self.proto_desc.batch_size), 1024)
        for begin in range(0, len(records), size):
            end = min(begin + size, len(records))
            yield (
                records.part(begin, end)
                if self._order is None
                else records.take(self._order[begin:end])
            )

    def local_shuffle(self) -> None:
        """Put the samples into a random order by Python's ``random``. Raises FluidValueError before
        load_into_memory.
        """
        count = int(self._count("local_shuffle"))
        self._order = np.random.default_rng(random.getrandbits(64)).permutation(count)

    def global_shuffle(self, fleet: Any = None, thread_num: int = 12) -> None:
        """As local_shuffle. With several trainers, each keeps the samples of its own files. Raises
        UnsupportedError for several.
        """
        if self.merge_by_lineid:
            raise UnsupportedError(
                "global_shuffle does not merge samples by their names; leave"
                " set_merge_by_lineid out"
            )
        if fleet is not None and fleet.worker_num() > 1:
            raise UnsupportedError(
                "global_shuffle sends no samples between trainers; give each its own files and use"
                " local_shuffle"
            )
        self.local_shuffle()

    def set_fea_eval(self, record_candidate_size: int, fea_eval: bool = True) -> None:
        """Allow slots_shuffle, which samples among so many samples."""
        self.fea_eval, self._candidates = fea_eval, int(record_candidate_size)

    def slots_shuffle(self, slots: Sequence[str]) -> None:
        """Exchange the values of these slots between samples at random, to see how much the slots
        matter. Call set_fea_eval before.

        Raises FluidValueError for an unknown slot, and before load_into_memory.
        """
        if not self.fea_eval:
            return
        records, names = self._ready("slots_shuffle"), [slot.name for slot in self._slots()]
        for name in slots:
            if name not in names:
                raise FluidValueError(f"there is no slot {name!r}{near(name, names)}")
        draw = np.random.default_rng(random.getrandbits(64))
        count = len(records)
        pool = draw.permutation(count)[: self._candidates]
        if len(pool):
            order = draw.choice(pool, count)
            columns = zip(records.columns, names, strict=True)
            self._records = Records.of([c.take(order) if n in slots else c for c, n in columns])

    def release_memory(self) -> None:
        """Drop the samples."""
        self._records = self._order = None

    def get_memory_data_size(self, fleet: Any = None) -> np.int64:
        """The number of samples in memory."""
        return np.int64(0) if self._records is None else self._count("get_memory_data_size")

    def get_shuffle_data_size(self, fleet: Any = None) -> np.int64:
        """The number of samples in the order of a shuffle."""
        return np.int64(0 if self._order is None else len(self._order))

    def _count(self, what: str) -> np.int64:
        return np.int64(len(self._ready(what)))


class DatasetFactory:
    """Makes datasets of files of slots."""

    def create_dataset(self, datafeed_class: str = "QueueDataset") -> DatasetBase:
        """A "QueueDataset", an "InMemoryDataset" or a "FileInstantDataset". Raises FluidValueError
        for another name.
        """
        made = {
            "QueueDataset": QueueDataset,
            "InMemoryDataset": InMemoryDataset,
            "FileInstantDataset": FileInstantDataset,
        }
        if datafeed_class == "BoxPSDataset":
            raise UnsupportedError(f"{datafeed_class} is not supported; use 'InMemoryDataset'")
        if datafeed_class not in made:
            raise FluidValueError(
                f"there is no dataset {datafeed_class!r}{near(str(datafeed_class), made)}; there"
                f" are {', '.join(made)}"
            )
        return made[datafeed_class]()


__all__ = ["DatasetBase", "DatasetFactory", "FileInstantDataset", "InMemoryDataset", "QueueDataset"]
