"""Names that do not repeat: ``fc_0``, ``fc_1``, ... as Fluid numbers them."""

from __future__ import annotations

import contextlib
import threading
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from .base.within import InForce
from .errors import FluidTypeError


class UniqueNameGenerator:
    """Counts the uses of each prefix, over all threads."""

    def __init__(self, prefix: str = "") -> None:
        self.ids: defaultdict[str, int] = defaultdict(int)
        self.prefix = prefix
        self._counting = threading.Lock()

    def __call__(self, key: str) -> str:
        with self._counting:
            number = self.ids[key]
            self.ids[key] += 1
        return f"{self.prefix}{key}_{number}"


generator: UniqueNameGenerator  # the one in force here; `__getattr__` looks it up
_current = InForce("names", UniqueNameGenerator())


def __getattr__(name: str) -> Any:
    if name == "generator":
        return _current.get()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def generate(key: str) -> str:
    """``key_0``, then ``key_1``, ... of the generator in force.

    Raises FluidTypeError for a key that is not a string.
    """
    if not isinstance(key, str):
        raise FluidTypeError(f"the key of a unique name is a string, not {type(key).__name__}")
    return _current.get()(key)


def generate_with_ignorable_key(key: str) -> str:
    """A name whose key Fluid may change."""
    return _current.get()(key)


def switch(new_generator: UniqueNameGenerator | None = None) -> UniqueNameGenerator:
    """Put another generator in force (a fresh one by default); return the one that was.

    Within a `guard` of this thread it is in force until the end of the block, otherwise for the
    whole process.
    """
    return _current.switch(UniqueNameGenerator() if new_generator is None else new_generator)


@contextlib.contextmanager
def guard(new_generator: str | UniqueNameGenerator | None = None) -> Iterator[None]:
    """Restart the numbers of names within the block, in this thread; a string becomes the prefix of
    every name.
    """
    if isinstance(new_generator, bytes):
        new_generator = new_generator.decode()
    if isinstance(new_generator, str):
        new_generator = UniqueNameGenerator(new_generator)
    with _current.within(UniqueNameGenerator() if new_generator is None else new_generator):
        yield
