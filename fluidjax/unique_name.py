"""Names that do not repeat: ``fc_0``, ``fc_1``, ... as Fluid numbers them."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator


class UniqueNameGenerator:
    """Counts how often each prefix was asked for."""

    def __init__(self, prefix: str = "") -> None:
        self.ids: defaultdict[str, int] = defaultdict(int)
        self.prefix = prefix

    def __call__(self, key: str) -> str:
        number = self.ids[key]
        self.ids[key] += 1
        return f"{self.prefix}{key}_{number}"


generator = UniqueNameGenerator()


def generate(key: str) -> str:
    """``key_0``, then ``key_1``, ... of the generator in force."""
    return generator(key)


def generate_with_ignorable_key(key: str) -> str:
    """A name whose key Fluid does not promise to keep."""
    return generator(key)


def switch(new_generator: UniqueNameGenerator | None = None) -> UniqueNameGenerator:
    """Put another generator in force (a fresh one by default); return the one that was."""
    global generator
    old = generator
    generator = UniqueNameGenerator() if new_generator is None else new_generator
    return old


@contextlib.contextmanager
def guard(new_generator: str | UniqueNameGenerator | None = None) -> Iterator[None]:
    """Number names afresh within the block; a string becomes the prefix of every name."""
    if isinstance(new_generator, bytes):
        new_generator = new_generator.decode()
    if isinstance(new_generator, str):
        new_generator = UniqueNameGenerator(new_generator)
    old = switch(new_generator)
    try:
        yield
    finally:
        switch(old)
