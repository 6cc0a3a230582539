"""Data sets with an index or to iterate over, and samplers that form batches of their samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..errors import FluidTypeError, FluidValueError


class Dataset:
    """Samples by number: override ``__getitem__`` and ``__len__``."""

    def __getitem__(self, idx: int) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} has no __getitem__(self, idx), which gives the sample of that"
            " number"
        )

    def __len__(self) -> int:
        raise NotImplementedError(
            f"{type(self).__name__} has no __len__(self), which says how many samples there are"
        )


class IterableDataset(Dataset):
    """Samples one after another: override ``__iter__``. Each worker iterates over all samples;
    ``get_worker_info`` gives the worker's number.
    """

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(
            f"{type(self).__name__} has no __iter__(self), which gives its samples"
        )

    def __getitem__(self, idx: int) -> Any:
        raise FluidTypeError(
            f"{type(self).__name__} is an IterableDataset, whose samples have no numbers"
        )

    def __len__(self) -> int:
        raise FluidTypeError(
            f"{type(self).__name__} is an IterableDataset, whose length is unknown"
        )


class BatchSampler:
    """Lists of the numbers of samples.

    dataset: its samples are numbered; or indices: a list of numbers. shuffle: use another order in
    each pass, by ``numpy.random``. drop_last: leave out a shorter last batch. Raises
    FluidTypeError, FluidValueError for arguments that do not fit.
    """

    def __init__(
        self,
        dataset: Any = None,
        indices: Sequence[int] | None = None,
        shuffle: bool = False,
        batch_size: int = 1,
        drop_last: bool = False,
    ) -> None:
        if (dataset is None) == (indices is None):
            raise FluidValueError("a BatchSampler takes a dataset or indices, and not both")
        if indices is not None and not isinstance(indices, list | tuple):
            raise FluidTypeError(
                f"a BatchSampler's indices are a list or tuple, not {type(indices).__name__}"
            )
        if dataset is not None and (
            not isinstance(dataset, Dataset) or isinstance(dataset, IterableDataset)
        ):
            raise FluidTypeError(
                "a BatchSampler's dataset is a paddle.io.Dataset with a length, not"
                f" {type(dataset).__name__}"
            )
        if type(batch_size) is not int or batch_size <= 0:
            raise FluidValueError(
                f"a BatchSampler's batch_size is a positive whole number, not {batch_size!r}"
            )
        for what, value in (("shuffle", shuffle), ("drop_last", drop_last)):
            if not isinstance(value, bool):
                raise FluidTypeError(f"a BatchSampler's {what} is True or False, not {value!r}")
        self.indices = list(range(len(dataset or ()))) if indices is None else list(indices)
        self.shuffle, self.batch_size, self.drop_last = shuffle, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        if self.shuffle:
            np.random.shuffle(self.indices)
        for begin in range(0, len(self.indices), self.batch_size):
            batch = self.indices[begin : begin + self.batch_size]
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        """The number of batches of a pass."""
        return (
            len(self.indices) + (0 if self.drop_last else self.batch_size - 1)
        ) // self.batch_size


__all__ = ["BatchSampler", "Dataset", "IterableDataset"]
