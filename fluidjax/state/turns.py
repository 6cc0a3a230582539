"""Turns: threads that use the same variables of a scope run one after another where they must.

Programs that write the same variables take turns, from before they read them until they have
changed them (`steps`). A donating step and a reader of the variables exclude each other (`arrays`)
while arrays are replaced. So a reader sees the value between two steps, and never an array that was
donated in the meantime. A program that writes nothing takes no turn.

A variable that no program has written yet has the turn NOBODY, of which only `arrays` is used.

All locks are taken in one order, so there is no deadlock: first the `steps` of all turns, then the
`arrays`, each by the turn's number, NOBODY last.
"""

from __future__ import annotations

import itertools
import math
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

from ..devices import forked
from ..ops import py_functions

T = TypeVar("T")
PATIENCE = 1.0  # seconds that a run waits for threads that came before it
_numbers = itertools.count()


_turns: WeakSet[Turn] = WeakSet()


class Turn:
    """The locks of a group of variables that programs write together."""

    __slots__ = ("__weakref__", "arrays", "left", "number", "steps", "waiting")

    def __init__(self, number: float | None = None) -> None:
        self.number: float = next(_numbers) if number is None else number
        self.steps = threading.RLock()
        self.arrays = threading.RLock()
        # a lock for each waiting thread, held until that thread has begun
        self.waiting: set[Any] = set()
        # whether a thread held it when this process was forked, which left that thread out
        self.left = False
        _turns.add(self)

    def let_pass(self) -> None:
        """Wait until the threads that wait already have begun. Otherwise a loop of short steps
        would let no other thread in.
        """
        for begun in tuple(self.waiting):
            if begun.acquire(timeout=PATIENCE):
                begun.release()


NOBODY = Turn(math.inf)


def _in_child() -> None:
    for turn in _turns:
        turn.waiting.clear()
        for lock in (turn.steps, turn.arrays):
            if lock.acquire(blocking=False):
                lock.release()
            else:
                turn.left = True


os.register_at_fork(after_in_child=_in_child)


class HasTurn(Protocol):
    turn: Turn


def ordered(turns: Iterable[Turn]) -> list[Turn]:
    """The turns without duplicates, in the order in which their locks are taken."""
    return sorted(set(turns), key=lambda turn: turn.number)


def held(locks: Sequence[Any], work: Callable[[], T]) -> T:
    """Call `work` while these locks are held, and return its result.

    `with` on a C lock takes it and registers its release in one step, which Ctrl-C cannot split.
    """
    if not locks:
        return work()
    with locks[0]:
        return held(locks[1:], work)


def in_line(turns: Sequence[Turn], locks: Sequence[Any], work: Callable[[], T]) -> T:
    """`held`, in order of arrival: after the threads that have the locks now, before any that ask
    later.
    """
    begun = threading.Lock()

    def begin() -> T:
        leave()
        return work()

    def leave() -> None:
        for turn in turns:
            turn.waiting.discard(begun)
        if begun.locked():
            begun.release()

    forked.refuse_waiting(not any(turn.left for turn in turns))
    try:
        begun.acquire()
        for turn in turns:
            turn.waiting.add(begun)
        return held(locks, begin)
    finally:
        leave()


def stepping(turns: Sequence[Turn], work: Callable[[], T]) -> T:
    """Call `work`, which changes the variables of these turns, and return its result."""
    return in_line(turns, [t.steps for t in turns], work) if turns else work()


def looking(vars: Sequence[HasTurn], work: Callable[[], T], changing: bool = False) -> T:
    """Call `work` while no step changes these variables, and return its result. changing: `work`
    changes them itself.

    A Python function that a step calls changes them within the step: it runs in another thread, for
    which the step waits.
    """
    while True:
        turns = ordered(v.turn for v in vars)
        steps = (
            [t.steps for t in turns if t is not NOBODY]
            if changing and not py_functions.is_calling()
            else []
        )

        def same(turns: Sequence[Turn] = turns) -> tuple[T] | None:
            return (work(),) if all(v.turn in turns for v in vars) else None

        found = in_line(turns, [*steps, *(t.arrays for t in turns)], same)
        if found is not None:
            return found[0]


def claim(vars: Sequence[HasTurn], claimed: Callable[[Sequence[Any]], None]) -> list[Turn]:
    """The turns of variables that a program writes. Variables without a turn get one, and are
    passed to `claimed`.
    """
    with NOBODY.arrays:
        turns = {v.turn for v in vars} - {NOBODY}
        new = [v for v in vars if v.turn is NOBODY]
        if new:
            turn = min(turns, key=lambda t: t.number) if turns else Turn()
            turns.add(turn)
            claimed(new)
            for var in new:
                var.turn = turn
    return ordered(turns)
