"""The seed that the trainers of a job agreed on, for programs without one of their own."""

from __future__ import annotations

_seed: int | None = None


def job_seed() -> int | None:
    """Trainer 0's seed, once the trainers have run a program together."""
    return _seed


def agree_on(seed: int) -> None:
    """Take trainer 0's seed."""
    global _seed
    _seed = seed
