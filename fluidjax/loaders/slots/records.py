"""Records: samples whose slots hold any number of values each, as one array of values for each
slot, and the offsets of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Column:
    """The values of one slot, and the samples' offsets: the values of sample i are
    values[offsets[i]:offsets[i + 1]].
    """

    values: np.ndarray
    offsets: np.ndarray

    def true(self) -> tuple[np.ndarray, np.ndarray]:
        """The values in use, and offsets from 0."""
        first = self.offsets[0]
        return self.values[first : self.offsets[-1]], self.offsets - first

    def take(self, order: np.ndarray) -> Column:
        """The samples of these numbers, in this order."""
        counts = np.diff(self.offsets)[order]
        offsets = np.concatenate([[0], np.cumsum(counts)])
        where = np.repeat(self.offsets[:-1][order] - offsets[:-1], counts) + np.arange(offsets[-1])
        return Column(self.values[where], offsets)

    def without_zeros(self) -> Column:
        """The samples without zeros; a sample with only zeros keeps one."""
        values, offsets = self.true()
        zero = np.abs(values) < 1e-6 if values.dtype.kind == "f" else values == 0
        if not zero.any():
            return Column(values, offsets)
        kept = np.concatenate([[0], np.cumsum(~zero)])[offsets]
        empty = np.flatnonzero(np.diff(kept) == 0)
        filled = np.insert(values[~zero], kept[empty], 0)
        return Column(filled, kept + np.concatenate([[0], np.cumsum(np.diff(kept) == 0)]))


@dataclass(frozen=True)
class Records:
    """Samples: for each slot the values, and a row of offsets, as in a Column."""

    values: tuple[np.ndarray, ...]
    offsets: np.ndarray

    @staticmethod
    def of(columns: Sequence[Column]) -> Records:
        """The samples of these slots. At least one is needed."""
        return Records(tuple(c.values for c in columns), np.stack([c.offsets for c in columns]))

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(map(Column, self.values, self.offsets))

    def __len__(self) -> int:
        return self.offsets.shape[1] - 1

    def part(self, begin: int, end: int) -> Records:
        """Samples begin to end; the offsets are not shifted."""
        return Records(self.values, self.offsets[:, begin : end + 1])

    def take(self, order: np.ndarray) -> Records:
        """The samples of these numbers, in this order."""
        return Records.of([c.take(order) for c in self.columns])


def joined(parts: Sequence[Records]) -> Records:
    """All samples of several Records, one after another. At least one part is needed."""
    if len(parts) == 1:
        return parts[0]
    begins = np.zeros((len(parts[0].values), 1), np.int64)
    offsets = [begins]
    for part in parts:
        offsets.append(part.offsets[:, 1:] - part.offsets[:, :1] + begins)
        begins = offsets[-1][:, -1:] if len(part) else begins
    spans = [p.offsets[:, [0, -1]].tolist() for p in parts]
    values = (
        np.concatenate([p.values[i][slice(*s[i])] for p, s in zip(parts, spans, strict=True)])
        for i in range(len(begins))
    )
    return Records(tuple(values), np.concatenate(offsets, 1))


def in_batches(parts: Iterable[Records], size: int) -> Iterator[Records]:
    """Batches of `size` samples, across parts; the last may be shorter."""
    left: list[Records] = []
    for part in parts:
        begin = 0
        missing = size - sum(map(len, left))
        while len(part) - begin >= missing:
            yield joined([*left, part.part(begin, begin + missing)])
            begin, missing, left = begin + missing, size, []
        if begin < len(part):
            left.append(part.part(begin, len(part)))
    if left:
        yield joined(left)


__all__ = ["Column", "Records", "in_batches", "joined"]
