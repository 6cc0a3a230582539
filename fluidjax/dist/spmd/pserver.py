"""A parameter-server job on a mesh: every trainer is a rank, and the ranks together are also the
pservers.

The program that runs is the one before transpile, with the work of `send`, the pservers and `recv`
added: every rank has the blocks of one of the pservers, updates them with the trainers' gradients,
and sends them to all (block_partition.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...devices.placement import Mesh
from ...graph.program import Program
from ...ir import edit
from ...ir.desc import OpDesc, ProgramDesc
from ...ops.build import OpBuilder
from ...passes.base import Note, Params, Pass, Rewrite, did
from ...state.scope import Scope
from ..pserver_plan import PserverPlan
from . import geo
from .block_partition import PartitionedOptimizer, deal_of, grouped
from .block_partition_async import PartitionedAsync
from .parallel import Parallel, Rewritten, rewritten
from .partitioned_state import PartitionedState
from .tables import making, sharding
from .updates import on_pservers


@dataclass(frozen=True)
class AverageSent(Pass):
    """Average the variables that trainers send to pservers over the ranks, like the pservers' sum
    and scale ops.

    Each is averaged once complete: after its last op of the backward part, or after its clip on the
    trainer. sent: the names of those that updates on blocks do not sum.
    """

    name: ClassVar[str] = "average_sent"

    ranks: int
    sent: tuple[str, ...]

    def rewrite(self, desc: ProgramDesc, params: Params, keep: frozenset[str]) -> Rewrite:
        made, notes = OpBuilder.after(desc), list[Note]()
        last = {
            n: op.uid
            for op in desc.blocks[0].ops
            if not on_pservers(op)
            for n in op.writes
            if n in self.sent
        }
        out: list[OpDesc] = []
        for op in desc.blocks[0].ops:
            out.append(op)
            for name in (n for n in dict.fromkeys(op.writes) if last.get(n) == op.uid):
                notes.append(did(op, f"{name} averaged over the ranks"))
                out.append(
                    made.over("c_allreduce_sum", [name], op, ring_id=0, op_role=edit.BACKWARD)
                )
                out.append(
                    made.over("scale", [name], op, scale=1.0 / self.ranks, op_role=edit.BACKWARD)
                )
        return Rewrite(edit.replace_ops(desc, 0, out), notes=tuple(notes))


def on_mesh(plan: PserverPlan, ranks: int) -> tuple[Pass, ...]:
    """The passes that rewrite a job's original program for a mesh of its trainers (geo mode:
    geo.py).

    Raises UnsupportedError for is_distributed tables with other uses. In the asynchronous modes the
    rewrite also raises it for updates that cannot run on blocks.
    """
    if plan.mode == "geo":
        return geo.on_mesh(plan, ranks)
    tables = sharding(plan, ranks)
    first = (tables,) if tables.tables or tables.left else ()
    if ranks == 1:
        return first
    deal = tuple(one for one in deal_of(plan, ranks) if one[0] not in tables.names)
    if plan.mode != "sync":
        return *first, PartitionedAsync(ranks, deal, plan.mode == "async", plan.compensated)
    partitioned = {
        name for group in grouped(plan.main, deal, ranks)[0] for name in group.updates
    } | tables.names
    rest = tuple(p.grad for p in plan.params if p.name not in partitioned)
    return (
        *first,
        PartitionedOptimizer(ranks, deal),
        PartitionedState(ranks, deal),
        AverageSent(ranks, rest),
    )


class PserverJob(Parallel):
    """A trainer's program in a job: the program before transpile, on a mesh of the trainers."""

    def __init__(self, where: Mesh, plan: PserverPlan) -> None:
        super().__init__(where, on_mesh(plan, where.count))
        self._base, self._plan = plan.main, plan
        self._base_made: Rewritten | None = None

    def prepare(self, scope: Scope) -> None:
        if self._plan.mode == "geo":
            geo.prepare(self._plan, scope, self.where.count)

    def _rewritten(self, program: Program) -> Rewritten:
        if self._base_made is None:
            self._base_made = program.version, *rewritten(self._base, self.rewrites)
        return self._base_made


def trains(program: Program) -> bool:
    """Whether it is a trainer's program of a parameter-server job: it sends, and is not a startup
    program.
    """
    return (
        program.info.pserver_plan is not None and "send" in _kinds(program) and not _starts(program)
    )


def _kinds(program: Program) -> set[str]:
    return {op.type for op in program.desc.blocks[0].ops}


def _starts(program: Program) -> bool:
    """Whether a job's program is a trainer's startup program: it only receives. A geo trainer's
    also reports that.
    """
    kinds = _kinds(program)
    return "recv" in kinds and ("send" not in kinds or program.info.pserver_plan.mode == "geo")


def own_startup(program: Program) -> Program:
    """A trainer's startup program restored to its form before transpile; any other program
    unchanged.

    In a job, the pservers would send trainer 0's initial state, so each trainer initialises all.
    """
    if program.info.pserver_plan is None or not _starts(program):
        return program
    before = Program.from_desc(program.info.pserver_plan.startup)
    before.update_info(pserver_plan=program.info.pserver_plan)
    return before


def startup_on_mesh(program: Program, where: Mesh) -> Parallel | None:
    """The parallel run of own_startup's program for a job with tables, in which each trainer makes
    its rows; else None.
    """
    plan = program.info.pserver_plan
    if plan is None or plan.mode == "geo" or program.desc != plan.startup:
        return None
    rewrite = making(plan, where.count)
    return None if rewrite is None else Parallel(where, (rewrite,))
