"""A CompiledProgram within a budget of bytes for each device: what it computes again is chosen when its feeds are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..dist.spmd.parallel import Parallel
from ..dist.spmd.runnable import Alone, Ranks
from ..errors import UnsupportedError
from ..graph.program import Program
from ..ir.desc import ProgramDesc
from ..passes.base import Pass
from ..runtime.placement import Mesh, OneDevice, Turns
from . import compiler
from .budget import BudgetReport, Target, described_step, schedulers, search


@dataclass(frozen=True, eq=False)
class FittedAlone(Alone):
    """One rank on one device, for which a program was rewritten."""

    made: ProgramDesc = field(kw_only=True)

    def desc(self, program: Program) -> ProgramDesc:
        return self.made


class Fitting:
    """budget: in bytes, for each device. reports: of the searches so far."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.reports: list[BudgetReport] = []
        self._found: dict[Any, tuple[dict[str, tuple[int, ...]], Ranks]] = {}

    def ranks(self, program: Program, ranks: Ranks, fetches: tuple[str, ...], feed: Any) -> Ranks:
        """The ranks on which the program, fed so, needs no more than the budget. A search is made for the first feed and for larger ones.

        Raises FluidValueError for a budget that nothing keeps and for a program without gradients, UnsupportedError for ranks or feeds of
        which the compiler tells no figure.
        """
        where = _placed(ranks, program)
        shapes = _shapes(feed)
        key = where if isinstance(ranks, Alone) else ranks, program, program.version, fetches
        if key in self._found and _within(shapes, self._found[key][0]):
            return self._found[key][1]
        made = self._fitted(program, ranks, where, fetches, shapes)
        self._found[key] = shapes, made
        return made

    def _fitted(self, program: Program, ranks: Ranks, where: OneDevice | Mesh, fetches: tuple[str, ...], shapes: Any) -> Ranks:
        desc = ranks.desc(program)
        types = described_step(desc, fetches, None, shapes)

        def lower(desc: ProgramDesc, scheduler: str) -> Any:
            return compiler.lower_on(where, desc, fetches, types, scheduler)

        report = search(Target(desc, fetches, types, lower, schedulers(where.device), (), where.count), self.budget)
        self.reports.append(report)
        way, small = report.chosen.way, report.chosen.scheduler != "default"
        if isinstance(ranks, Parallel):
            more: tuple[Pass, ...] = () if way.made_by is None else (way.made_by,)
            return Parallel(where, (*ranks.rewrites, *more), small)
        assert not isinstance(where, Mesh)
        return FittedAlone(where, small, made=way.desc)


def _placed(ranks: Ranks, program: Program) -> OneDevice | Mesh:
    where = ranks.where
    if isinstance(where, Turns):
        raise UnsupportedError(f"a memory budget is for devices that run at once, and here {where.count} places take turns on one")
    if isinstance(where, Mesh) and where.shared:
        raise UnsupportedError("a memory budget is for the devices of one process, and other processes hold some of these")
    if ranks.sharded(program):
        raise UnsupportedError("a memory budget does not go with ReduceStrategy.Reduce, where each device has a part of the state")
    return where


def _shapes(feed: Any) -> dict[str, tuple[int, ...]]:
    if not isinstance(feed, Mapping):
        raise UnsupportedError("a memory budget needs feeds that give every device as many rows")
    odd = next((n for n, v in feed.items() if not isinstance(v, np.ndarray) and not hasattr(v, "sharding")), None)
    if odd is not None:
        raise UnsupportedError(f"a memory budget needs dense feeds, and {odd!r} is ragged or decides sizes")
    return {n: tuple(v.shape) for n, v in feed.items()}


def _within(shapes: Mapping[str, tuple[int, ...]], known: Mapping[str, tuple[int, ...]]) -> bool:
    return all(len(s) == len(known[n]) and all(a <= b for a, b in zip(s, known[n], strict=True)) for n, s in shapes.items())
