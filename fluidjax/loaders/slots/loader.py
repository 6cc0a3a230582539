"""DataLoader.from_dataset: the batches of a dataset of files, for your own loop."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...errors import FluidTypeError, FluidValueError
from ..own_iteration import OwnIteration
from .datasets import DatasetBase
from .feeds import Feed


class DatasetLoader(OwnIteration):
    """The result of DataLoader.from_dataset. Iterating yields feeds for Executor.run: a list with a
    dict for each place.

    drop_last: leave out a last batch with fewer samples and, with several places, last batches that
    are fewer than the places.
    """

    def __init__(self, dataset: Any, places: Any, drop_last: bool = True) -> None:
        if not isinstance(dataset, DatasetBase):
            raise FluidTypeError(
                "from_dataset takes what DatasetFactory().create_dataset made, not"
                f" {type(dataset).__name__}"
            )
        self._dataset, self._drop_last = dataset, drop_last
        self._count = len(places) if isinstance(places, list | tuple) else 1
        if not self._count:
            raise FluidValueError("from_dataset needs at least one place")

    def __call__(self) -> DatasetLoader:
        return self

    def __iter__(self) -> Iterator[list[Feed]]:
        group: list[Feed] = []
        with contextlib.closing(self._dataset.ahead()) as feeds:
            for feed in feeds:
                if self._drop_last and _samples(feed) < self._dataset.proto_desc.batch_size:
                    break
                group.append(feed)
                if len(group) == self._count:
                    yield group
                    group = []
        if group and not self._drop_last:
            yield group


def _samples(feed: Feed) -> int:
    value = next(iter(feed.values()))
    return len(value) if isinstance(value, np.ndarray) else len(value.offsets[0]) - 1


__all__ = ["DatasetLoader"]
