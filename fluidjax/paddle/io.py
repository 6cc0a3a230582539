"""paddle.io: data sets, samplers, DataLoader."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import FluidTypeError, FluidValueError
from ..graph.variable import Variable
from ..loaders.loader import DataLoader as _DataLoader
from ..loaders.sample_loader import get_worker_info as get_worker_info
from ..loaders.samples import BatchSampler as BatchSampler
from ..loaders.samples import Dataset as Dataset
from ..loaders.samples import IterableDataset as IterableDataset
from . import sample_sets
from .sample_sets import *  # noqa: F403


class DataLoader(_DataLoader):
    """fluid.io.DataLoader, which gives lists of arrays unless return_list is False.

    prefetch_factor (batches that a worker makes ahead, at least 1) and persistent_workers (kept
    alive between passes) are checked and ignored. Raises FluidTypeError, FluidValueError for
    arguments that do not fit.
    """

    def __init__(
        self, dataset: Any, feed_list: Sequence[Variable] | None = None, places: Any = None, return_list: bool = True,
        batch_sampler: Any = None, batch_size: int = 1, shuffle: bool = False, drop_last: bool = False, collate_fn: Any = None,
        num_workers: int = 0, use_buffer_reader: bool = True, prefetch_factor: int = 2, use_shared_memory: bool = True,
        timeout: float = 0, worker_init_fn: Any = None, persistent_workers: bool = False,
    ) -> None:  # fmt: skip
        if type(prefetch_factor) is not int or prefetch_factor < 1:
            raise FluidValueError(
                f"a DataLoader's prefetch_factor is a whole number from 1, not {prefetch_factor!r}"
            )
        if not isinstance(persistent_workers, bool):
            raise FluidTypeError(
                f"a DataLoader's persistent_workers is True or False, not {persistent_workers!r}"
            )
        super().__init__(
            dataset, feed_list, places, return_list, batch_sampler, batch_size, shuffle, drop_last, collate_fn, num_workers,
            use_buffer_reader, use_shared_memory, timeout, worker_init_fn,
        )  # fmt: skip


__all__ = ["BatchSampler", "DataLoader", "Dataset", "IterableDataset", "get_worker_info"]
__all__ += sample_sets.__all__
