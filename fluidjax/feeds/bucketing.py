"""Converts LoDTensors to the values that a step takes, and back. Rows and lengths are padded to a
bucket, and equal LoDs get equal keys.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import FluidValueError
from ..lod_tensor import Lod, LoDTensor, has_lod, measured
from ..ops.fixed import Fixed
from ..ops.loop_course import limit
from ..ops.ragged import ROWS, Ragged

SMALLEST = 8
BATCH = ("batch", 0)  # the key of the rows of a prediction's batch


def bucket(n: int) -> int:
    """The smallest of 8, 12, 16, 24, 32, 48, ... that is at least n.

    There are two sizes for each power of two: a bucket is at most 1.5 n, and there are 2 log2(n /
    8) + 2 buckets up to n.
    """
    size = SMALLEST
    while size < n:
        size *= 2
    between = size * 3 // 4
    return between if size > SMALLEST and n <= between else size


def bucketed(
    feed: Mapping[str, Any], exact: bool = False, fill: Collection[str] | None = None, inner: Collection[str] = (),
    by_offsets: bool = False, rooms: Mapping[str, tuple[int, int]] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """A feed for ``step_fn``: LoDTensors with sequences become Ragged, anything else does not
    change.

    Rows and the longest sequence of each level are padded up to a bucket by copies of the last row,
    so that varied batches have few shapes. With exact they are not padded. fill: pad the number of
    sequences too, by empty ones, and so the arrays of these names that have as many rows. inner:
    names whose numbers of sequences below the first level are padded up to a bucket, by empty ones.
    by_offsets: the number of rows is the only bound given for the longest sequence. rooms: by name,
    the rows and the longest sequence to pad up to in place of a bucket. Equal LoDs get equal keys,
    numbered by first appearance. Raises FluidValueError for a LoD that does not fit its rows.
    """
    keys: dict[tuple[bytes, ...], int] = {}
    lods = {n: v for n, v in feed.items() if isinstance(v, LoDTensor) and has_lod(v)}
    ragged = {
        n: _ragged(n, v, keys, exact, by_offsets, (rooms or {}).get(n)) for n, v in lods.items()
    }
    if not exact:
        ragged |= {n: _inner(ragged[n]) for n in inner if n in ragged}
    if fill is None or exact:
        return {**feed, **ragged}
    counts = {
        count: i
        for i, count in enumerate(dict.fromkeys(r.offsets[0].shape[0] - 1 for r in ragged.values()))
    }
    found = {n: _filled(r, counts) for n, r in ragged.items()}
    beside = {
        n: v
        for n, v in feed.items()
        if n in fill and isinstance(v, np.ndarray) and v.ndim and v.shape[0] in counts
    }
    return {
        **feed,
        **found,
        **{n: _rows(v, _row_key(counts, v.shape[0])) for n, v in beside.items()},
    }


def _row_key(counts: Mapping[int, int], count: int) -> Hashable:
    """The key of values with a row for each of so many sequences."""
    return "batch", counts[count]


def batched(feed: Mapping[str, Any], names: Collection[str], size: int) -> dict[str, Any]:
    """The feed with the arrays of these names, which have equally many rows, padded up to
    `size`.
    """
    return {n: _rows(v, BATCH, size) if n in names else v for n, v in feed.items()}


def _filled(value: Ragged, counts: Mapping[int, int]) -> Ragged:
    """The value with empty sequences behind the last, up to a bucket."""
    count = value.offsets[0].shape[0] - 1
    offsets = tuple(filled_level(level, bucket(level.shape[0] - 1)) for level in value.offsets)
    return replace(value, offsets=offsets, each=_row_key(counts, count), alive=np.int32(count))


def _inner(value: Ragged) -> Ragged:
    """The value with empty sequences behind the last of every level below the first, up to a
    bucket; `longest` gives the sizes.
    """
    first, *below = value.offsets
    filled = (filled_level(level, bucket(level.shape[0] - 1)) for level in below)
    return replace(value, offsets=(first, *filled), key=("inner", value.key), most=None)


def filled_level(level: np.ndarray, count: int) -> np.ndarray:
    """Offsets of `count` sequences; those behind the last are empty."""
    return np.pad(level, (0, count + 1 - level.shape[0]), mode="edge")


def _rows(array: np.ndarray, key: Hashable, size: int | None = None) -> Ragged:
    """An array with copies of its last row behind it, up to a given size or else up to a bucket."""
    count = array.shape[0]
    size = bucket(count) if size is None else size
    return Ragged(
        extended(array, size),
        (np.array([0, count], np.int32),),
        (size,),
        key,
        padded=True,
        bare=True,
        each=ROWS,
    )


def extended(array: np.ndarray, size: int) -> np.ndarray:
    """The array with copies of the last row behind it, so that gradients there are 0 times a finite
    number; with zeros if it has no rows.
    """
    count = array.shape[0]
    rows = np.empty((size, *array.shape[1:]), array.dtype)
    rows[:count] = array
    rows[count:] = array[count - 1 : count] if count else 0
    return rows


def _ragged(
    name: str,
    tensor: LoDTensor,
    keys: dict[tuple[bytes, ...], int],
    exact: bool,
    by_offsets: bool,
    room: tuple[int, int] | None,
) -> Ragged:
    array = tensor.array()
    wrong = tensor.misfit()
    if wrong:
        raise FluidValueError(f"{name!r} has a LoD that does not fit its rows: {wrong}")
    offsets, longest, lod = measured(tensor)
    key = keys.setdefault(lod, len(keys))
    if exact:
        return Ragged(np.array(array), offsets, longest, key)
    capacity, *bounds = room or (bucket(array.shape[0]), *map(bucket, longest))
    most, long = tensor.room
    rows = extended(array, max(capacity, most))
    if by_offsets:
        return Ragged(
            rows,
            offsets,
            (*(bucket(len(level) - 1) for level in offsets[1:]), len(rows)),
            key,
            padded=True,
        )
    return Ragged(
        rows,
        offsets,
        tuple(max(n, long) for n in bounds),
        key,
        padded=True,
        most=_rows_bucket(offsets),
    )


def _rows_bucket(offsets: tuple[np.ndarray, ...]) -> tuple[int, ...] | None:
    """For several levels, a bucket for the rows of a sequence of each level; None for one level,
    for which `longest` has it.
    """
    return None if len(offsets) == 1 else tuple(map(bucket, most_rows(offsets)))


def most_rows(offsets: tuple[np.ndarray, ...]) -> tuple[int, ...]:
    """The number of rows of the largest sequence of each level."""
    ends = [offsets[-1]]
    for level in reversed(offsets[:-1]):
        ends.insert(0, ends[0][level])
    return tuple(int(np.diff(at).max(initial=0)) for at in ends)


class StepTensor(LoDTensor):
    """A ragged result of a step. The first access waits for the device."""

    def __init__(self, value: Ragged) -> None:
        self._ragged: Ragged | None = value

    def _fetch(self) -> None:
        if self._ragged is not None:
            value, self._ragged = self._ragged, None
            self._levels: Lod = _true_levels(value)
            self._rows = true_rows(value)

    def _read(self) -> Any:
        self._fetch()
        return self._rows

    def _write(self, array: Any) -> None:
        self._fetch()
        self._rows = array

    @property
    def offsets(self) -> Lod:
        self._fetch()
        return self._levels

    @offsets.setter
    def offsets(self, lod: Lod) -> None:
        self._fetch()
        self._levels = lod


def _true_levels(value: Ragged) -> Lod:
    """The offsets without padding: each level gives the number of sequences of the next."""
    if _has_number_for_no_rows(value):
        return ((0, 1),)
    found: list[tuple[int, ...]] = []
    for level in value.offsets:
        array = np.asarray(level)
        count = (
            found[-1][-1]
            if found
            else array.shape[0] - 1
            if value.alive is None
            else int(value.alive)
        )
        found.append(tuple(array[: count + 1].tolist()))
    return tuple(found)


def _has_number_for_no_rows(value: Ragged) -> bool:
    """Whether the value has no rows and its op gives a number in their place."""
    return value.nothing is not None and not int(value.count)


def true_rows(value: Ragged) -> np.ndarray:
    """The rows without padding, on the host, a copy."""
    if _has_number_for_no_rows(value):
        return np.full((1, 1), value.nothing, value.dtype)
    return np.array(value.rows)[: int(value.count)].copy()


def form_of(values: Mapping[str, Any]) -> tuple[Any, ...]:
    """The fed values that have a LoD, their numbers of levels, and which of them share one; () if
    none has.
    """
    found: dict[Any, int] = {}
    lods = [(n, measured(v).key) for n, v in values.items() if isinstance(v, LoDTensor)]
    return tuple([(n, found.setdefault(key, len(found)), len(key)) for n, key in lods])


def limits(names: Iterable[str], values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fed values, plus the buckets of those that bound loops: a step is compiled for each
    bucket.
    """
    found = {
        limit(n): Fixed(np.int64(bucket(int(np.max(_numbers(values[n]), initial=0)))))
        for n in names
        if n in values
    }
    return {**values, **found} if found else values


def _numbers(value: Any) -> Any:
    return value.array if isinstance(value, Fixed) else np.asarray(value)
