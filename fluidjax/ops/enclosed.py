"""Whether what is being traced will stand within a loop or a branch of the compiled program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ENCLOSED: ContextVar[bool] = ContextVar("enclosed", default=False)


def is_enclosed() -> bool:
    """Whether a loop or a branch is being traced: there XLA:CPU does not look for the fast form of an op by itself."""
    return _ENCLOSED.get()


@contextmanager
def enclosed() -> Iterator[None]:
    """What is traced within stands within a loop or a branch."""
    before = _ENCLOSED.set(True)
    try:
        yield
    finally:
        _ENCLOSED.reset(before)
