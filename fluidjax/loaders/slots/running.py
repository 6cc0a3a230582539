"""Runs a program over a dataset, batch after batch, for Executor.train_from_dataset and
infer_from_dataset.
"""

from __future__ import annotations

import contextlib
import contextvars
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...base.loc import warn
from ...base.progress import bar
from ...errors import FluidTypeError, FluidValueError
from ...graph.fetches import fetch_names
from ...graph.variable import Variable
from ...lod_tensor import LoDTensor
from .datasets import DatasetBase
from .handler import FetchHandler

_CALLED = {
    "float32": "float",
    "float64": "double",
    "int32": "int",
    "int64": "int64_t",
    "uint8": "uint8_t",
    "int8": "int8_t",
}


class NoDatasetError(FluidTypeError, RuntimeError):
    """Raised for anything but a dataset; a RuntimeError, as in Paddle."""


def run_over(
    run: Any, dataset: Any, fetch_list: Sequence[Any] | None, fetch_info: Sequence[str] | None, print_period: int,
    fetch_handler: Any, debug: bool, thread: int,
) -> None:  # fmt: skip
    """Call ``run(feed, fetch_list)`` for each batch of a pass over `dataset`; a thread reads and
    parses ahead.

    Every print_period batches the fetched values are printed; fetch_handler gets the newest values
    of its variables at intervals. Raises FluidTypeError, FluidValueError for arguments that do not
    fit, errors in the files after the batches before them, and the handler's errors.
    """
    fetched, infos = _checked(dataset, fetch_list, fetch_info, print_period, thread, fetch_handler)
    watched = (
        []
        if fetch_handler is None
        else [v.name for v in fetch_handler.var_dict.values() if isinstance(v, Variable)]
    )
    names = list(dict.fromkeys([*fetched, *watched]))
    spent, count, began = 0.0, 0, time.perf_counter()
    with contextlib.ExitStack() as stack:
        batches = stack.enter_context(contextlib.closing(dataset.ahead()))
        monitor = stack.enter_context(_monitor(fetch_handler))
        progress = stack.enter_context(bar("dataset"))
        for count, feed in enumerate(_timed(batches), 1):
            values = dict(zip(names, run(feed[0], names), strict=True))
            spent += feed[1]
            if fetched and count % print_period == 0:
                progress.print(
                    "".join(
                        _shown(name, info, values[name])
                        for name, info in zip(fetched, infos, strict=True)
                    )
                )
            progress.step()
            if monitor is not None:
                monitor.newest(values)
    if not count:
        warn("the pass had no batch: the dataset's files hold no samples", RuntimeWarning)
    if debug:
        total = time.perf_counter() - began
        print(
            f"dataset: {count} batches in {total:.3f} s, {spent:.3f} s of them waiting for data",
            file=sys.stderr,
        )


def _checked(
    dataset: Any, fetch_list: Any, fetch_info: Any, print_period: Any, thread: Any, handler: Any
) -> tuple[list[str], list[str]]:
    if not isinstance(dataset, DatasetBase):
        made = "None" if dataset is None else type(dataset).__name__
        raise NoDatasetError(
            f"a dataset that DatasetFactory().create_dataset made is needed, not {made}"
        )
    fetched, infos = list(fetch_names(fetch_list)), list(fetch_info or ())
    if len(fetched) != len(infos):
        raise FluidValueError(
            f"fetch_info has a word for each variable of fetch_list; there are {len(infos)} for"
            f" {len(fetched)}"
        )
    if isinstance(print_period, bool) or not isinstance(print_period, int) or print_period <= 0:
        raise FluidValueError(f"print_period is a positive number of batches, not {print_period!r}")
    if thread <= 0 and dataset.thread_num <= 0:
        raise FluidValueError(
            "the number of threads is to be set, by the dataset's set_thread or by thread="
        )
    if handler is not None and not isinstance(handler, FetchHandler):
        raise FluidTypeError(
            f"fetch_handler is a fluid.executor.FetchHandler, not {type(handler).__name__}"
        )
    if handler is not None and not isinstance(handler.var_dict, Mapping):
        raise FluidTypeError(f"a FetchHandler takes a dict of variables, not {handler.var_dict!r}")
    return fetched, infos


def _timed(batches: Any) -> Iterator[tuple[Any, float]]:
    """Each batch, and the seconds that it was waited for."""
    while True:
        began = time.perf_counter()
        feed, more = batches.next()
        if not more:
            return
        yield feed, time.perf_counter() - began


def _shown(name: str, info: str, value: Any) -> str:
    """A value as Paddle prints it in a run over a dataset."""
    lod = value.lod() if isinstance(value, LoDTensor) else []
    array = np.asarray(value)
    levels = ", ".join("{" + ", ".join(map(str, level)) + "}" for level in lod)
    numbers = " ".join(
        f"{x:g}" if isinstance(x, float) else str(int(x)) for x in array.ravel().tolist()
    )
    dtype = _CALLED.get(array.dtype.name, array.dtype.name)
    dims = ", ".join(map(str, array.shape))
    return (
        f"{info}\t{name}\t\tlod: {{{levels}}}\n\tdim: {dims}\n\tlayout: NCHW\n\tdtype:"
        f" {dtype}\n\tdata: [{numbers}]\n\t\n"
    )


class _Monitor:
    """Calls a handler at intervals of seconds, in a thread, with the newest values."""

    def __init__(self, handler: FetchHandler) -> None:
        self._handler, self._values = handler, dict[str, Any]()
        self._ended, self._error = threading.Event(), list[BaseException]()
        here = contextvars.copy_context()
        self._thread = threading.Thread(
            target=here.run, args=(self._watch,), name="fluidjax-fetch-handler", daemon=True
        )
        self._thread.start()

    def newest(self, values: Mapping[str, Any]) -> None:
        """Set the values to show from now on. Raises the handler's error."""
        self._values = dict(values)
        self.refuse()

    def refuse(self) -> None:
        if self._error:
            raise self._error.pop()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        try:
            while not self._ended.wait(max(self._handler.period_secs, 0.01)):
                values = self._values
                self._handler.handler(
                    {
                        key: _dense(key, values.get(getattr(v, "name", "")))
                        for key, v in self._handler.var_dict.items()
                    }
                )
        except BaseException as error:
            self._error.append(error)


def _dense(key: str, value: Any) -> Any:
    """The array; None before there is one. Raises FluidValueError for a value with a LoD."""
    if isinstance(value, LoDTensor) and value.offsets:
        raise FluidValueError(
            f"FetchHandler: {key!r} has a LoD, which an array cannot show; fetch another variable"
        )
    return None if value is None else np.array(value)


@contextlib.contextmanager
def _monitor(handler: FetchHandler | None) -> Iterator[_Monitor | None]:
    if handler is None:
        yield None
        return
    monitor = _Monitor(handler)
    try:
        yield monitor
    finally:
        monitor.end()
    monitor.refuse()


__all__ = ["run_over"]
