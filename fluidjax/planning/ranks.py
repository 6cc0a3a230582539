"""The program that every rank of a job runs, for any number of ranks, and the messages between
ranks in a step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
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
from .liveness import peak
from .local import Local
from .messages import Message, sent
from .work import Work, count

WHOLE, PIECES, PSERVERS = "data parallel", "pieces", "pservers"
STRATEGIES = (WHOLE, PIECES, PSERVERS)


def as_strategy(value: Any) -> str:
    """One of STRATEGIES. Raises FluidValueError for anything else."""
    if value not in STRATEGIES:
        raise FluidValueError(
            f"there is no strategy {value!r}{near(str(value), STRATEGIES)}; there are"
            f" {', '.join(STRATEGIES)}"
        )
    return str(value)


def trains(desc: ProgramDesc) -> bool:
    """Whether the program has a backward part."""
    return any(edit.role(op) & edit.BACKWARD for op in desc.blocks[0].ops)


def refuse_talking(ops: Iterable[OpDesc]) -> None:
    """Raises UnsupportedError for a program that was made for several ranks already."""
    ours = next((op for op in ops if _communicates(op)), None)
    if ours is not None:
        raise UnsupportedError(
            f"the program has collectives already, such as op '{ours.type}' ({ours.loc}); plan the"
            " one before them"
        )


def rank_program(program: Program, strategy: str, ranks: int) -> ProgramDesc:
    """The program that each of the ranks runs."""
    desc, rewrites = passes(program, strategy, ranks)
    for rewrite in rewrites:
        desc = run(rewrite, desc).desc
    return desc


def passes(program: Program, strategy: str, ranks: int) -> tuple[ProgramDesc, tuple[Pass, ...]]:
    """A program, and the passes that turn it into each rank's program."""
    if ranks == 1 or not trains(program.desc):
        return program.desc, ()
    if strategy == WHOLE:
        return program.desc, (DataParallel(ranks),)
    if strategy == PIECES:
        return program.desc, (ShardOptimizer(ranks), DataParallel(ranks))
    transpiler = DistributeTranspiler()
    endpoints = ",".join(f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}:6174" for i in range(ranks))
    transpiler.transpile(
        0, Program.from_desc(program.desc), endpoints, ranks, startup_program=Program()
    )
    plan = transpiler.plan
    assert plan is not None
    return plan.main, on_mesh(plan, ranks)


@dataclass(frozen=True)
class Held:
    """The bytes that a rank keeps between steps."""

    parameters: int
    state: int


def held(before: ProgramDesc, desc: ProgramDesc, fetches: tuple[str, ...]) -> Held:
    """What the step of a rank's program needs to find, by its declarations. before: the program of
    one device.
    """
    whole, vars = kinds(Step(before, fetches)), desc.blocks[0].vars
    found = {"parameters": 0, "optimizer state": 0}
    for name in Step(desc, fetches).reads:
        found[whole(name) if name in before.blocks[0].vars else "optimizer state"] += nbytes(
            _declared(vars[name])
        )
    return Held(found["parameters"], found["optimizer state"])


@dataclass(frozen=True)
class Update:
    """What a rank does after its gradients are there.

    messages: the collectives of the step, those of its forward part too. work: of exchanging and
    updating, and of look-ups, which tables by rows change. moved: bytes that dense updates read and
    write, each array once; so much passes through the memory even where all of an update is fused.
    live: the peak of live bytes of the gradients and of what is made of them.
    """

    messages: tuple[Message, ...]
    work: Work
    moved: int
    live: int

    @property
    def phase(self) -> Work:
        """All of it as work."""
        return replace(self.work, traffic=self.work.traffic + self.moved)


def update(
    desc: ProgramDesc, fetches: tuple[str, ...], ranks: int, local: Local, in_place: bool = False
) -> Update:
    """The exchange and the update of a rank's program, traced for a mesh that need not be there.

    local: the step of one rank by itself on the same samples, which says what types they are given.
    in_place: as in liveness.peak.
    """
    step, vars = Step(desc, fetches).closed({}, local.types), desc.blocks[0].vars
    ops = [op for op in step.ops if _communicates(op) or _updates(op) or _is_look_up(op)]
    given = {
        n: _type(vars.get(n), local.types.get(n))
        for n in dict.fromkeys(n for op in ops for n in op.reads)
    }
    moved = 0

    def talk(given: Mapping[str, Any], word: Any) -> Any:
        nonlocal moved
        env, context = dict(given), step.context(jax.random.key(0), Objections())
        out = []
        with ring.bound(ring.Ring(ring.AXIS, ranks)):
            for op in ops:
                dense = bool(op.input("Param")) and not _by_rows(op, vars)
                moved += sum(nbytes(env[n]) for n in op.reads) * dense
                step.run_one(op, env, context)
                moved += sum(nbytes(env[n]) for n in op.writes) * dense
                out.append([env[n] for n in op.writes])
        return out, agreed(word, ring.AXIS) if local.objects and ranks > 1 else None

    everywhere, mesh = PartitionSpec(), AbstractMesh((ranks,), (ring.AXIS,))
    spread = jax.shard_map(
        talk, mesh=mesh, in_specs=(everywhere, everywhere), out_specs=everywhere, check_vma=False
    )
    with jax.enable_x64(True):
        traced = jax.make_jaxpr(spread)(given, jax.ShapeDtypeStruct((2,), "int64"))
    # flattened as jax does, by name; the word takes next to no memory
    own = [
        n not in vars or not vars[n].persistable
        for n in sorted(given)
        for _ in jax.tree.leaves(given[n])
    ]
    live = peak(traced, [*own, False], in_place)
    return Update(sent(traced) if ranks > 1 else (), count(traced), moved, live)


def _updates(op: OpDesc) -> bool:
    return bool(edit.role(op) & edit.OPTIMIZE) and not op.blocks


def _is_look_up(op: OpDesc) -> bool:
    """A look-up or its gradient (c_table_lookup_grad tells the ids to all)."""
    kind = op.type.removesuffix("_grad")
    return is_lookup(kind) or kind == "c_table_lookup"


def _by_rows(op: OpDesc, vars: Mapping[str, VarDesc]) -> bool:
    """Whether an optimizer op goes through the rows of a sparse gradient alone (adam does so if it
    is lazy).
    """
    grads = [vars[n] for n in op.input("Grad") if n in vars]
    return (
        bool(grads)
        and all(g.kind == KIND for g in grads)
        and (op.type in ("sgd", "adagrad") or bool(op.attrs.get("lazy_mode")))
    )


def _communicates(op: OpDesc) -> bool:
    return traits(op.type).ranks.together


def _declared(var: VarDesc) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(var.shape or (), numpy_dtype(var.dtype or "float32"))


def _type(var: VarDesc | None, found: Any) -> Any:
    """The type of a variable: as one rank declares it, or, if that is open, as it was traced."""
    declared = (
        var is not None
        and var.kind == "LOD_TENSOR"
        and var.shape is not None
        and min(var.shape, default=0) >= 0
    )
    return _declared(var) if declared and var is not None else found
