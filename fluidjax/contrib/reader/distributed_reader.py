"""A reader's batches, distributed over the trainers of a job."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...errors import FluidTypeError, FluidValueError

Reader = Callable[[], Iterable[Any]]


def _number(variable: str, default: int) -> int:
    text = os.environ.get(variable, str(default))
    if not text.strip().isdecimal():
        raise FluidValueError(f"the environment's {variable} is a whole number, not {text!r}")
    return int(text)


def distributed_batch_reader(batch_reader: Reader) -> Reader:
    """A reader of every PADDLE_TRAINERS_NUM-th batch, beginning with that of PADDLE_TRAINER_ID.

    Last batches that are too few for all trainers are left out, so that all trainers take as many
    steps. With one trainer, the default, it gives all batches. Raises FluidTypeError unless given a
    reader, FluidValueError for an id that is not below the number.
    """
    if not callable(batch_reader):
        raise FluidTypeError(
            f"distributed_batch_reader takes a reader of batches, not {type(batch_reader).__name__}"
        )
    trainers, own = _number("PADDLE_TRAINERS_NUM", 1), _number("PADDLE_TRAINER_ID", 0)
    if own >= trainers:
        raise FluidValueError(
            f"PADDLE_TRAINER_ID is {own}, of PADDLE_TRAINERS_NUM {trainers} trainers, which count"
            " from 0"
        )

    def own_batches() -> Iterator[Any]:
        if trainers == 1:
            yield from batch_reader()
            return
        print(f"start data reader (trainers_num: {trainers}, trainer_id: {own})")
        batches = iter(batch_reader())
        while len(group := list(itertools.islice(batches, trainers))) == trainers:
            yield group[own]

    return own_batches


__all__ = ["distributed_batch_reader"]
