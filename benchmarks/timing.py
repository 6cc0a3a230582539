"""Fair comparison on a noisy machine: the two sides take turns in one process, and medians are
compared.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Paired:
    """Seconds per call of both sides (medians), and the median of the turn-by-turn ratios ours /
    theirs.
    """

    ours: float
    theirs: float
    ratio: float


def seconds(run: Callable[[], object], finish: Callable[[object], object], calls: int) -> float:
    """Seconds per call over `calls` calls; `finish` waits for the last one's result."""
    last: object = None
    start = time.perf_counter()
    for _ in range(calls):
        last = run()
    finish(last)
    return (time.perf_counter() - start) / calls


def interleaved(
    ours: Callable[[], object], theirs: Callable[[], object], finish: Callable[[object], object], turns: int = 15, budget: float = 6.0,
    most: int = 1_000_000,
) -> Paired:  # fmt: skip
    """Time both sides in turns of at most `most` calls, alternating who goes first, for about
    `budget` seconds.
    """
    for run in (ours, theirs):
        seconds(run, finish, 3)
    once = max(seconds(ours, finish, 1), seconds(theirs, finish, 1), 1e-6)
    calls = min(max(1, int(budget / (2 * turns * once))), most)
    a, b = [], []
    gc.disable()
    try:
        for turn in range(turns):
            order = [(ours, a), (theirs, b)]
            for run, times in order if turn % 2 == 0 else order[::-1]:
                times.append(seconds(run, finish, calls))
    finally:
        gc.enable()
    return Paired(
        statistics.median(a),
        statistics.median(b),
        statistics.median(x / y for x, y in zip(a, b, strict=True)),
    )
