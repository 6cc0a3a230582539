"""Fits a training step into a budget of bytes: chooses the values to recompute, and the order in
which XLA works.

ways.py estimates the choices. The choice that is expected to be within the budget at the least
added time is compiled, and the compiler's own figure decides. The figure also corrects the next
expectation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import jax

from ..base.units import bytes_of
from ..devices.platforms import tuning
from ..errors import FluidValueError
from ..graph.fetches import found_names
from ..graph.program import Program
from ..graph.variable import Variable
from ..ir import edit
from ..ir.desc import ProgramDesc
from ..lower.sizes import refuse_fed_sizes
from ..lower.step import Step
from ..passes import base
from ..passes.base import Note
from . import compiler
from .sizes import Arguments, Lengths, Shapes, arguments, nbytes
from .ways import Way, Ways

MOST_TRIED = 3  # programs to compile before the best one that fits is taken
WORTHWHILE = 0.1  # share of the time of recomputing all; a smaller gain is not worth a compilation
# times the estimate: with more temporaries a scheduler has not used the recomputation, and another
# one is tried
STRAYS = 1.6
MOST_DOUBTED = 3
HOST_MEMORY = "pinned_host"  # where jax.memory.Space.Host is
# bytes of temporaries for each estimated byte, if values are recomputed
USUALLY = {"default": 1.4, "memory-optimised": 1.25}


@dataclass(frozen=True)
class Tried:
    """The compiler's figures for a way under one of its schedulers."""

    way: Way
    scheduler: str
    figures: compiler.Figures

    def __str__(self) -> str:
        total, temporaries = self.figures.total / 1e6, self.figures.temporaries / 1e6
        return (
            f"{self.way}, scheduler {self.scheduler}: {total:,.3f} MB, temporaries"
            f" {temporaries:,.3f}"
        )


@dataclass(frozen=True)
class BudgetReport:
    """budget: in bytes. tried: in order. chosen: the member of `tried` that the program was
    rewritten to, which is within the budget. no_host: why no value can wait in the host's memory as
    a last step; None if values can.
    """

    budget: int
    tried: tuple[Tried, ...]
    chosen: Tried
    notes: tuple[Note, ...] = ()
    no_host: str | None = None

    def __str__(self) -> str:
        """The ways tried; then the values that are recomputed, and those that cannot be, with the
        reason.
        """
        head = f"budget {self.budget / 1e6:,.3f} MB; MB are 1,000,000 bytes"
        lines = (f"  {t}{' (chosen)' if t is self.chosen else ''}" for t in self.tried)
        host = [] if self.no_host is None else [f"  memory of the host is not used: {self.no_host}"]
        return "\n".join([head, *lines, *host, *(f"  {n}" for n in self.notes)])


@dataclass(frozen=True)
class Target:
    """A step to be compiled. types: its state as one device has it, and whole batches. devices: the
    number of devices that share the batches. lower: the step of a program under a scheduler, traced
    for the types. schedulers: the schedulers to compile with, in groups; a later group is tried if
    no way is within the budget under an earlier one. keep: names of values that must be kept.
    no_host: why values cannot wait in the host's memory; None if they can.
    """

    desc: ProgramDesc
    fetches: tuple[str, ...]
    types: Arguments
    lower: Callable[[ProgramDesc, str], jax.stages.Lowered]
    schedulers: tuple[tuple[str, ...], ...] = (("default",),)
    keep: Sequence[str] = ()
    devices: int = 1
    no_host: str | None = None


def no_host(device: Any) -> str | None:
    """Why values of a device's step cannot wait in its host's memory, judged by the memories that
    the device lists; None if they can.
    """
    if tuning(device.platform).hosted:
        return "on the CPU it is the device's own"
    kinds = {m.kind for m in device.addressable_memories()} - {device.default_memory().kind}
    return (
        None
        if HOST_MEMORY in kinds
        else f"{device} lists none ({', '.join(sorted(kinds)) or 'its own memory alone'})"
    )


