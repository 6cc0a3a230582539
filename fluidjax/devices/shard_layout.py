"""The layout of a sharded variable across devices, each of which holds a shard.

Shards are stored in arrays with a row for each rank. Such an array may hold shards of several
variables, and a shard may have copies in several places. The scope still shows the variable as a
whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ops.sharding import piece_size


@dataclass(frozen=True)
class Span:
    """Elements of a variable in row `rank` of `array`, from column `at` on.

    They are `count` runs of `run` elements of the flattened variable. The first run begins at
    `start`, and each further one `stride` elements later.
    """

    array: str
    rank: int
    at: int
    start: int
    run: int
    stride: int = 0
    count: int = 1

    @property
    def size(self) -> int:
        return self.run * self.count

    @property
    def columns(self) -> slice:
        """Its columns in the row."""
        return slice(self.at, self.at + self.size)

    @property
    def end(self) -> int:
        """The position behind its last element in the flattened variable."""
        return self.start + (self.count - 1) * self.stride + self.run

    def of(self, flat: np.ndarray) -> np.ndarray:
        """These elements of the flattened variable, [count, run], to read or to write."""
        step = flat.strides[0]
        view = np.lib.stride_tricks.as_strided
        return view(
            flat[self.start : self.end],
            (self.count, self.run),
            (self.stride * step, step),
            writeable=flat.flags.writeable,
        )


@dataclass(frozen=True)
class ShardLayout:
    """The layout of a variable of this shape. spans: every element once. copies: further places,
    which hold the same values at the start.
    """

    shape: tuple[int, ...]
    spans: tuple[Span, ...]
    copies: tuple[Span, ...] = ()

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def arrays(self) -> tuple[str, ...]:
        """The arrays that hold it, in order."""
        return tuple(dict.fromkeys(s.array for s in self.spans))

    def joined(self, rows: Callable[[str], Any]) -> np.ndarray:
        """The whole variable. rows: gives the rows [ranks, ...] of an array by name."""
        flat: np.ndarray | None = None
        for span in self.spans:
            found = np.asarray(rows(span.array))
            found = found.reshape(len(found), -1)
            flat = np.empty(self.size, found.dtype) if flat is None else flat
            span.of(flat)[...] = found[span.rank, span.columns].reshape(span.count, span.run)
        return np.empty(self.shape) if flat is None else flat.reshape(self.shape)

    def deal(self, value: Any, rows: Callable[[str], np.ndarray]) -> None:
        """Write the variable's elements to all their places. rows: as for `joined`, but writable
        and contiguous.
        """
        flat = np.ascontiguousarray(value).reshape(-1)
        for span in (*self.spans, *self.copies):
            found = rows(span.array)
            found.reshape(len(found), -1)[span.rank, span.columns] = span.of(flat).reshape(-1)


def even(name: str, shape: tuple[int, ...], ranks: int) -> ShardLayout:
    """The layout in equal shards (ops/sharding.py): one row for each rank in the array of the
    variable's own name. Zeros fill the last shard.
    """
    size = math.prod(shape)
    each = piece_size(size, ranks)
    return ShardLayout(
        shape,
        tuple(
            Span(name, r, 0, r * each, min(each, size - r * each))
            for r in range(ranks)
            if r * each < size
        ),
    )


def distributed(
    placed: Mapping[str, ShardLayout],
    values: Mapping[str, Any],
    widths: Mapping[str, int],
    ranks: int,
) -> dict[str, np.ndarray]:
    """The arrays [ranks, width] that hold these variables; unused elements are zero.

    Raises ValueError unless the variables of one array have one dtype.
    """
    made: dict[str, np.ndarray] = {}
    for name, place in placed.items():
        dtype = np.asarray(values[name]).dtype
        for array in dict.fromkeys(s.array for s in (*place.spans, *place.copies)):
            found = made.setdefault(array, np.zeros((ranks, widths[array]), dtype))
            if found.dtype != dtype:
                raise ValueError(
                    f"{name!r} is {dtype}, but {array!r}, which holds it too, is {found.dtype}"
                )
        place.deal(values[name], made.__getitem__)
    return made


def arrays_of(placed: Iterable[ShardLayout]) -> Iterator[str]:
    """The names of all arrays of these layouts."""
    yield from dict.fromkeys(s.array for p in placed for s in (*p.spans, *p.copies))


@dataclass(frozen=True, eq=False)
class ShardedValue:
    """The shards of a variable on several devices, while no program has it among its buffers.

    arrays: [ranks, ...] by name, with nothing but this variable in them. gather: copies the array
    of a name to the host; if other processes hold some rows, each process takes part.
    """

    placed: ShardLayout
    arrays: Mapping[str, Any]
    gather: Callable[[str, Any], Any]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.placed.shape

    @property
    def dtype(self) -> Any:
        return np.dtype(next(iter(self.arrays.values())).dtype)

    def whole(self) -> np.ndarray:
        """The variable, on the host."""
        host = {n: self.gather(n, a) for n, a in self.arrays.items()}
        return self.placed.joined(host.__getitem__)
