"""Batches of samples of like length, so that little is padded and few sizes are compiled."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import FluidTypeError, FluidValueError
from .decorators import Reader, reading_pass


def batch_by_length(
    reader: Reader, batch_size: int, window: int = 16, seed: int | None = None, drop_last: bool = False,
    length: Callable[[Any], int] | None = None,
) -> Reader:  # fmt: skip
    """A reader of lists of `batch_size` samples, sorted by length within every `window` batches of
    samples.

    length: how long a sample is; default the number of entries of its first field. Samples of one
    length keep their order. The batches of a window come in random order, so that training does not
    see short ones first; what that is in pass n depends on `seed` and n alone (the pass of the
    DataLoader or resumable reader around it, else counted here), and without a seed on Python's
    ``random``. drop_last: leave a shorter last batch of the pass out. Raises FluidTypeError,
    FluidValueError for arguments that do not fit, and for going on in the middle of a pass without
    a seed.
    """
    if not callable(reader):
        raise FluidTypeError(
            "batch_by_length takes a reader, a function that returns an iterable of samples, not"
            f" {type(reader).__name__}"
        )
    for what, value in (("batch_size", batch_size), ("window", window)):
        if type(value) is not int or value <= 0:
            raise FluidValueError(
                f"batch_by_length's {what} is a positive whole number, not {value!r}"
            )
    if seed is not None and type(seed) is not int:
        raise FluidTypeError(
            f"batch_by_length's seed is a whole number or None, not {type(seed).__name__}"
        )
    measure, counter = length or _entries, itertools.count()

    def batches() -> Iterator[list[Any]]:
        now = reading_pass.get()
        if seed is None and now is not None and now.skip:
            raise FluidValueError(
                "batches in random order cannot go on in the middle of a pass without a seed, since"
                " they would come in another one; give batch_by_length a seed"
            )
        number = next(counter) if now is None else now.epoch
        draw = random.shuffle if seed is None else random.Random(f"{seed} {number}").shuffle
        samples = iter(reader())
        while block := list(itertools.islice(samples, window * batch_size)):
            block.sort(key=measure)
            found = [block[i : i + batch_size] for i in range(0, len(block), batch_size)]
            if drop_last and len(found[-1]) < batch_size:
                found.pop()
            draw(found)
            yield from found

    return batches


def _entries(sample: Any) -> int:
    """How many entries the first field has. Raises FluidTypeError for a number."""
    first = sample[0] if isinstance(sample, tuple | list) and sample else sample
    try:
        return len(first)
    except TypeError:
        raise FluidTypeError(
            "batch_by_length measures the first field of a sample, which is a single number here;"
            " say by length= what is long"
        ) from None


__all__ = ["batch_by_length"]
