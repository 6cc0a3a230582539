"""Batches of samples of similar length, so that there is little padding and few sizes are
compiled.
"""

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

    length: gives the length of a sample; default the number of entries of its first field. Samples
    of equal length keep their order. The batches of a window come in random order, so that training
    does not see short ones first. The order in pass n depends only on `seed` and n (the pass of the
    DataLoader or resumable reader around it, else counted here), and without a seed on Python's
    ``random``. drop_last: leave out a shorter last batch of the pass. Raises FluidTypeError,
    FluidValueError for arguments that do not fit, and for resuming in the middle of a pass without
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
                "batches in random order cannot resume in the middle of a pass without a seed, "
                "because their order would change; give batch_by_length a seed"
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
    """The number of entries of the first field. Raises FluidTypeError for a number."""
    first = sample[0] if isinstance(sample, tuple | list) and sample else sample
    try:
        return len(first)
    except TypeError:
        raise FluidTypeError(
            "batch_by_length measures the first field of a sample, which is a single number here; "
            "pass length=, a function that gives the length"
        ) from None


__all__ = ["batch_by_length"]
