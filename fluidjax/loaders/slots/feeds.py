"""Batches of samples as what Executor.run takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import FluidValueError
from ...lod_tensor import LoDTensor
from .lines import Slot
from .records import Column, Records

Feed = dict[str, Any]


def feed_of(batch: Records, slots: Sequence[Slot]) -> Feed:
    """By name: an array of the declared shape for a dense slot, else a LoDTensor of shape [values, 1]."""
    lods: dict[bytes, tuple[int, ...]] = {}
    return {s.name: _value(c, s, lods) for c, s in zip(batch.columns, slots, strict=True)}


def _value(column: Column, slot: Slot, lods: dict[bytes, tuple[int, ...]]) -> Any:
    values, offsets = column.true()
    if slot.shape is None:
        key = offsets.tobytes()
        if key not in lods:
            lods[key] = tuple(offsets.tolist())
        tensor = LoDTensor(values.reshape(-1, 1))
        tensor.offsets = (lods[key],)
        return tensor
    count, rest = len(offsets) - 1, slot.shape[1:]
    if slot.width() is None and (np.diff(offsets) != offsets[1]).any():
        raise FluidValueError(f"the samples of a batch have different numbers of values in the dense slot {slot.name!r}")
    try:
        return values.reshape(count, *rest)
    except ValueError:
        raise FluidValueError(f"{offsets[1]} values of slot {slot.name!r} do not fit its shape {list(slot.shape)}") from None


__all__ = ["Feed", "feed_of"]
