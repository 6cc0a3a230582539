"""The executables of one step: a jitted function for each kind of call and form of a feed.

Each executable has a function of its own, so that it can be dropped by itself. The plan or
FLAGS_max_executables sets how many are kept; the least recently used one is dropped first.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from ..base.flags import flag
from ..compiling.kind import Kind
from ..lower.nan_check import Finite

_uses = itertools.count()


class Executable:
    """A compiled call. fn: the jitted function, None once it is dropped. ragged: the first fetch
    that has a LoD. called: whether it was called before, so that a further call runs in C. used:
    when it was last used, counted in uses of all executables.
    """

    __slots__ = ("called", "fn", "ragged", "used")

    def __init__(self, fn: Any, ragged: str | None) -> None:
        self.fn, self.ragged, self.called = fn, ragged, False
        self.used = next(_uses)

    def use(self) -> Any:
        """The function, for a call that follows now."""
        self.used = next(_uses)
        return self.fn

    def drop(self) -> None:
        self.fn = None

    def was_called(self) -> None:
        self.called = True


class Executables:
    """most: how many are kept; None means FLAGS_max_executables. finite: the values that checked
    functions inspect, by kind.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self.finite: dict[Kind, Finite] = {}
        self._made: dict[Any, Executable] = {}

    def __len__(self) -> int:
        return len(self._made)

    def __iter__(self) -> Iterator[Executable]:
        return iter(self._made.values())

    def get(self, signature: Any) -> Executable | None:
        """The executable for this signature, or None."""
        return self._made.get(signature)

    def built(self, signature: Any, fn: Any, ragged: str | None) -> Executable:
        """Keep a function that is compiled for this signature. ragged: a fetch of it that has a
        LoD.
        """
        most = flag("FLAGS_max_executables") if self._most is None else self._most
        while len(self._made) >= max(1, most):
            oldest = min(self._made, key=lambda s: self._made[s].used)
            self._made.pop(oldest).drop()
        found = self._made[signature] = Executable(fn, ragged)
        return found

    def forget(self) -> None:
        """Drop everything, because the state has other types now."""
        for each in self._made.values():
            each.drop()
        self._made.clear()
