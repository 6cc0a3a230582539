"""The order and delay of messages of an asynchronous job: sampled from a seed, so that runs are
reproducible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import FluidValueError


@dataclass
class Arrivals:
    """The network of a job, simulated by random numbers from `seed`.

    ordered: the trainers take turns, and everything arrives at once (a synchronous job). Otherwise
    the next trainer is chosen at random among those that can continue, and the messages of one step
    of a trainer arrive a random number of rounds late, from 0 to `staleness`.
    """

    seed: int
    staleness: int = 0
    ordered: bool = True
    round: int = 0
    _delays: dict[int, int] = field(default_factory=dict)
    _flying: list[tuple[int, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not isinstance(self.staleness, int) or self.staleness < 0:
            raise FluidValueError(
                f"staleness is a number of rounds, 0 or more, not {self.staleness!r}"
            )
        if self.ordered and self.staleness:
            raise FluidValueError(
                "a synchronous job has no staleness: every round waits for all gradients; transpile"
                " with sync_mode=False"
            )
        self._draw = np.random.default_rng(self.seed)

    def next_round(self, trainers: Sequence[int]) -> list[Any]:
        """Begin a round; returns the messages that arrive before it, in order, grouped by sender
        and step.
        """
        self.round += 1
        self._delays = (
            {t: int(self._draw.integers(0, self.staleness + 1)) for t in trainers}
            if self.staleness
            else {}
        )
        due = [m for when, m in self._flying if when <= self.round]
        self._flying = [(when, m) for when, m in self._flying if when > self.round]
        return self._shuffled(due)

    def pick(self, ready: Sequence[int]) -> int:
        """The next trainer to continue."""
        return (
            ready[0]
            if self.ordered or len(ready) == 1
            else ready[int(self._draw.integers(0, len(ready)))]
        )

    def held(self, message: Any) -> bool:
        """Delay a message if its sender's step arrives late. False: it arrives now."""
        late = self._delays.get(message.trainer, 0)
        if late:
            self._flying.append((self.round + late, message))
        return bool(late)

    def rest(self) -> list[Any]:
        """All messages in transit."""
        left, self._flying = [m for _, m in self._flying], []
        return self._shuffled(left)

    def _shuffled(self, messages: list[Any]) -> list[Any]:
        groups: dict[int, list[Any]] = {}
        for message in messages:
            groups.setdefault(message.trainer, []).append(message)
        senders = sorted(groups)
        return (
            [m for i in self._draw.permutation(len(senders)) for m in groups[senders[i]]]
            if senders
            else []
        )
