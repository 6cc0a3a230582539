"""Keeps a CompiledProgram within a budget of bytes for each device: the values to recompute are
chosen when the feeds are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from ..compiling.recompiles import Recompiles
from ..devices.placement import Mesh, OneDevice, Turns
from ..dist.spmd.parallel import Parallel
from ..errors import MixesRows, NotOneStep, UnsupportedError
from ..graph.program import Program
from ..ir.desc import ProgramDesc
from ..runtime.compiled import Compiled
from ..runtime.plan import StepPlan
from ..runtime.runnable import Alone, Ranks
from . import compiler
from .budget import BudgetReport, Target, no_host, refuse_no_training, search
from .sizes import Arguments, state_types


@dataclass(frozen=True, eq=False)
class FittedAlone(Alone):
    """One rank on one device, with a rewritten program."""

    made: ProgramDesc = field(kw_only=True)

    def desc(self, program: Program) -> ProgramDesc:
        return self.made


class Fitting:
    """budget: in bytes, for each device. reports: of the searches so far."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.reports: list[BudgetReport] = []
        self._made: dict[Any, Ranks] = {}
        # signatures of feeds with which a step is within the budget
        self._kept: WeakKeyDictionary[Compiled, set[Any]] = WeakKeyDictionary()

    def ranks(
        self,
        program: Program,
        ranks: Ranks,
        fetches: tuple[str, ...],
        feed: Any,
        compiled: Callable[[Ranks], Compiled],
    ) -> Ranks:
        """The ranks on which the program with these feeds stays within the budget. The first feed
        starts a search. A later feed of other sizes starts another if the step that was found
        exceeds the budget with it.

        compiled: makes the program's step on ranks. Raises FluidValueError for a budget that no way
        keeps and for a program without gradients, UnsupportedError for ranks or feeds without a
        figure of the compiler.
        """
        where = _placed(ranks)
        if not isinstance(feed, Mapping):
            raise UnsupportedError(
                "a memory budget needs feeds that give every device as many rows, without a LoD"
                " where there are several"
            )
        key = (
            where if isinstance(ranks, Alone) else ranks,
            program,
            program.version,
            fetches,
            compiled(ranks).step.given,
        )
        made = self._made.get(key)
        try:
            while made is None or not self._is_within_budget(compiled(made), feed):
                before = compiled(ranks if made is None else made)
                made = self._made[key] = self._fitted(program, ranks, where, before, feed)
        except NotOneStep as why:
            if isinstance(why, MixesRows):
                raise
            raise UnsupportedError(
                "a memory budget is for programs that one compiled step runs, and this is none:"
                f" {why}"
            ) from why
        return made

    def _is_within_budget(self, compiled: Compiled, feed: Mapping[str, Any]) -> bool:
        """Whether a step with these feeds is within the budget, by the compiler's figure."""
        kept = self._kept.setdefault(compiled, set())
        form = compiled.signature(None, compiled.packed(feed))
        if form not in kept:
            lowered = compiler.lower_padded(compiled, state_types(compiled.step), feed)
            name = "memory-optimised" if compiled.plan.memory_optimized else "default"
            if compiler.figures(lowered, [name], quick=True)[name].total > self.budget:
                return False
            kept.add(compiled.signature(None, compiled.packed(feed)))
        return True

    def _fitted(
        self, program: Program, ranks: Ranks, where: OneDevice | Mesh, compiled: Compiled, feed: Mapping[str, Any]
    ) -> Ranks:  # fmt: skip
        desc, fetches, sharded = ranks.desc(program), compiled.fetches, ranks.sharded(program)
        refuse_no_training(compiled.step)
        state = state_types(compiled.step)
        if compiled.padding.ragged(feed):
            compiler.lower_padded(compiled, state, feed)  # the step decides how far it is padded
        fed = compiler.types_of(dict(compiled.packed(feed)))

        def lower(desc: ProgramDesc, scheduler: str) -> Any:
            made = StepPlan.of(
                desc, fetches, where, scheduler != "default", sharded, compiled.step.given
            )
            return Compiled(made, Recompiles()).lower(state, fed)

        host = (
            "a step over several devices does not use it"
            if where.count > 1
            else no_host(where.device)
        )
        target = Target(
            desc,
            fetches,
            Arguments(state, fed),
            lower,
            (compiler.schedulers(where.device),),
            (),
            where.count,
            host,
        )
        report = search(target, self.budget)
        self.reports.append(report)
        way, small = report.chosen.way, report.chosen.scheduler != "default"
        if isinstance(ranks, Parallel):
            return Parallel(where, (*ranks.rewrites, *way.made), small)
        assert not isinstance(where, Mesh)
        return FittedAlone(where, small, made=way.desc)


def _placed(ranks: Ranks) -> OneDevice | Mesh:
    where = ranks.where
    if isinstance(where, Turns):
        raise UnsupportedError(
            f"a memory budget is for devices that run at once, and here {where.count} places take"
            " turns on one"
        )
    if isinstance(where, Mesh) and where.shared:
        raise UnsupportedError(
            "a memory budget is for the devices of one process, and other processes hold some of"
            " these"
        )
    if type(ranks) is not Parallel and not isinstance(ranks, Alone):
        raise UnsupportedError(
            "a memory budget does not go with parameter servers, whose tables and blocks lie over"
            " the devices"
        )
    return where
