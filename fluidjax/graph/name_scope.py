"""name_scope: a tree of names that ops carry in their attribute ``op_namescope``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ..errors import FluidValueError


class NameScope:
    """A tree of name scopes; a name used twice below one parent becomes ``name_1``."""

    def __init__(self, name: str = "", parent: NameScope | None = None) -> None:
        self._children: dict[str, int] = {}
        self._name = name
        self._parent = parent

    def child(self, prefix: str) -> NameScope:
        number = self._children.get(prefix, 0)
        self._children[prefix] = number + 1
        return NameScope(prefix if number == 0 else f"{prefix}_{number}", self)

    def parent(self) -> NameScope | None:
        return self._parent

    def full(self) -> str:
        """``/outer/inner/``; ``/`` at the root."""
        return "/" if self._parent is None else self._parent.full() + self._name + "/"


_current = NameScope()


@contextlib.contextmanager
def name_scope(prefix: str | None = None) -> Iterator[None]:
    """Ops appended within the block carry ``op_namescope`` = ``/prefix/``."""
    global _current
    if not prefix:
        raise FluidValueError("name_scope needs a name")
    _current = _current.child(prefix)
    try:
        yield
    finally:
        _current = _current.parent() or _current


def current_name_scope() -> NameScope:
    """The scope that ops are appended in."""
    return _current


@contextlib.contextmanager
def fresh_name_scopes() -> Iterator[None]:
    """Within the block scopes are counted afresh, as in a new process."""
    global _current
    old, _current = _current, NameScope()
    try:
        yield
    finally:
        _current = old
