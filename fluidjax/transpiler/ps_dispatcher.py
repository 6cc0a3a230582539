"""Assigns the blocks of parameters to parameter servers: Fluid's RoundRobin and HashName, and a
balanced dispatcher.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import FluidTypeError, FluidValueError


def name_of_item(item: Any) -> str:
    """The name of an assigned item: of a string, a variable, or an object with a method
    ``name()``.
    """
    if isinstance(item, str):
        return item
    name = getattr(item, "name", None)
    if callable(name):
        name = name()
    if not isinstance(name, str):
        raise FluidTypeError(f"a dispatcher deals variables or names, not {type(item).__name__}")
    return name


class PSDispatcher:
    """Assigns variables to endpoints. Derive from it and define `dispatch` for a split_method of
    your own.

    pserver_endpoints: list of ``ip:port``. Raises FluidTypeError for a bare string.
    """

    def __init__(self, pserver_endpoints: Sequence[str]) -> None:
        if isinstance(pserver_endpoints, str):
            raise FluidTypeError(
                f"{type(self).__name__} takes a list of endpoints; {pserver_endpoints!r} is one"
                " string"
            )
        self._eps = list(pserver_endpoints)
        self.reset()

    @property
    def eps(self) -> list[str]:
        """The endpoints."""
        return self._eps

    def reset(self) -> None:
        """Forget all assignments."""

    def dispatch(self, varlist: Iterable[Any]) -> list[str]:
        """The endpoint of each of `varlist`. The next call continues where this one stopped, until
        reset.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method dispatch(varlist)")

    def _some(self) -> list[str]:
        if not self._eps:
            raise FluidValueError(f"{type(self).__name__} has no endpoints to deal to")
        return self._eps


class RoundRobin(PSDispatcher):
    """Endpoints in turn, one for each item.

    >>> RoundRobin(["a:1", "b:1"]).dispatch(["w", "b", "v"])
    ['a:1', 'b:1', 'a:1']
    """

    def reset(self) -> None:
        self._next = 0

    def dispatch(self, varlist: Iterable[Any]) -> list[str]:
        eps = self._some()
        endpoints = []
        for _ in varlist:
            endpoints.append(eps[self._next % len(eps)])
            self._next += 1
        return endpoints


class HashName(PSDispatcher):
    """The endpoint number SHA-256(name) mod n: the same in every process and every run.

    Fluid used Python's hash(), which every process salts differently, so trainers and pservers
    disagreed.
    """

    def dispatch(self, varlist: Iterable[Any]) -> list[str]:
        eps = self._some()
        return [eps[stable_hash(name_of_item(item)) % len(eps)] for item in varlist]


class SizeBalanced(PSDispatcher):
    """The first endpoint among those with the fewest elements so far; the elements of an item are
    the product of its shape.

    Not in Fluid. Assigns the largest items of a call first, so that loads differ by at most one
    item.
    """

    def reset(self) -> None:
        self._load = dict.fromkeys(self._eps, 0)

    def dispatch(self, varlist: Iterable[Any]) -> list[str]:
        self._some()
        items = list(varlist)
        sizes = [math.prod(max(n, 1) for n in getattr(item, "shape", None) or ()) for item in items]
        endpoints = [""] * len(items)
        for at in sorted(range(len(items)), key=lambda i: -sizes[i]):
            endpoints[at] = min(self._load, key=self._load.__getitem__)
            self._load[endpoints[at]] += sizes[at]
        return endpoints


def stable_hash(name: str) -> int:
    """64 bits of SHA-256 of the name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
