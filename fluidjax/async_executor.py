"""fluid.AsyncExecutor of Paddle 1.0 to 1.4: runs a program over files of slots that a DataFeedDesc
describes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .base.absent import lacking
from .data_feed_desc import DataFeedDesc
from .errors import FluidTypeError, FluidValueError, UnsupportedError
from .executor import Executor
from .graph.program import Program, default_main_program
from .graph.variable import Variable

_SERVERS = "belongs to pslib's servers, which are not supported; use fluid.DistributeTranspiler"
_MISSING = dict.fromkeys(
    "config_distributed_nodes download_data get_instance init_model init_server init_worker"
    " save_model stop".split(),
    _SERVERS,
)
_KINDS = {"float32": "float", "int64": "uint64"}


class AsyncExecutor:
    """Runs a program for every batch of files of slots; since 1.5 Executor.train_from_dataset
    replaces it.

    place: default the CPU. run_mode: only "". Raises UnsupportedError for another one ("mpi").
    """

    def __init__(self, place: Any = None, run_mode: str = "") -> None:
        _refuse_mode(run_mode)
        self.executor = Executor(place)

    def run(
        self, program: Program | None, data_feed: DataFeedDesc, filelist: str | Sequence[str], thread_num: int,
        fetch: Variable | str | Sequence[Variable | str], mode: str = "", debug: bool = False,
    ) -> None:  # fmt: skip
        """A pass over the files. Nothing is returned: with debug the values of `fetch` are printed
        after each batch.

        program: default the main program. data_feed: the batch size and the slots; used slots are
        variables of the program, and the others are skipped. filelist: one file or several.
        thread_num: the number of files that are read at the same time. Steps run one after another,
        so that a run can be repeated; Paddle's threads update parameters concurrently. Raises
        FluidTypeError and FluidValueError for arguments that do not fit, and the errors of
        train_from_dataset.
        """
        _refuse_mode(mode)
        program = default_main_program() if program is None else program
        if not isinstance(program, Program):
            raise FluidTypeError(f"AsyncExecutor.run takes a Program, not {type(program).__name__}")
        if not isinstance(data_feed, DataFeedDesc):
            raise FluidTypeError(
                "AsyncExecutor.run takes a DataFeedDesc as data_feed, not"
                f" {type(data_feed).__name__}"
            )
        if isinstance(thread_num, bool) or not isinstance(thread_num, int) or thread_num <= 0:
            raise FluidValueError(f"thread_num is a positive number of threads, not {thread_num!r}")
        names = [fetch] if isinstance(fetch, str | Variable) else list(fetch or ())
        fetched = [program.global_block().var(v) if isinstance(v, str) else v for v in names]
        dataset = _dataset(program, data_feed)
        dataset.set_filelist([filelist] if isinstance(filelist, str) else filelist)
        dataset.set_thread(thread_num)
        shown = fetched if debug else []
        self.executor.train_from_dataset(
            program, dataset, fetch_list=shown, fetch_info=[v.name for v in shown], print_period=1
        )

    if not TYPE_CHECKING:
        __getattr__ = lacking("AsyncExecutor", _MISSING)


def _refuse_mode(mode: str) -> None:
    if mode:
        raise UnsupportedError(f"AsyncExecutor: the mode {mode!r} {_SERVERS}")


def _dataset(program: Program, data_feed: DataFeedDesc) -> Any:
    """A dataset of the slots of a description."""
    from .loaders.slots.datasets import QueueDataset

    desc, dataset, block = data_feed.proto_desc, QueueDataset(), program.global_block()
    dataset.set_batch_size(desc.batch_size)
    dataset.set_pipe_command(desc.pipe_command)
    for slot in desc.multi_slot_desc.slots:
        if not slot.is_used:
            dataset.proto_desc.multi_slot_desc.slots.add(
                name=slot.name, type=slot.type, is_used=False
            )
            continue
        var = block.var(slot.name)
        dataset.set_use_var([var])
        kind = _KINDS[var.desc.dtype or ""]
        if slot.type != kind:
            held = f"the program's variable is {var.desc.dtype} ({kind})"
            raise FluidValueError(f"the slot {slot.name!r} is described as {slot.type}, but {held}")
    if not any(slot.is_used for slot in desc.multi_slot_desc.slots):
        raise FluidValueError(
            "the DataFeedDesc uses none of its slots; call its set_use_slots first"
        )
    return dataset


__all__ = ["AsyncExecutor"]
