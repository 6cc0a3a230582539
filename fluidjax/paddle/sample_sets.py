"""paddle.io: data sets from arrays and from other data sets."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..dist.jobs.env import read_env
from ..errors import FluidTypeError, FluidValueError
from ..loaders.samples import BatchSampler, Dataset, IterableDataset


def _sets(datasets: Iterable[Any], what: str, kind: type = Dataset) -> list[Any]:
    """The data sets. Raises FluidValueError for none, FluidTypeError for objects of another kind."""
    found = list(datasets)
    if not found:
        raise FluidValueError(f"a {what} takes one data set or more")
    for d in found:
        if not isinstance(d, kind) or (kind is Dataset and isinstance(d, IterableDataset)):
            raise FluidTypeError(
                f"a {what} takes objects of paddle.io.{kind.__name__}, not of {type(d).__name__}"
            )
    return found


class TensorDataset(Dataset):
    """Rows of arrays of one length: sample i is the tuple of their rows i. Raises FluidValueError
    for different lengths.
    """

    def __init__(self, tensors: Sequence[Any]) -> None:
        self.tensors = [np.asarray(t) for t in tensors]
        if (
            not self.tensors
            or len({len(t) if t.ndim else -1 for t in self.tensors}) != 1
            or not self.tensors[0].ndim
        ):
            raise FluidValueError(
                "a TensorDataset takes arrays with as many rows each, not"
                f" {[list(t.shape) for t in self.tensors]}"
            )

    def __getitem__(self, idx: int) -> Any:
        return tuple(t[idx] for t in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class ComposeDataset(Dataset):
    """Data sets of one length side by side: sample i has the parts of all their samples i. Raises
    FluidValueError for different lengths.
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = _sets(datasets, "ComposeDataset")
        if len({len(d) for d in self.datasets}) != 1:
            raise FluidValueError(
                "a ComposeDataset takes data sets of one length, not of"
                f" {[len(d) for d in self.datasets]}"
            )

    def __getitem__(self, idx: int) -> Any:
        parts = [d[idx] for d in self.datasets]
        return tuple(
            itertools.chain.from_iterable(p if isinstance(p, list | tuple) else [p] for p in parts)
        )

    def __len__(self) -> int:
        return len(self.datasets[0])


class ConcatDataset(Dataset):
    """Data sets concatenated; a negative index counts from the end. Raises FluidValueError for one
    that is out of range.
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = _sets(datasets, "ConcatDataset")
        self.cumulative_sizes = list(itertools.accumulate(map(len, self.datasets)))

    def __getitem__(self, idx: int) -> Any:
        if not -len(self) <= idx < len(self):
            raise FluidValueError(f"a ConcatDataset of {len(self)} samples has no sample {idx}")
        idx = idx % len(self)
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        return self.datasets[which][idx - (self.cumulative_sizes[which - 1] if which else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset):
    """The samples of iterable data sets, concatenated."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = _sets(datasets, "ChainDataset", IterableDataset)

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datasets)


class Subset(Dataset):
    """The samples of a data set that `indices` names, in that order."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, idx: int) -> Any:
        return self.dataset[self.indices[idx]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset]:
    """A data set split into disjoint parts of these lengths, or of these fractions (which sum to
    1), in a random order (``numpy.random``).

    Samples left over by fractions go to the first parts, one each. Raises FluidValueError for
    lengths that do not sum to the data set's, FluidTypeError for a generator, which Paddle ignores.
    """
    if generator is not None:
        raise FluidTypeError(
            "random_split takes no generator: numpy.random.seed decides what is drawn"
        )
    whole = len(dataset)
    counts = [int(n) for n in lengths]
    if math.isclose(sum(lengths), 1) and whole != 1:
        if any(not 0 <= share <= 1 for share in lengths):
            raise FluidValueError(f"random_split's shares lie between 0 and 1, not {list(lengths)}")
        counts = [math.floor(whole * share) for share in lengths]
        for i in range(whole - sum(counts)):
            counts[i % len(counts)] += 1
    if sum(counts) != whole:
        raise FluidValueError(
            f"random_split's lengths {list(lengths)} sum to {sum(counts)}, but the data set has"
            f" {whole} samples"
        )
    order, ends = np.random.permutation(whole).tolist(), [0, *itertools.accumulate(counts)]
    return [Subset(dataset, order[a:b]) for a, b in itertools.pairwise(ends)]


class DistributedBatchSampler(BatchSampler):
    """The batches of one of several workers: one of every num_replicas consecutive batches.

    num_replicas, rank: the number of workers and the index of this one; default from the
    environment. The first samples are repeated at the end if the workers would have different
    numbers of them. shuffle: in an order determined by the epoch, equal on all workers; each pass
    is a new epoch unless set_epoch sets it. Raises FluidValueError for a rank out of range.
    """

    def __init__(
        self, dataset: Any, batch_size: int, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = False,
        drop_last: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(dataset, None, shuffle, batch_size, drop_last)
        env = read_env()
        self.nranks = (env.count if env else 1) if num_replicas is None else num_replicas
        self.local_rank = (env.rank if env else 0) if rank is None else rank
        if not 0 <= self.local_rank < self.nranks:
            raise FluidValueError(
                f"a DistributedBatchSampler's rank is one of {self.nranks}, not {self.local_rank}"
            )
        self.epoch = 0
        self.num_samples = -(-len(self.indices) // self.nranks)
        self.total_size = self.num_samples * self.nranks

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next pass."""
        self.epoch = epoch

    def _own(self) -> list[int]:
        """The samples of this worker, batch after batch."""
        order = self.indices + self.indices[: self.total_size - len(self.indices)]
        if self.shuffle:
            np.random.RandomState(self.epoch).shuffle(order)
            self.epoch += 1
        if self.nranks == 1:
            return order
        together = self.batch_size * self.nranks  # samples of one batch of every worker
        whole = self.total_size // together * together
        mine = [
            i
            for at in range(self.local_rank * self.batch_size, whole, together)
            for i in order[at : at + self.batch_size]
        ]
        rest = (self.total_size - whole) // self.nranks
        return mine + order[whole + self.local_rank * rest : whole + (self.local_rank + 1) * rest]

    def __iter__(self) -> Iterator[list[int]]:
        own = self._own()
        for begin in range(0, len(own), self.batch_size):
            batch = own[begin : begin + self.batch_size]
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        """The number of batches in a pass of this worker."""
        return (
            self.num_samples + (0 if self.drop_last else self.batch_size - 1)
        ) // self.batch_size


__all__ = [
    "ChainDataset", "ComposeDataset", "ConcatDataset", "DistributedBatchSampler", "Subset", "TensorDataset", "random_split",
]  # fmt: skip
