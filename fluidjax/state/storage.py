"""Where the value of a scope's variable is: one interface for values that the scope holds and for
values in the arrays of a running program.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import jax
import numpy as np

from ..devices.placement import PerRank
from ..devices.shard_layout import ShardedValue
from .selected_rows import SelectedRows


class Storage(Protocol):
    """The door to a variable's value. `empty`: there is none yet."""

    @property
    def empty(self) -> bool: ...

    def read(self) -> Any:
        """The whole value (an array of NumPy or JAX, SelectedRows), or None. Where every rank has
        its own, that of the first.
        """

    def write(self, value: Any) -> bool:
        """Store a value where the old one lies; False where it does not fit, and then nothing has
        changed.
        """

    def per_rank(self) -> Any:
        """[ranks, ...] where every rank has its own value, else None."""

    def shards(self) -> ShardedValue | None:
        """The value as it lies in parts on several devices; None where some device holds all
        of it.
        """

    def release(self) -> None:
        """Have the variable hold its value itself, so that its present holder can be dropped."""


def lasting(value: Any) -> Any:
    """A value that a later step cannot take away: on the host, or, of an array on several devices,
    a copy that lies as it does.

    On the CPU the former is no copy: a donated array that is looked at is copied instead.
    """
    if not isinstance(value, jax.Array) or not value.is_fully_addressable:
        return value
    return np.asarray(value) if len(value.devices()) == 1 else value.copy()


@dataclass(frozen=True, slots=True)
class Held:
    """A value that the variable holds itself: an array, PerRank, ShardedValue, SelectedRows (a
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
        """It is held by itself already."""
