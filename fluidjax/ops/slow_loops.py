"""Whether what is being traced will be compiled in a hurry: loops over elements without vectors, ten to thirty times as slow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_SLOW: ContextVar[bool] = ContextVar("slow_loops", default=False)


def loops_are_slow() -> bool:
    """Whether an op should leave to a library what it can, and write few loops over elements."""
    return _SLOW.get()


@contextmanager
def slow_loops(slow: bool) -> Iterator[None]:
    """Whether what is traced within has slow loops."""
    before = _SLOW.set(slow)
    try:
        yield
    finally:
        _SLOW.reset(before)
