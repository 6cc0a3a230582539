"""Storage of the value of a scope's variable: one interface for values that the scope holds and for
values in the buffers of a program.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import jax
import numpy as np

from ..devices import forked
from ..devices.placement import PerRank, copied
from ..devices.shard_layout import ShardedValue
from .selected_rows import SelectedRows


class Storage(Protocol):
    """Gives access to a variable's value. `empty`: there is none yet."""

    @property
    def empty(self) -> bool: ...

    def read(self) -> Any:
        """The whole value (an array of NumPy or JAX, or SelectedRows), or None. Of per-rank values,
        that of the first rank.
        """

    def write(self, value: Any) -> bool:
        """Store a value in place of the old one. False if it does not fit, and then nothing has
        changed.
        """

    def per_rank(self) -> Any:
        """The array [ranks, ...] if every rank has its own value, else None."""

    def shards(self) -> ShardedValue | None:
        """The value's shards on several devices; None if the value is not sharded."""

    def release(self) -> None:
        """Move the value into the variable itself, so that its buffers can be dropped."""


def lasting(value: Any) -> Any:
    """A value that a later step cannot donate: on the host or, for an array on several devices, a
    copy with the same sharding.

    On the CPU the host array is not a copy: JAX copies a donated array instead if a host array
    views it.
    """
    if not isinstance(value, jax.Array) or not value.is_fully_addressable:
        return value
    forked.refuse_unfinished(value)
    return np.asarray(value) if len(value.devices()) == 1 else copied(value)


@dataclass(frozen=True, slots=True)
class Held:
    """A value that the variable holds itself: an array, PerRank, ShardedValue or SelectedRows (a
    step's, or one that a script fills); None before there is one.
    """

    value: Any = None

    @property
    def empty(self) -> bool:
        return self.value is None

    def read(self) -> Any:
        if isinstance(self.value, ShardedValue):
            return self.value.whole()
        if isinstance(self.value, SelectedRows):
            return self.value.stepped()
        return np.asarray(self.value[0]) if isinstance(self.value, PerRank) else self.value

    def write(self, value: Any) -> bool:
        return False

    def per_rank(self) -> Any:
        return self.value if isinstance(self.value, PerRank) else None

    def shards(self) -> ShardedValue | None:
        return self.value if isinstance(self.value, ShardedValue) else None

    def release(self) -> None:
        """Does nothing, because the variable holds the value already."""
