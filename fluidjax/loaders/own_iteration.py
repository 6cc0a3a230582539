"""Loaders that are also their own iterators, as in Fluid: ``next(loader)``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class OwnIteration:
    """An iterable whose ``next`` continues an iteration of its own."""

    _iterator: Iterator[list[Any]] | None = None

    def __iter__(self) -> Iterator[list[Any]]:
        raise NotImplementedError

    def __next__(self) -> list[Any]:
        """The next batch of the loader's own iteration, which begins with the first call."""
        if self._iterator is None:
            self._iterator = iter(self)
        try:
            return next(self._iterator)
        except BaseException:
            self._iterator = None
            raise

    next = __next__
