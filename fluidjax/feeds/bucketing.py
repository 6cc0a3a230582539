"""Turns LoDTensors into the values that a step takes, and back. Rows and lengths are padded to a
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
    """The least of 8, 12, 16, 24, 32, 48, ... that is no less than n.

    Two sizes an octave: at most half as much again, and 2 log2(n / 8) + 2 of them up to n.
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
    """A feed for ``step_fn``: LoDTensors with sequences become Ragged, anything else stays.

    Rows and the longest sequence of each level are padded up to a bucket, by copies of the last
    row, so that varied batches make few shapes; with exact they are not. fill: the number of
    sequences is padded too, by empty ones, and so are those arrays of these names that have as many
    rows. inner: names of which the numbers of sequences below the first level are padded up to a
    bucket, by empty ones. by_offsets: of the longest sequences nothing is said but that they have
    no more rows than there are. rooms: rows, and longest sequence, up to which those of these names
    are padded at least. Equal LoDs get equal keys, numbered by first appearance. Raises
    FluidValueError for a LoD that does not fit its rows.
    """
    keys: dict[tuple[bytes, ...], int] = {}
    lods = {n: v for n, v in feed.items() if isinstance(v, LoDTensor) and has_lod(v)}
    ragged = {
        n: _ragged(n, v, keys, exact, by_offsets, (rooms or {}).get(n, (0, 0)))
        for n, v in lods.items()
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
    return {**feed, **found, **{n: _rows(v, _each(counts, v.shape[0])) for n, v in beside.items()}}


def _each(counts: Mapping[int, int], count: int) -> Hashable:
    """The key of values with a row for each of so many sequences."""
    return "batch", counts[count]


def batched(feed: Mapping[str, Any], names: Collection[str], size: int) -> dict[str, Any]:
    """A feed whose arrays of these names, which have equally many rows, are padded up to `size`."""
    return {n: _rows(v, BATCH, size) if n in names else v for n, v in feed.items()}


def _filled(value: Ragged, counts: Mapping[int, int]) -> Ragged:
    """With empty sequences behind the last, up to a bucket."""
    count = value.offsets[0].shape[0] - 1
    offsets = tuple(filled_level(level, bucket(level.shape[0] - 1)) for level in value.offsets)
    return replace(value, offsets=offsets, each=_each(counts, count), alive=np.int32(count))


def _inner(value: Ragged) -> Ragged:
    """With empty sequences behind the last of every level below the first, up to a bucket;
    `longest` says its sizes.
    """
    first, *below = value.offsets
    filled = (filled_level(level, bucket(level.shape[0] - 1)) for level in below)
    return replace(value, offsets=(first, *filled), key=("inner", value.key), most=None)


def filled_level(level: np.ndarray, count: int) -> np.ndarray:
    """Offsets of so many sequences, those behind the last empty."""
    return np.pad(level, (0, count + 1 - level.shape[0]), mode="edge")


def _rows(array: np.ndarray, key: Hashable, size: int | None = None) -> Ragged:
    """An array with copies of its last row behind it, up to a size, else up to a bucket."""
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
    """With copies of the last row behind it, so that gradients there are 0 times something finite;
    zeros where there is none.
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
    room: tuple[int, int],
) -> Ragged:
    array = tensor.array()
    wrong = tensor.misfit()
    if wrong:
        raise FluidValueError(f"{name!r} has a LoD that does not fit its rows: {wrong}")
    offsets, longest, lod = measured(tensor)
    key = keys.setdefault(lod, len(keys))
    if exact:
        return Ragged(np.array(array), offsets, longest, key)
    most, long = map(max, tensor.room, room)
    rows = extended(array, max(bucket(array.shape[0]), most))
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
        tuple(max(bucket(n), long) for n in longest),
        key,
        padded=True,
        most=_most(offsets),
    )


def _most(offsets: tuple[np.ndarray, ...]) -> tuple[int, ...] | None:
    """For several levels, a bucket for the rows of a sequence of each; of one, longest says it."""
    return None if len(offsets) == 1 else tuple(map(bucket, most_rows(offsets)))


def most_rows(offsets: tuple[np.ndarray, ...]) -> tuple[int, ...]:
    """How many rows the largest sequence of each level has."""
    ends = [offsets[-1]]
    for level in reversed(offsets[:-1]):
        ends.insert(0, ends[0][level])
    return tuple(int(np.diff(at).max(initial=0)) for at in ends)


class StepTensor(LoDTensor):
    """A ragged result of a step. The device is waited for when it is first looked at."""

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
    """The offsets of sequences that there are: each level says how many the next has."""
    if _shows_nothing(value):
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


def _shows_nothing(value: Ragged) -> bool:
    """Whether a number is shown in the place of no rows."""
    return value.nothing is not None and not int(value.count)


def true_rows(value: Ragged) -> np.ndarray:
    """The rows without padding, on the host, a copy."""
    if _shows_nothing(value):
        return np.full((1, 1), value.nothing, value.dtype)
    return np.array(value.rows)[: int(value.count)].copy()


def form_of(values: Mapping[str, Any]) -> tuple[Any, ...]:
    """Which fed values have a LoD, of how many levels, and which have the same; () if none has."""
    found: dict[Any, int] = {}
    lods = [(n, measured(v).key) for n, v in values.items() if isinstance(v, LoDTensor)]
    return tuple([(n, found.setdefault(key, len(found)), len(key)) for n, key in lods])


def limits(names: Iterable[str], values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fed values with the buckets of these, which bound loops: a step is compiled for each
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
