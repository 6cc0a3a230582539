"""What every rank of a job runs, for any number of ranks, and what the ranks tell each other in a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
from jax.sharding import AbstractMesh, PartitionSpec

from ..base.dtypes import numpy_dtype
from ..dist.spmd.data_parallel import DataParallel
from ..dist.spmd.pserver import on_mesh
from ..dist.spmd.shard_optimizer import ShardOptimizer
from ..errors import FluidValueError, UnsupportedError, near
from ..graph.program import Program
from ..ir import edit
from ..ir.desc import OpDesc, ProgramDesc, VarDesc
from ..lower.checks import Objections
from ..lower.step import Step
from ..memory.live import kinds
from ..memory.sizes import nbytes
from ..ops import ring
from ..ops.kinds import is_lookup
from ..ops.registry import traits
from ..ops.selected import KIND
from ..passes.base import Pass, run
from ..runtime.objecting import agreed
from ..transpiler import DistributeTranspiler
from .links import ALL_GATHER, REDUCE_SCATTER
from .local import Local
from .messages import Message, sent

WHOLE, PIECES, PSERVERS = "data parallel", "pieces", "pservers"
STRATEGIES = (WHOLE, PIECES, PSERVERS)
_AXIS = "ranks"


def as_strategy(value: Any) -> str:
    """One of STRATEGIES. Raises FluidValueError for anything else."""
    if value not in STRATEGIES:
        raise FluidValueError(f"there is no strategy {value!r}{near(str(value), STRATEGIES)}; there are {', '.join(STRATEGIES)}")
    return str(value)


def trains(desc: ProgramDesc) -> bool:
    """Whether the program has a backward part."""
    return any(edit.role(op) & edit.BACKWARD for op in desc.blocks[0].ops)


def refuse_talking(ops: Iterable[OpDesc]) -> None:
    """Raises UnsupportedError for a program that was made for several ranks already."""
    ours = next((op for op in ops if _talks(op)), None)
    if ours is not None:
        raise UnsupportedError(f"the program has collectives already, such as op '{ours.type}' ({ours.loc}); plan the one before them")


def rank_program(program: Program, strategy: str, ranks: int) -> ProgramDesc:
    """The program that each of the ranks runs."""
    desc, rewrites = passes(program, strategy, ranks)
    for rewrite in rewrites:
        desc = run(rewrite, desc).desc
    return desc


def passes(program: Program, strategy: str, ranks: int) -> tuple[ProgramDesc, tuple[Pass, ...]]:
    """A program, and what makes it the one that each of the ranks runs."""
    if ranks == 1 or not trains(program.desc):
        return program.desc, ()
    if strategy == WHOLE:
        return program.desc, (DataParallel(ranks),)
    if strategy == PIECES:
        return program.desc, (ShardOptimizer(ranks), DataParallel(ranks))
    transpiler = DistributeTranspiler()
    endpoints = ",".join(f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}:6174" for i in range(ranks))
    transpiler.transpile(0, Program.from_desc(program.desc), endpoints, ranks, startup_program=Program())
    plan = transpiler.plan
    assert plan is not None
    return plan.main, on_mesh(plan, ranks)


@dataclass(frozen=True)
class Held:
    """Bytes that a rank keeps between steps. touched: those of variables that a step goes through whole, not by chosen rows."""

    parameters: int
    state: int
    touched: int


def held(before: ProgramDesc, desc: ProgramDesc, fetches: tuple[str, ...]) -> Held:
    """What the step of a rank's program needs to find, by its declarations. before: the program of one device."""
    step = Step(desc, fetches)
    whole, vars = kinds(Step(before, fetches)), desc.blocks[0].vars
    rows = {n for op in step.ops if _by_rows(op, vars) for n in op.reads}
    rows.update(n for op in step.ops if is_lookup(op.type) or op.type == "c_table_lookup" for n in op.input("W"))
    dense = {n for op in step.ops if op.input("Param") and not _by_rows(op, vars) for n in op.reads}
    found = {"parameters": 0, "optimizer state": 0}
    touched = 0
    for name in step.reads:
        size = nbytes(_declared(vars[name]))
        found[whole(name) if name in before.blocks[0].vars else "optimizer state"] += size
        touched += size if name in dense or name not in rows else 0
    return Held(found["parameters"], found["optimizer state"], touched)


def _by_rows(op: OpDesc, vars: Mapping[str, VarDesc]) -> bool:
    """Whether an optimizer op goes through the rows of a sparse gradient alone (adam does so if it is lazy)."""
    grads = [vars[n] for n in op.input("Grad") if n in vars]
    return bool(grads) and all(g.kind == KIND for g in grads) and (op.type in ("sgd", "adagrad") or bool(op.attrs.get("lazy_mode")))


def messages(desc: ProgramDesc, fetches: tuple[str, ...], ranks: int, local: Local) -> tuple[Message, ...]:
    """The collectives of a step of a rank's program, traced for a mesh that need not be there.

    local: the step of one rank by itself on the same samples, which says what types the collectives are given.
    """
    if ranks == 1:
        return ()
    step = Step(desc, fetches)
    told = [op for op in step.ops if op.type in _TOLD]
    talking = [op for op in step.ops if (_talks(op) and op.type not in _TOLD) or op.type == "c_table_lookup_grad"]  # which names the ids
    names = dict.fromkeys(n for op in talking for n in op.reads)
    given = {n: _type(desc.blocks[0].vars.get(n), local.types.get(n)) for n in names}

    def talk(given: Mapping[str, Any], word: Any) -> Any:
        env, context = dict(given), step.context(jax.random.key(0), Objections())
        out = []
        with ring.bound(ring.Ring(_AXIS, ranks)):
            for op in talking:
                step.run_one(op, env, context)
                out.append([env[n] for n in op.writes])
        return out, agreed(word, _AXIS) if local.objects else None

    everywhere = PartitionSpec()
    mesh = AbstractMesh((ranks,), (_AXIS,))
    spread = jax.shard_map(talk, mesh=mesh, in_specs=(everywhere, everywhere), out_specs=everywhere, check_vma=False)
    with jax.enable_x64(True):
        traced = sent(jax.make_jaxpr(spread)(given, jax.ShapeDtypeStruct((2,), "int64")))
    return *(m for op in told for m in _told(op, desc.blocks[0].vars, ranks)), *traced


# Ops on the blocks of thousands of ranks, which take long to trace: the kind of their collective, and the slot whose arrays, times the
# ranks, travel. The first two have none.
_TOLD = {"c_piece": None, "c_deal": None, "c_deal_reducescatter": (REDUCE_SCATTER, "Out"), "c_deal_allgather": (ALL_GATHER, "X")}


def _told(op: OpDesc, vars: Mapping[str, VarDesc], ranks: int) -> list[Message]:
    found = _TOLD[op.type]
    if found is None:
        return []
    kind, slot = found
    return [Message(kind, ranks * nbytes(_declared(vars[n]))) for n in (op.output(slot) if slot == "Out" else op.input(slot))]


def _talks(op: OpDesc) -> bool:
    return traits(op.type).ranks.together


def _declared(var: VarDesc) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(var.shape or (), numpy_dtype(var.dtype or "float32"))


def _type(var: VarDesc | None, found: Any) -> Any:
    """The type of a variable: as one rank declares it, or where that leaves it open, as it was traced."""
    told = var is not None and var.kind == "LOD_TENSOR" and var.shape is not None and min(var.shape, default=0) >= 0
    return _declared(var) if told and var is not None else found
