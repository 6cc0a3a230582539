"""A step in two tiers: its first executable is compiled quickly, the optimised one in the background while steps go on.

Which one a step runs on is a function of the program, of the sizes that are fed and of how many steps the program has taken,
never of time: so two runs are equal bit for bit, though the two executables may differ in the last bits. A step that is due on
the optimised executable waits for it. docs/tiers.md is the user's view.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from typing import Any

import numpy as np

from ..base.flags import flag
from ..base.progress import waiting
from ..ir.recomputed import segment
from ..lower.step import Step
from .background import in_background
from .building import argument_types, building, feed_types, tracing
from .compiled import Compiled
from .effort import (
    OPTIMISED,
    OPTIMISED_IN_LIBRARY,
    QUICK,
    QUICK_IN_LIBRARY,
    QUICK_WITH_FAST_LOOPS,
    QUICK_WITH_FAST_LOOPS_IN_LIBRARY,
    Effort,
)
from .kind import Kind
from .placement import Mesh, Placement, per_rank
from .work import (
    LEAST_BATCH,
    batch_of,
    compiling_seconds,
    dear_seconds,
    ops_within,
    seconds,
    slow_loops_seconds,
    suits_library,
)

_logger = logging.getLogger(__name__)

MANY_OPS = 40  # a program with fewer is compiled as it should be soon enough,
LONG = 0.5  # unless some of them are known to take the compiler so many seconds together
LOOP_SECONDS = 0.007  # and what fast loops add to the quick executable
MOST_OPS = 600  # of a program that waits so much longer for its first step
LONG_LOOPS = 0.05  # seconds of a quick step's slow loops: a library takes those of more, if the step has LEAST_BATCH samples or more
LONGEST_LOOPS = 0.3  # where they take so long, the rest of a quick step's are worth vectors, and an optimised one's may be a library's too
FEWEST, MOST = 4, 500  # quick steps
BEGIN = 3  # steps after which the optimised executables are begun: who takes fewer never pays for them
SHARED_BATCH = 32  # for programs of several processes, whose feeds differ


def in_tiers(compiled: Compiled, within_budget: bool = False) -> Compiled:
    """The step as it runs: by itself, or, where that pays, its quick executable with what follows.

    within_budget: it was fitted into so many bytes.
    """
    asked = int(flag("FLAGS_quick_steps"))
    if not _may_have_tiers(compiled, asked):
        return compiled
    return Tiers(compiled.again(quick_effort(compiled.step)), asked, within_budget).quick


def _may_have_tiers(compiled: Compiled, asked: int) -> bool:
    if compiled.where.device.platform != "cpu" or compiled.initialises or compiled.may_raise:
        return False
    return asked > 0 or len(ops_within(compiled.step)) >= MANY_OPS or dear_seconds(compiled.step) >= LONG


def long_loops(compiled: Compiled, batch: int) -> float | None:
    """Seconds that a step of so many samples takes longer with slow loops; None where no library may take them: that needs more memory."""
    tight = compiled.memory_optimized or any(segment(op) is not None for op in compiled.step.ops)
    return None if tight or batch < LEAST_BATCH else slow_loops_seconds(compiled.step, batch)


def finished(compiled: Compiled, loops: float | None, batch: int) -> Effort:
    """How the optimised executable is compiled."""
    return OPTIMISED_IN_LIBRARY if loops is not None and loops >= LONGEST_LOOPS and suits_library(compiled.step, batch) else OPTIMISED


def as_it_runs(compiled: Compiled, feed: Any) -> Effort:
    """How a step that is within no budget is compiled in the end, if it is first fed so."""
    tiers = _may_have_tiers(compiled, int(flag("FLAGS_quick_steps")))
    batch = batch_of(feed)
    return finished(compiled, long_loops(compiled, batch), batch) if tiers else OPTIMISED


def quick_effort(step: Step) -> Effort:
    """How the quick executable is compiled: with fast loops where even the fewest quick steps gain more by them than they cost."""
    gained = FEWEST * slow_loops_seconds(step, LEAST_BATCH)
    return QUICK_WITH_FAST_LOOPS if len(step.ops) <= MOST_OPS and gained > LOOP_SECONDS * len(step.ops) else QUICK


class Tiers:
    """The executables of a step: `quick` for the first steps of the program, then the optimised ones.

    How many steps are quick depends on the program and the sizes of the feed: about as many as take as long as XLA does for
    the optimised executable.
    """

    def __init__(self, quick: Compiled, asked: int = -1, within_budget: bool = False) -> None:
        """asked: how many steps are quick; -1: as many as pay. within_budget: the step was fitted into so many bytes."""
        self.quick = quick
        self.within_budget = within_budget
        quick.tiers = self
        self._asked = asked
        self._finished = OPTIMISED  # how the optimised executable is compiled
        self.optimised: Compiled | None = None
        self._settled = self._chosen = False
        self._calls: dict[Any, tuple[Kind, Any]] = {}  # what was run, by the signature of the feed: its kind and types
        self._under_way: dict[Any, Future[None]] = {}
        self._counts: dict[int, int] = {}

    def swap(self, feed: Any) -> int:
        """How many steps are quick where such sizes are fed."""
        if self._asked >= 0:
            return self._asked
        batch = self._batch(feed)
        if batch not in self._counts:
            pays = compiling_seconds(self.quick.step) / seconds(self.quick.step, batch)
            self._counts[batch] = round(min(max(pays, FEWEST), MOST))
        return self._counts[batch]

    def _batch(self, feed: Any) -> int:
        return SHARED_BATCH if self.quick.shared else batch_of(feed)

    def _choose_loops(self, feed: Any) -> None:
        """Before the first step: whose loops are a library's, which is told from what is fed to this one."""
        self._chosen, quick = True, self.quick
        batch = self._batch(feed)
        loops = None if self.within_budget else long_loops(quick, batch)
        if quick.effort is QUICK and loops is not None and loops >= LONG_LOOPS:
            quick.effort = QUICK_IN_LIBRARY if loops < LONGEST_LOOPS else QUICK_WITH_FAST_LOOPS_IN_LIBRARY
        self._finished = finished(quick, loops, batch)

    @property
    def current(self) -> Compiled:
        """The one that ran last."""
        return self.optimised if self._settled and self.optimised is not None else self.quick

    def at(self, taken: int, feed: Any, count: int = 1) -> Compiled:
        """What the next `count` steps run on, after `taken` ones. Waits for the compiler where it must."""
        if not self._chosen:
            self._choose_loops(feed)
        if taken + count <= self.swap(feed):
            return self.quick
        if not self._settled:
            self._settle(taken)
        return self.optimised or self.quick

    def took(self, kind: Kind, feed: Any, taken: int, device: Any) -> None:
        """Told after a step on the quick executable, when the program has taken `taken`: begin the optimised one in time.

        device: the default device while the step was traced, or None.
        """
        signature = kind, *self.quick.signature(kind, feed)
        if signature not in self._calls:
            self._calls[signature] = kind, feed_types(feed)
        begin = BEGIN if self._asked < 0 else min(BEGIN, self._asked)
        if taken < begin or self._settled or len(self._calls) == len(self._under_way):
            return
        if self.optimised is None or self.optimised.step is not self.quick.step:  # that takes other feeds as constants now
            self.optimised = self.quick.again(self._finished)
            self._under_way.clear()
        for each in self._calls.keys() - self._under_way.keys():
            self._under_way[each] = in_background(partial(_building, self.optimised, *self._calls[each], device))

    def _settle(self, taken: int) -> None:
        """Wait for what is under way. Where some of it failed, in any process of the job, the quick executables go on."""
        with waiting(f"waiting for the optimised step of {len(self.quick.step.ops):,} ops"):
            failed = [error for future in list(self._under_way.values()) if (error := future.exception()) is not None]
        if not _everywhere(self.quick.where, not failed):
            reason = f"{type(failed[0]).__name__}: {_first_line(failed[0])}" if failed else "in another process"
            self.optimised = self.quick
            warnings.warn(
                f"the optimised executable of a step could not be compiled ({reason}); the program goes on with the one that was "
                "compiled first, which is slower",
                RuntimeWarning,
                stacklevel=5,
            )
        self.optimised = self.optimised or self.quick.again(self._finished)
        self._settled = True
        if self._under_way and not failed:
            _logger.info("after %d steps, the step that fetches %s runs optimised", taken, ", ".join(self.quick.fetches) or "nothing")


def _building(compiled: Compiled, kind: Kind, feed: Any, device: Any) -> Iterator[None]:
    with tracing(device):
        yield from building(compiled, kind, argument_types(compiled, feed), background=True)


def _everywhere(where: Placement, fine: bool) -> bool:
    """Whether all is fine in every process that holds some of the devices."""
    if not isinstance(where, Mesh) or not where.shared:
        return fine
    return bool(where.everywhere(where.put(per_rank(np.full((where.count,), fine)), own=True)).all())


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0]
