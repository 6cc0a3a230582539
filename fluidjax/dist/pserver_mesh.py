"""A parameter-server job on a mesh: every trainer is a rank, and together they are the pservers too.

The program that runs is the one before transpile, with what `send`, the pservers and `recv` did: the gradients that
trainers send are averaged over the ranks, and the optimizer's state is in pieces, one on each rank (shard_optimizer.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..errors import UnsupportedError
from ..ir import edit
from ..ir.desc import OpDesc, ProgramDesc
from ..passes.base import Note, Params, Pass, Rewrite, did
from ..program import Program
from ..ranks import Mesh
from ..scope import Scope
from . import geo_mesh
from .making import Ops
from .parallel import Parallel, Rewritten, rewritten
from .pserver_plan import PserverPlan
from .shard_optimizer import ShardOptimizer


@dataclass(frozen=True)
class AverageSent(Pass):
    """Average the variables that trainers send to pservers over the ranks, as the pservers' sum and scale ops do.

    Each is averaged where it is complete: after its last op of the backward part, or the clip that it went through on the
    trainer. One that a reduce-scatter sums already is scaled in its piece. sent: the variables' names.
    """

    name: ClassVar[str] = "average_sent"

    ranks: int
    sent: tuple[str, ...]

    def rewrite(self, desc: ProgramDesc, params: Params, keep: frozenset[str]) -> Rewrite:
        made, notes = Ops(edit.max_uid(desc)), list[Note]()
        scattered = [op for op in desc.blocks[0].ops if op.type == "c_fused_reducescatter"]
        pieces = {g: p for op in scattered for g, p in zip(op.input("X"), op.output("Out"), strict=True)}
        last = {n: op.uid for op in desc.blocks[0].ops if _on_the_trainer(op) for n in op.writes if n in self.sent}
        out: list[OpDesc] = []
        for op in desc.blocks[0].ops:
            out.append(op)
            ready = [n for n in dict.fromkeys(op.writes) if last.get(n) == op.uid and n not in pieces]
            for name in ready:
                notes.append(did(op, f"{name} averaged over the ranks"))
                out.append(made("c_allreduce_sum", [name], {"ring_id": 0, "op_role": edit.BACKWARD}, op))
            if op.type == "c_fused_reducescatter":
                ready = list(op.output("Out"))
            out += [made("scale", [n], {"scale": 1.0 / self.ranks, "op_role": edit.BACKWARD}, op) for n in ready]
        return Rewrite(edit.replace_ops(desc, 0, out), notes=tuple(notes))


def _on_the_trainer(op: OpDesc) -> bool:
    """Whether the trainer runs the op itself: the backward part, and clips of set_gradient_clip."""
    return not edit.role(op) & edit.OPTIMIZE or "@CLIP" in str(op.attrs.get("op_namescope", ""))


def on_mesh(plan: PserverPlan, ranks: int) -> tuple[Pass, ...]:
    """The passes that make the original program of a job one for a mesh of its trainers (geo mode: geo_mesh.py).

    Raises UnsupportedError for modes other than sync and geo, and tables that are looked up on the pservers by is_distributed.
    """
    if plan.mode == "geo":
        return geo_mesh.on_mesh(plan, ranks)
    if plan.mode != "sync":
        raise UnsupportedError(
            f"a job of processes runs parameter servers in sync or geo mode, not in {plan.mode}; fluid.dist.LocalJob runs it in one process"
        )
    if plan.tables:
        raise UnsupportedError(
            f"a job of processes has no is_distributed tables yet ({plan.tables[0].name!r} is one); fluid.dist.LocalJob runs it "
            "in one process"
        )
    sent = tuple(p.grad for p in plan.params)
    if ranks == 1:
        return ()
    return ShardOptimizer(ranks, sent), AverageSent(ranks, sent)


class PserverJob(Parallel):
    """A trainer's program in a job: the program before transpile, on a mesh of the trainers."""

    def __init__(self, where: Mesh, plan: PserverPlan) -> None:
        super().__init__(where, on_mesh(plan, where.count))
        self._base, self._plan = plan.main, plan

    def prepare(self, scope: Scope) -> None:
        if self._plan.mode == "geo":
            geo_mesh.prepare(self._plan, scope, self.where.count)

    def _rewritten(self, program: Program) -> Rewritten:
        if self._made is None:
            self._made = program._version, *rewritten(self._base, self.rewrites)
        return self._made


def trains(program: Program) -> bool:
    """Whether it is a trainer's program of a parameter-server job: it sends, and is no startup program."""
    return program._pserver_plan is not None and "send" in _kinds(program) and not _starts(program)


def _kinds(program: Program) -> set[str]:
    return {op.type for op in program.desc.blocks[0].ops}


def _starts(program: Program) -> bool:
    """Whether a job's program is a trainer's startup program: it only receives. A geo trainer's says that it did."""
    kinds = _kinds(program)
    return "recv" in kinds and ("send" not in kinds or program._pserver_plan.mode == "geo")


def own_startup(program: Program) -> Program:
    """A trainer's startup program as it was before transpile; any other program as it is.

    In a job, what the pservers would send is the state that trainer 0 begins with, so each trainer initialises all.
    """
    if program._pserver_plan is None or not _starts(program):
        return program
    if program._before is None:
        program._before = Program.from_desc(program._pserver_plan.startup)
    return program._before
