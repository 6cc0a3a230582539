"""Ragged feeds of the ranks of several processes: all are padded to agreed sizes, so that one
program takes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from ...devices.placement import OWN, Mesh, per_rank
from ...errors import FeedError
from ...feeds.bucketing import bucket, extended, filled_level, most_rows
from ...lod_tensor import LoDTensor
from ...ops.fixed import Fixed
from ...ops.ragged import ROWS, Ragged

Column = tuple[int, ...]  # a number of every rank of the job


class RaggedRanks:
    """Pads the feeds of one program.

    Rows, and the longest sequence of each level, are padded to a bucket for the largest rank. If
    the ranks' numbers of sequences differ, on any level, empty sequences are appended to every
    level, up to a bucket, and copies to arrays with a row for each sequence of the first level.
    """

    def __init__(self, where: Mesh) -> None:
        self.where = where
        self._compared: set[str] = set()  # kinds of feeds that the processes have compared

    def joined(self, ranks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The feeds of this process's ranks in the form for the joint step: leaves of all ranks in
        sequence.

        Raises FeedError if sizes differ that are not padded, and JobError if processes feed
        different kinds of values.
        """
        kinds = [_kinds(one) for one in ranks]
        if any(kind != kinds[0] for kind in kinds):
            raise FeedError(
                f"the devices of a job take equal feeds, but one gets {_first_difference(kinds)}"
            )
        if kinds[0] not in self._compared:
            self.where.compares(self.where, kinds[0])
            self._compared.add(kinds[0])
        columns = self._exchanged([_numbers(one) for one in ranks])
        parts = [_padded(one, columns) for one in ranks]
        return {
            n: v if isinstance(v, Fixed) else self._whole([part[n] for part in parts])
            for n, v in parts[0].items()
        }

    def _exchanged(self, numbers: Sequence[Mapping[Any, int]]) -> dict[Any, Column]:
        """The numbers of all ranks of the job."""
        where = self.where
        rows = np.zeros((where.count, len(numbers[0])), np.int64)
        for device, found in zip(where.local, numbers, strict=True):
            rows[where.devices.index(device)] = list(found.values())
        every = where.everywhere(where.put(per_rank(rows), own=True))
        return dict(zip(numbers[0], map(tuple, every.T.tolist()), strict=True))

    def _whole(self, values: Sequence[Any]) -> Any:
        """One value of the mesh, from those of this process's ranks."""
        sharding = self.where.sharding(OWN)
        with jax.enable_x64(True):
            return jax.tree.map(
                lambda *leaves: jax.make_array_from_process_local_data(
                    sharding, np.concatenate(leaves)
                ),
                *values,
            )


def _kinds(feed: Mapping[str, Any]) -> str:
    """The properties that must be equal in the feeds of all ranks, a line each."""
    return "\n".join(f"feed {n!r}: {_kind(v)}" for n, v in sorted(feed.items()))


def _kind(value: Any) -> str:
    if isinstance(value, Fixed):
        return f"{value.dtype}{list(value.shape)} {value.array.tolist()}, which decides sizes"
    if isinstance(value, LoDTensor):
        levels = f" of {len(value.offsets)} levels" * (len(value.offsets) > 1)
        return f"{value.array().dtype}, rows of {list(value.array().shape[1:])} with a LoD{levels}"
    return f"{value.dtype}, rows of {list(value.shape[1:])}" if value.ndim else "one number"


def _first_difference(kinds: Sequence[str]) -> str:
    other = next(kind for kind in kinds if kind != kinds[0])
    lines = list(
        zip((*kinds[0].splitlines(), "no more"), (*other.splitlines(), "no more"), strict=False)
    )
    return next(f"`{a}` and another `{b}`" for a, b in lines if a != b)


def _numbers(feed: Mapping[str, Any]) -> dict[Any, int]:
    """The numbers of one rank's feed that the processes must know."""
    found: dict[Any, int] = {}
    lods: dict[Any, int] = {}
    for name, value in feed.items():
        if isinstance(value, LoDTensor):
            offsets = _offsets(value)
            found[name, "rows"], found[name, "lod"] = (
                int(offsets[-1][-1]),
                lods.setdefault(value.offsets, len(lods)),
            )
            for i, (level, most) in enumerate(zip(offsets, most_rows(offsets), strict=True)):
                found[name, "count", i], found[name, "longest", i] = (
                    len(level) - 1,
                    int(np.diff(level).max(initial=0)),
                )
                found[name, "most", i] = most
        elif not isinstance(value, Fixed):
            if not value.ndim:
                raise FeedError(
                    f"feed {name!r} is one number, which devices cannot share out; give it a first"
                    " dimension"
                )
            found[name, "rows"] = value.shape[0]
    return found


def _offsets(tensor: LoDTensor) -> tuple[np.ndarray, ...]:
    return tuple(np.array(level, np.int32) for level in tensor.offsets)


def _padded(feed: Mapping[str, Any], columns: Mapping[Any, Column]) -> dict[str, Any]:
    """One rank's feed at the sizes of all."""
    keys: dict[Column, int] = {}  # LoDs are equal if they are equal on every rank
    # numbers of sequences that differ between ranks on some level
    counts: dict[Column, int] = {}
    for name, value in feed.items():
        if isinstance(value, LoDTensor):
            keys.setdefault(columns[name, "lod"], len(keys))
            if any(len(set(columns[name, "count", i])) > 1 for i in range(len(value.offsets))):
                counts.setdefault(columns[name, "count", 0], len(counts))
    found = {}
    for name, value in feed.items():
        if isinstance(value, LoDTensor):
            found[name] = _sequences(name, value, columns, keys, counts)
        elif not isinstance(value, Fixed) and columns[name, "rows"] in counts:
            found[name] = _rows(value, columns[name, "rows"], counts)
        elif isinstance(value, Fixed) or len(set(columns[name, "rows"])) == 1:
            found[name] = value
        else:
            raise FeedError(
                f"feed {name!r} has {_shown(columns[name, 'rows'])} rows on the devices of the job:"
                " neither equally many nor one for each sequence of another feed"
            )
    return found


def _sequences(
    name: str,
    tensor: LoDTensor,
    columns: Mapping[Any, Column],
    keys: Mapping[Column, int],
    counts: Mapping[Column, int],
) -> Ragged:
    offsets, each, alive = _offsets(tensor), None, None
    most_of = lambda what: tuple(bucket(max(columns[name, what, i])) for i in range(len(offsets)))  # noqa: E731
    number = columns[name, "count", 0]
    if number in counts:
        each, alive = ("batch", counts[number]), np.array([len(offsets[0]) - 1], np.int32)
        offsets = tuple(map(filled_level, offsets, most_of("count")))
    array = extended(np.asarray(tensor.array()), bucket(max(columns[name, "rows"])))
    most = most_of("most") if len(offsets) > 1 else None
    return Ragged(
        array,
        offsets,
        most_of("longest"),
        keys[columns[name, "lod"]],
        padded=True,
        most=most,
        each=each,
        alive=alive,
    )


def _rows(value: Any, number: Column, counts: Mapping[Column, int]) -> Ragged:
    """An array with a row for each sequence."""
    size, offsets = bucket(max(number)), np.array([0, value.shape[0]], np.int32)
    return Ragged(
        extended(np.asarray(value), size),
        (offsets,),
        (size,),
        ("batch", counts[number]),
        padded=True,
        bare=True,
        each=ROWS,
    )


def _shown(numbers: Column) -> str:
    return ", ".join(map(str, numbers[:8])) + ", ..." * (len(numbers) > 8)
