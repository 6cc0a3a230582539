"""A context variable that has a value within a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def within(variable: ContextVar[T], value: T) -> Iterator[None]:
    """The variable has this value within, and afterwards what it had before."""
    before = variable.set(value)
    try:
        yield
    finally:
        variable.reset(before)
