"""Values in force within a block, for the thread that runs the block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_NONE: Any = object()  # no block of this thread sets a value


@contextmanager
def within(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Set the variable to this value within the block, and restore the old value afterwards."""
    before = variable.set(value)
    try:
        yield
    finally:
        variable.reset(before)


class InForce(Generic[T]):
    """A value for the whole process, which a thread may replace within a block.

    A thread that is started within the block sees the process's value, unless it copies the
    context.
    """

    def __init__(self, name: str, value: T) -> None:
        self._everywhere = value
        self._here: ContextVar[T] = ContextVar(name, default=_NONE)

    def get(self) -> T:
        """The value in force here."""
        here = self._here.get()
        return self._everywhere if here is _NONE else here

    def switch(self, value: T) -> T:
        """Put another value in force until the end of the block or, outside of blocks, for the
        whole process; returns the old value.
        """
        old = self.get()
        if self._here.get() is _NONE:
            self._everywhere = value
        else:
            self._here.set(value)
        return old

    @contextmanager
    def within(self, value: T) -> Iterator[None]:
        """`value` is in force in this thread within the block."""
        before = self._here.get()
        self._here.set(value)
        try:
            yield
        finally:
            # no token is kept: a generator may leave the block in another context than it entered
            # it in
            self._here.set(before)
