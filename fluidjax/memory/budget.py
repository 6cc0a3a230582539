"""A training step that fits into so many bytes: which values it computes again, and in which order XLA works.

What is tried, in the order of the work that it adds, is compiled until the compiler's own figure is within the budget.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import jax

from ..errors import FluidTypeError, FluidValueError
from ..graph.fetches import found_names
from ..graph.program import Program
from ..graph.variable import Variable
from ..ir import edit
from ..ir.desc import ProgramDesc, VarDesc
from ..ir.recomputed import segment
from ..lower.sizes import refuse_fed_sizes
from ..lower.step import Step
from ..passes import base
from ..passes.lifetimes import is_fed, live_bytes, size
from ..passes.recompute import Forward, Recompute
from ..runtime.work import flops
from . import compiler
from .sizes import Shapes, arguments

UNITS = {"": 1, "B": 1, **{f"{u}B": 1000**i for i, u in enumerate("KMGT", 1)}, **{f"{u}IB": 1024**i for i, u in enumerate("KMGT", 1)}}
MOST_SEGMENTS = 24
SLACK = 1.1  # what is expected to be so much too large is compiled only if nothing else fits
MOST_DOUBTED = 3


def bytes_of(budget: Any) -> int:
    """A number of bytes from a number or from text: "2GB" is 2 * 1000^3, "1.5 GiB" 1.5 * 1024^3.

    Raises FluidValueError for what is negative, zero, not finite or of an unknown unit, FluidTypeError for other types.
    """
    if isinstance(budget, bool) or not isinstance(budget, int | float | str):
        raise FluidTypeError(f'budget is a number of bytes or text such as "2GB", not {budget!r}')
    found = re.fullmatch(r"\s*(-?\d+(?:\.\d*)?)\s*([A-Za-z]*)\s*", str(budget))
    if isinstance(budget, str) and (found is None or found[2].upper() not in UNITS):
        raise FluidValueError(f"budget {budget!r} is not a number with one of the units B, KB, MB, GB, TB, KiB, MiB, GiB, TiB")
    number = float(budget) if found is None or not isinstance(budget, str) else float(found[1]) * UNITS[found[2].upper()]
    if not 1 <= number < float("inf"):
        raise FluidValueError(f"budget is a positive number of bytes, not {budget!r}")
    return int(number)


@dataclass(frozen=True)
class Way:
    """A program that computes the same. again: ops that it computes twice. work: the convolutions and products among them, over all
    of the step's. estimate: the most bytes of declared shapes that are alive at once, besides what is persistable or fed."""

    desc: ProgramDesc
    again: int
    work: float
    estimate: int
    notes: tuple[base.Note, ...] = ()

    def __str__(self) -> str:
        return f"{self.again} ops twice ({self.work:+.0%} of convolutions and products)" if self.again else "as it is"


@dataclass(frozen=True)
class Tried:
    """What the compiler says of a way under one of its schedulers."""

    way: Way
    scheduler: str
    figures: compiler.Figures

    def __str__(self) -> str:
        total, temporaries = self.figures.total / 1e6, self.figures.temporaries / 1e6
        return f"{self.way}, scheduler {self.scheduler}: {total:,.3f} MB, temporaries {temporaries:,.3f}"


@dataclass(frozen=True)
class BudgetReport:
    """budget: in bytes. tried: in order; the last one is within the budget."""

    budget: int
    tried: tuple[Tried, ...]

    @property
    def chosen(self) -> Tried:
        """What the program has become."""
        return self.tried[-1]

    def __str__(self) -> str:
        """What was tried; then what is computed again, and what was left alone and why."""
        head = f"budget {self.budget / 1e6:,.3f} MB; MB are 1,000,000 bytes"
        return "\n".join([head, *(f"  {t}" for t in self.tried), *(f"  {n}" for n in self.chosen.way.notes)])


def fit(
    program: Program,
    budget: Any,
    batch_size: int | None = None,
    fetch_list: Sequence[Variable | str] | Variable | str | None = None,
    feed_shapes: Shapes | None = None,
    keep: Sequence[str] = (),
) -> BudgetReport:
    """What a program has to compute again so that a run needs at most `budget` bytes; the program stays as it is.

    batch_size, fetch_list, feed_shapes: as in memory_report. keep: names of values that are not forgotten. The values of a run are
    those of the program before, but for rounding where XLA orders sums anew.

    Raises FluidValueError for a budget that is none, and for one below everything that was tried, with the least of them; what
    memory_report raises for a program or sizes of which no figure can be told.
    """
    wanted = bytes_of(budget)
    search = _Search(program.desc, found_names(program, fetch_list), batch_size, feed_shapes or {}, frozenset(keep))
    tried: list[Tried] = []
    skipped = []
    for way in search.ways():
        if tried and _hopeless(way, tried, wanted):
            skipped.append(way)
        elif search.compiles(way, wanted, tried):
            return BudgetReport(wanted, tuple(tried))
    for way in sorted(skipped, key=lambda w: w.estimate)[:MOST_DOUBTED]:
        if search.compiles(way, wanted, tried):
            return BudgetReport(wanted, tuple(tried))
    least = min(tried, key=_total)
    raise FluidValueError(f"the step cannot be made to need {wanted:,} bytes: the least that was found is {_total(least):,} ({least})")


