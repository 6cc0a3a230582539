"""Where what is being traced will stand in the compiled program, how it will find its filters, and
who runs its loops over elements.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar

from ..base.within import within

_ENCLOSED: ContextVar[bool] = ContextVar("enclosed", default=False)
_TURNED: ContextVar[bool] = ContextVar("filters turned", default=False)
_LIBRARY: ContextVar[bool] = ContextVar("loops in a library", default=False)


def is_enclosed() -> bool:
    """Whether a loop or a branch is being traced: there XLA:CPU does not look for the fast form of
    an op by itself.
    """
    return _ENCLOSED.get()


def enclosed() -> AbstractContextManager[None]:
    """What is traced within stands within a loop or a branch."""
    return within(_ENCLOSED, True)


def filters_are_turned() -> bool:
    """Whether the filters of what is being traced lie in memory as [h, w, I, O] (trait `turned`):
    so XLA:CPU reads them without a copy.
    """
    return _TURNED.get()


def filters_turned(turned: bool = True) -> AbstractContextManager[None]:
    """What is traced within finds its filters so, or not."""
    return within(_TURNED, turned)


def loops_are_the_library_s() -> bool:
    """Whether loops over elements will be a library's, which hands whole arrays from one to the
    next: fewer are faster then.
    """
    return _LIBRARY.get()


def loops_in_library(library: bool = True) -> AbstractContextManager[None]:
    """What is traced within has its loops there, or not."""
    return within(_LIBRARY, library)


def surroundings() -> tuple[bool, bool, bool]:
    """All of this that what is traced may depend on."""
    return is_enclosed(), filters_are_turned(), loops_are_the_library_s()