@dataclass(frozen=True)
class Sizing:
    """The feeds, as in memory_report: the size for an unknown first dimension, whole shapes, and
    lengths of sequences.
    """

    batch_size: int | None = None
    feed_shapes: Shapes | None = None
    lengths: Lengths | None = None

    def arguments(self, step: Step) -> Arguments:
        """The types of a training step's arguments. Raises the errors that `fit` documents for
        them.
        """
        refuse_no_training(step)
        return arguments(step, self.batch_size, self.feed_shapes, self.lengths)


def refuse_no_training(step: Step) -> None:
    """Raises FluidValueError for a step without gradients, UnsupportedError for feeds that decide
    sizes.
    """
    if not any(edit.role(op) & edit.BACKWARD for op in step.ops):
        raise FluidValueError(
            "a budget is for training steps: this program has no gradient ops; minimize first"
        )
    refuse_fed_sizes(step.sizes, "a memory budget")


def fit(
    program: Program,
    budget: Any,
    sizing: Sizing,
    fetch_list: Sequence[Variable | str] | Variable | str | None = None,
    keep: Sequence[str] = (),
) -> BudgetReport:
    """Find the values that a program has to recompute so that a run needs at most `budget` bytes;
    the program does not change.

    fetch_list: as in memory_report. keep: names of values that must be kept. A run gives the same
    values as before, except for rounding if XLA reorders sums.

    Raises FluidValueError for an invalid budget, and for one below all estimates, with the smallest
    estimate; and the errors of memory_report for a program or sizes that it cannot estimate.
    """
    wanted = bytes_of(budget)
    fetches = found_names(program, fetch_list)
    types = sizing.arguments(Step(program.desc, fetches))
    device = jax.local_devices()[0]

    def lower(desc: ProgramDesc, scheduler: str) -> jax.stages.Lowered:
        return compiler.lower(desc, fetches, types, device, scheduler)

    return search(
        Target(
            program.desc,
            fetches,
            types,
            lower,
            (compiler.schedulers(device),),
            keep,
            no_host=no_host(device),
        ),
        wanted,
    )


def search(target: Target, wanted: int) -> BudgetReport:
    """The fastest way found for a step that needs at most `budget` bytes on each device. Raises
    FluidValueError if there is none.
    """
    found = _Search(target, wanted).run()
    chosen, keep, desc = found[-1], {*target.keep, *target.fetches}, target.desc
    notes: tuple[Note, ...] = ()
    for made in chosen.way.made:
        result = base.run(made, desc, {}, keep)
        desc, notes = result.desc, (*notes, *result.notes)
    return BudgetReport(wanted, tuple(found[:-1]), chosen, notes, target.no_host)


