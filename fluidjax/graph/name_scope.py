"""name_scope: a tree of names that ops carry in their attribute ``op_namescope``."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator

from ..base.within import InForce
from ..errors import ArgumentError


class NameScope:
    """A tree of name scopes; a name used twice below one parent becomes ``name_1``."""

    def __init__(self, name: str = "", parent: NameScope | None = None) -> None:
        self._children: dict[str, Iterator[int]] = {}
        self._name = name
        self._parent = parent

    def child(self, prefix: str) -> NameScope:
        # a scope that no other thread gets
        number = next(self._children.setdefault(prefix, itertools.count()))
        return NameScope(prefix if number == 0 else f"{prefix}_{number}", self)

    def parent(self) -> NameScope | None:
        return self._parent

    def full(self) -> str:
        """``/outer/inner/``; ``/`` at the root."""
        return "/" if self._parent is None else self._parent.full() + self._name + "/"


_current = InForce("name scope", NameScope())


@contextlib.contextmanager
def name_scope(prefix: str | None = None) -> Iterator[None]:
    """Ops appended within the block carry ``op_namescope`` = ``/prefix/``."""
    if not prefix:
        raise ArgumentError("name_scope needs a name")
    with _current.within(_current.get().child(prefix)):
        yield


def current_name_scope() -> NameScope:
    """The scope that ops are appended in."""
    return _current.get()


def fresh_name_scopes() -> contextlib.AbstractContextManager[None]:
    """Number scopes from the start again within the block, as in a new process."""
    return _current.within(NameScope())
