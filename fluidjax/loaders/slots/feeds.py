"""Converts batches of samples to feeds for Executor.run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import FluidValueError
from ...feeds.bucketing import bucket
from ...lod_tensor import FittingTensor, Measured
from .lines import Slot
from .records import Records

Feed = dict[str, Any]
_MOST = 2**31  # values of a slot in a batch: offsets are int32 in a step


class Rooms:
    """The largest buckets that each slot has needed. Later batches are padded up to them, so that
    few steps are compiled.

    Without it, every combination of the slots' buckets would be a step of its own.
    """

    def __init__(self) -> None:
        self._largest: dict[str, tuple[int, int]] = {}

    def of(self, name: str, rows: int, longest: int) -> tuple[int, int]:
        before = self._largest.get(name, (0, 0))
        if rows <= before[0] and longest <= before[1]:
            return before
        found = self._largest[name] = max(before[0], bucket(rows)), max(before[1], bucket(longest))
        return found


def feed_of(batch: Records, slots: Sequence[Slot], rooms: Rooms) -> Feed:
    """By name: an array of the declared shape for a dense slot, else a LoDTensor of shape [values,
    1].

    The offsets of all slots are processed together, because a NumPy call for each would take
    longer.
    """
    ends = batch.offsets[:, [0, -1]].tolist()
    offsets = batch.offsets - batch.offsets[:, :1]
    longest = (offsets[:, 1:] - offsets[:, :-1]).max(1, initial=0).tolist()
    for slot, (begin, end) in zip(slots, ends, strict=True):
        if end - begin >= _MOST:
            raise FluidValueError(
                f"a batch of {len(batch)} samples holds {end - begin} values of slot {slot.name!r};"
                " make it smaller"
            )
    offsets = offsets.astype(np.int32, copy=False)
    # if each sample has one value in most slots, few slots have offsets of their own
    same: dict[bytes, Measured] = {}
    feed: Feed = {}
    for slot, values, (begin, end), level, most in zip(
        slots, batch.values, ends, offsets, longest, strict=True
    ):
        if slot.shape is not None:
            feed[slot.name] = _dense(values[begin:end], level, slot)
            continue
        key = level.tobytes()
        found = same.get(key) or same.setdefault(key, Measured((level,), (most,), (key,)))
        tensor = feed[slot.name] = FittingTensor(values[begin:end].reshape(-1, 1), found)
        tensor.room = rooms.of(slot.name, end - begin, most)
    return feed


def _dense(values: np.ndarray, offsets: np.ndarray, slot: Slot) -> np.ndarray:
    assert slot.shape is not None
    count, rest = len(offsets) - 1, slot.shape[1:]
    if slot.width() is None and (np.diff(offsets) != offsets[1]).any():
        raise FluidValueError(
            "the samples of a batch have different numbers of values in the dense slot"
            f" {slot.name!r}"
        )
    try:
        return values.reshape(count, *rest)
    except ValueError:
        raise FluidValueError(
            f"{offsets[1]} values of slot {slot.name!r} do not fit its shape {list(slot.shape)}"
        ) from None


__all__ = ["Feed", "Rooms", "feed_of"]