def _total(tried: Tried) -> int:
    return tried.figures.total


def _hopeless(way: Way, tried: Sequence[Tried], wanted: int) -> bool:
    """Whether this will be too large if its temporaries are to its estimate as those of the last way that was compiled to its own."""
    last = min((t for t in tried if t.way is tried[-1].way), key=_total)
    figures = last.figures
    expected = figures.temporaries * way.estimate / max(last.way.estimate, 1)
    return figures.total - figures.temporaries + expected > SLACK * wanted


@dataclass
class _Search:
    desc: ProgramDesc
    fetches: tuple[str, ...]
    batch_size: int | None
    feed_shapes: Shapes
    keep: frozenset[str]

    def __post_init__(self) -> None:
        step = Step(self.desc, self.fetches)
        if not any(edit.role(op) & edit.BACKWARD for op in step.ops):
            raise FluidValueError("a budget is for training steps: this program has no gradient ops; minimize first")
        refuse_fed_sizes(step.sizes, "a memory budget")
        self.types = arguments(step, self.batch_size, self.feed_shapes)
        self.device = jax.local_devices()[0]
        self.schedulers = list(compiler.SCHEDULERS) if self.device.platform == "cpu" else ["default"]
        self.kept = self.keep | set(self.fetches)
        self.forward = Forward(self.desc, self.kept)
        # what unknown sizes count as in estimates, which are compared with each other alone
        self.rows = max((t.shape[0] for t in self.types.feed.values() if t.shape), default=1)
        self.vars = self.desc.blocks[0].vars
        self.work = sum(flops(op, self.vars) for op in self.forward.ops)

    def ways(self) -> Iterator[Way]:
        """The program as it is; then what is worth trying, by the work that it adds: more work has to gain something."""
        plain = Way(self.desc, 0, 0.0, self.estimate(self.desc))
        yield plain
        passes = dict.fromkeys(Recompute(self.checkpoints(n), heavy) for heavy in (False, True) for n in range(1, MOST_SEGMENTS + 1))
        found = [w for w in map(self._way, passes) if w.again]
        least = plain.estimate
        for way in sorted(found, key=lambda w: (w.work, w.estimate, w.again)):
            if way.estimate < least:
                least = way.estimate
                yield way

    def _way(self, pas: Recompute) -> Way:
        result = base.run(pas, self.desc, {}, self.kept)
        again = [op for op in result.desc.blocks[0].ops if segment(op) is not None]
        # a gradient takes twice the work of what it differentiates
        work = sum(flops(op, result.desc.blocks[0].vars) for op in again) / (3 * self.work) if self.work else 0.0
        return Way(result.desc, len(again), work, self.estimate(result.desc), result.notes)

    def estimate(self, desc: ProgramDesc) -> int:
        names = [n for n, v in desc.blocks[0].vars.items() if _plain(v)]
        return max(live_bytes(desc, names, self.rows), default=0)

    def compiles(self, way: Way, wanted: int, tried: list[Tried]) -> bool:
        """Whether a way needs no more bytes than wanted under one of the schedulers; what was compiled is added to tried."""
        lowered = compiler.lower(way.desc, self.fetches, self.types, self.device)
        for name in self.schedulers:
            tried.append(Tried(way, name, compiler.figures(lowered, [name], quick=True)[name]))
            if _total(tried[-1]) <= wanted:
                return True
        return False

    def checkpoints(self, count: int) -> tuple[str, ...]:
        """The values that cut the forward pass into about so many parts of equal bytes, at its narrowest places."""
        ops, made = self.forward.ops, [0]
        for op in ops:
            made.append(made[-1] + sum(self._bytes(n) for n in op.writes))
        names: dict[str, None] = {}
        for k in range(1, count):
            middle, reach = made[-1] * k / count, made[-1] / (2 * count)
            near = [i for i in range(1, len(ops)) if abs(made[i] - middle) <= reach]
            if near:
                place = min(near, key=lambda i: (sum(map(self._bytes, self._across[i])), abs(made[i] - middle)))
                names.update(dict.fromkeys(self._across[place]))
        return tuple(names)

    @cached_property
    def _across(self) -> list[tuple[str, ...]]:
        """For each forward op what is written before it and read by it or a forward op behind it."""
        ops = self.forward.ops
        last = {n: i for i, op in enumerate(ops) for n in op.reads}
        alive: dict[str, None] = {}
        found = []
        for i, op in enumerate(ops):
            found.append(tuple(alive))
            alive.update((n, None) for n in op.writes if n in self.vars and _plain(self.vars[n]))
            alive = {n: None for n in alive if last.get(n, -1) > i}
        return found

    def _bytes(self, name: str) -> int:
        var = self.vars.get(name)
        return size(var, self.rows) if var is not None and _plain(var) else 0


def _plain(var: VarDesc) -> bool:
    return not var.persistable and not is_fed(var) and var.kind == "LOD_TENSOR" and var.dtype is not None and prod(var.shape or ()) != 0
