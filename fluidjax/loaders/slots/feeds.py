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
    ragged = iter(_tensors([c for c, s in zip(batch.columns, slots, strict=True) if s.shape is None]))
    return {
        s.name: _in_its_room(next(ragged), s.name, rooms) if s.shape is None else _dense(c, s)
        for c, s in zip(batch.columns, slots, strict=True)
    }


def _tensors(columns: Sequence[Column]) -> list[tuple[LoDTensor, int]]:
    """Each with its longest sequence. The offsets of all are looked at together: a call of NumPy for each would take longer."""
    if not columns:
        return []
    offsets = np.stack([c.offsets for c in columns])
    begins, ends = offsets[:, 0].tolist(), offsets[:, -1].tolist()
    offsets -= offsets[:, :1]
    longest = (offsets[:, 1:] - offsets[:, :-1]).max(1, initial=0).tolist()
    same: dict[tuple[int, ...], tuple[int, ...]] = {}
    made = []
    for column, begin, end, level, most in zip(columns, begins, ends, map(tuple, offsets.tolist()), longest, strict=True):
        tensor = LoDTensor(column.values[begin:end].reshape(-1, 1))
        tensor.offsets = (same.setdefault(level, level),)
        made.append((tensor, most))
    return made


def _in_its_room(made: tuple[LoDTensor, int], name: str, rooms: Rooms) -> LoDTensor:
    tensor, longest = made
    tensor.room = rooms.of(name, tensor.offsets[0][-1], longest)
    return tensor


def _dense(column: Column, slot: Slot) -> np.ndarray:
    values, offsets = column.true()
    assert slot.shape is not None
    count, rest = len(offsets) - 1, slot.shape[1:]
    if slot.width() is None and (np.diff(offsets) != offsets[1]).any():
        raise FluidValueError(f"the samples of a batch have different numbers of values in the dense slot {slot.name!r}")
    try:
        return values.reshape(count, *rest)
    except ValueError:
        raise FluidValueError(f"{offsets[1]} values of slot {slot.name!r} do not fit its shape {list(slot.shape)}") from None


__all__ = ["Feed", "Rooms", "feed_of"]
