"""Messages of a job as a sequence diagram."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...look.picture import Picture
from ...look.sequence import Said, sequence
from .messages import BARRIERS, GET, LOOKUP, OPTIMIZE, Message


def conversation(
    title: str, trainers: int, endpoints: Sequence[str], messages: Iterable[Message]
) -> Picture:
    """A diagram of trainers and pservers side by side; messages to a trainer are broken lines."""
    return sequence(
        title,
        [*(f"trainer {i}" for i in range(trainers)), *endpoints],
        [_said(m) for m in messages],
    )


def _said(message: Message) -> Said:
    trainer = f"trainer {message.trainer}"
    if message.kind == OPTIMIZE:
        return Said(message.endpoint, None, f"optimizes {message.name}".rstrip())
    if message.kind in BARRIERS:
        return Said(trainer, None, f"waits at {message.kind}")
    if message.kind in (GET, LOOKUP):
        return Said(
            message.endpoint,
            trainer,
            message.name + (" (rows)" if message.kind == LOOKUP else ""),
            reply=True,
        )
    return Said(trainer, message.endpoint, message.name)
