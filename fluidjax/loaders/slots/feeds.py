"""Batches of samples as what Executor.run takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import FluidValueError
from ...lod_tensor import LoDTensor
from ...runtime.bucketing import bucket
from .lines import Slot
from .records import Column, Records

Feed = dict[str, Any]


class Rooms:
    """The largest buckets that each slot has needed. Later batches are padded up to them, so that few steps are compiled.

    Without it every combination of the slots' buckets would be a step of its own.
    """

    def __init__(self) -> None:
        self._largest: dict[str, tuple[int, int]] = {}

    def of(self, name: str, rows: int, longest: int) -> tuple[int, int]:
        before = self._largest.get(name, (0, 0))
        found = self._largest[name] = max(before[0], bucket(rows)), max(before[1], bucket(longest))
        return found


def feed_of(batch: Records, slots: Sequence[Slot], rooms: Rooms) -> Feed:
    """By name: an array of the declared shape for a dense slot, else a LoDTensor of shape [values, 1]."""
    lods: dict[bytes, tuple[int, ...]] = {}
    return {s.name: _value(c, s, lods, rooms) for c, s in zip(batch.columns, slots, strict=True)}


def _value(column: Column, slot: Slot, lods: dict[bytes, tuple[int, ...]], rooms: Rooms) -> Any:
    values, offsets = column.true()
    if slot.shape is None:
        key = offsets.tobytes()
        if key not in lods:
            lods[key] = tuple(offsets.tolist())
        tensor = LoDTensor(values.reshape(-1, 1))
        tensor.offsets = (lods[key],)
        tensor.room = rooms.of(slot.name, len(values), int(np.diff(offsets).max(initial=0)))
        return tensor
    count, rest = len(offsets) - 1, slot.shape[1:]
    if slot.width() is None and (np.diff(offsets) != offsets[1]).any():
        raise FluidValueError(f"the samples of a batch have different numbers of values in the dense slot {slot.name!r}")
    try:
        return values.reshape(count, *rest)
    except ValueError:
        raise FluidValueError(f"{offsets[1]} values of slot {slot.name!r} do not fit its shape {list(slot.shape)}") from None


__all__ = ["Feed", "Rooms", "feed_of"]