class _Search:
    def __init__(self, target: Target, wanted: int) -> None:
        self.target, self.wanted = target, wanted
        feeds = jax.tree.leaves(dict(target.types.feed))
        rows = max((t.shape[0] for t in feeds if t.shape), default=1) // target.devices
        all_ways = Ways(target.desc, frozenset({*target.keep, *target.fetches}), max(rows, 1))
        self.all, self.ways, self.why_none = all_ways, all_ways.found, all_ways.why_none
        self.fixed = (
            sum(nbytes(t) for t in target.types.state.values())
            + sum(map(nbytes, feeds)) // target.devices
        )
        self.tried: list[Tried] = []
        self.compiled: set[int] = set()
        self.names = target.schedulers[0]

    def run(self) -> list[Tried]:
        """The ways tried, and the chosen one."""
        for names in self.target.schedulers:
            self.names = names
            found = self._found()
            if found is not None:
                return [*self.tried, found]
        if self.target.no_host is None and (found := self._offloaded()) is not None:
            return [*self.tried, found]
        self._refuse()

    def _offloaded(self) -> Tried | None:
        """The last resort: as few values as possible wait on the host."""
        self.ways = self.all.offloading()
        for at in range(len(self.ways)):
            if (fitting := self._compiled(at, every=True)) is not None:
                return fitting
        return None

    def _found(self) -> Tried | None:
        """The fastest way found under some of these schedulers."""
        self.compiled = set()
        if (best := self._first()) is None:
            return None
        while (at := self._faster_way(best[0])) is not None:
            if (fitting := self._compiled(at)) is not None:
                best = at, fitting
        return best[1]

    def _first(self) -> tuple[int, Tried] | None:
        """A way within the budget, and its index: the fastest that is expected to fit; as a last
        resort the smallest by estimate, although it is not expected to fit.
        """
        at = self._next(0)
        while at is not None:
            if (fitting := self._compiled(at)) is not None:
                return at, fitting
            at = self._next(at + 1)
        for at in sorted(range(len(self.ways)), key=lambda i: self.ways[i].estimate)[:MOST_DOUBTED]:
            if not self._seen(at) and (fitting := self._compiled(at, every=True)) is not None:
                return at, fitting
        return None

    @property
    def _tried_ways(self) -> list[Tried]:
        """The ways tried under these schedulers."""
        return [t for t in self.tried if t.scheduler in self.names]

    def _next(self, start: int) -> int | None:
        """The fastest way from this index on that is expected to be within the budget."""
        return next(
            (
                i
                for i in range(start, len(self.ways))
                if not self._seen(i) and self._expected(i) <= self.wanted
            ),
            None,
        )

    def _faster_way(self, best: int) -> int | None:
        """The fastest way that is expected to be within the budget and saves enough time to be
        worth a compilation.
        """
        if len(self.compiled) >= MOST_TRIED:
            return None
        enough = self.ways[best].seconds - WORTHWHILE * self.ways[-1].seconds
        found = (i for i in range(best) if not self._seen(i) and self.ways[i].seconds <= enough)
        return next((i for i in found if self._expected(i) <= self.wanted), None)

    def _seen(self, at: int) -> bool:
        return any(t.way is self.ways[at] for t in self._tried_ways)

    def _expected(self, at: int) -> float:
        """The expected bytes, if the ratio of temporaries to estimate is that of the nearest
        compiled way, under the better scheduler.
        """
        estimate = self.ways[at].estimate
        if not self._tried_ways:
            return self.fixed + estimate * (min(USUALLY[n] for n in self.names) if at else 1.0)
        near = min(
            self._tried_ways, key=lambda t: (abs(t.way.estimate - estimate), t.figures.total)
        )
        figures = near.figures
        return (
            figures.total
            - figures.temporaries
            + figures.temporaries * estimate / max(near.way.estimate, 1)
        )

    def _compiled(self, at: int, every: bool = False) -> Tried | None:
        """The compiled way under the first scheduler that keeps it within the budget."""
        way = self.ways[at]
        self.compiled.add(at)
        for name in self._schedulers(at):
            figures = compiler.figures(self.target.lower(way.desc, name), [name], quick=True)[name]
            self.tried.append(Tried(way, name, figures))
            if figures.total <= self.wanted:
                return self.tried[-1]
            if at and not every and figures.temporaries <= STRAYS * way.estimate:
                return None
        return None

    def _schedulers(self, at: int) -> tuple[str, ...]:
        """The default scheduler first for the unchanged program; for other programs first the one
        that needed less so far, or usually does.
        """
        if not at and not self.ways[at].again:
            return self.names
        shares = {
            t.scheduler: t.figures.temporaries / max(t.way.estimate, 1)
            for t in self.tried
            if t.way.again
        }
        return tuple(sorted(self.names, key=lambda n: shares.get(n, USUALLY[n])))

    def _refuse(self) -> NoReturn:
        least = min(self.tried, key=lambda t: t.figures.total)
        nothing = f"; nothing is computed again, since {self.why_none}" if self.why_none else ""
        if self.target.no_host is not None:
            nothing += f"; memory of the host is not used: {self.target.no_host}"
        raise FluidValueError(
            f"the step cannot be made to need {self.wanted:,} bytes: the least that was found is"
            f" {least.figures.total:,} ({least}){nothing}; {self._remedy(least.way)}"
        )

    def _remedy(self, way: Way) -> str:
        if self.fixed >= self.wanted:
            return f"its state and feeds alone are {self.fixed:,} bytes, which no budget makes less"
        _, op = self.all.peak(way.desc)
        where = "" if op is None else f", most of it for op '{op.type}'{f' ({op.loc})' if op.loc else ''}"  # fmt: skip
        return f"allow that much{where}, or feed fewer samples at a time"
