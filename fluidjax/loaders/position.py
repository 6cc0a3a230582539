"""The position of a reader of batches, which a checkpoint saves and a restarted run resumes
from.
"""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ..errors import FluidTypeError, FluidValueError
from .decorators import Reader, ReaderPass, reading_pass


@dataclass(frozen=True)
class Position:
    """`batches` batches of pass number `epoch` (from 0) have been read."""

    epoch: int = 0
    batches: int = 0

    def __post_init__(self) -> None:
        for what, value in (("epoch", self.epoch), ("batches", self.batches)):
            if type(value) is not int or value < 0:
                raise FluidValueError(
                    f"a reader's position has a number of {what} from 0, not {value!r}"
                )


class Positioned:
    """A reader that counts its passes, and the batches of the current pass.

    A pass begins with an iteration and ends with its last batch, or when the next iteration begins.
    A batch counts as soon as the consumer gets it.
    """

    def __init__(self) -> None:
        self._position = Position()
        self._skip = 0  # batches that the next pass skips
        self._fresh = True  # no pass of this number has begun

    @property
    def position(self) -> Position:
        """The pass and the number of its batches so far."""
        return self._position

    @property
    def epoch(self) -> int:
        """The number of the current or next pass, from 0."""
        return self._position.epoch

    def resume(self, position: Position) -> None:
        """Make the next iteration begin at this position: the earlier batches of that pass are read
        and skipped.

        Raises FluidTypeError for anything but a Position. A source that does not repeat itself in a
        pass of the same number (a shuffle without a seed) cannot resume: fluidjax's own shuffle
        then raises FluidValueError.
        """
        if not isinstance(position, Position):
            raise FluidTypeError(f"resume takes a Position, not {type(position).__name__}")
        self._position, self._skip, self._fresh = position, position.batches, True

    def _begin(self) -> ReaderPass:
        """The pass that begins now."""
        skip, self._skip = self._skip, 0
        if not self._fresh:  # the last pass was left early
            self._position = Position(self._position.epoch + 1)
        self._fresh = False
        return ReaderPass(self._position.epoch, skip)

    def _handed_out(self, now: ReaderPass) -> None:
        if now.epoch == self._position.epoch:
            self._position = Position(now.epoch, self._position.batches + 1)

    def _ended(self, now: ReaderPass) -> None:
        if now.epoch == self._position.epoch:
            self._position, self._fresh = Position(now.epoch + 1), True


class ResumableReader(Positioned):
    """A reader that knows its position: see :func:`resumable`."""

    def __init__(self, reader: Reader) -> None:
        super().__init__()
        self._reader = reader

    def __call__(self) -> Iterator[Any]:
        if reading_pass.get() is not None:  # the reader around this one counts its passes itself
            yield from self._reader()
            return
        now = self._begin()
        # nothing else that runs between two batches is part of the pass
        context = contextvars.copy_context()
        context.run(reading_pass.set, now)
        items = context.run(lambda: islice(self._reader(), now.skip, None))
        end = object()
        while (item := context.run(next, items, end)) is not end:
            self._handed_out(now)
            yield item
        self._ended(now)


def resumable(reader: Reader) -> ResumableReader:
    """A reader of the same items that knows its position, to be saved in a checkpoint.

    ``epoch`` and ``position`` are its current position, and ``resume(position)`` makes the next
    pass begin there. Wrap the outermost reader, whose items are batches:
    ``resumable(paddle.batch(fluid.io.shuffle(train, 500, seed=1), 32))``. A DataLoader needs no
    wrapping. Raises FluidTypeError for anything but a reader.
    """
    if not callable(reader):
        raise FluidTypeError(
            "resumable takes a reader, a function that returns an iterable of batches, not"
            f" {type(reader).__name__}"
        )
    return ResumableReader(reader)


__all__ = ["Position", "Positioned", "ResumableReader", "resumable"]
