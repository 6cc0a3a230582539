"""Sharing of names by variables whose lives do not overlap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ..errors import FluidTypeError, FluidValueError, near
from ..ir import edit
from ..ir.desc import FrozenMap, ProgramDesc, VarDesc
from .base import Note, Params, Pass, Rewrite, did, register
from .first_fit import first_fit
from .intervals import pack
from .lifetimes import Life, elements, guarded, lives, parameter_gradients, shareable, size
from .memory_plan import log_line, make_plan

STRATEGIES = ("interval", "first_fit")


@dataclass(frozen=True, slots=True)
class Shared:
    """One variable that gets the name of another. index: the position in Fluid's pool, or the
    number of the shared name.
    """

    var: VarDesc
    host: VarDesc
    index: int
    at: int


@register
@dataclass(frozen=True)
class MemoryOptimize(Pass):
    """Give the names of dead variables to new ones, so that fewer tensors are needed.

    level: 0 shares among equal shapes and dtypes, 1 among equal dtypes (then a name is declared as
    its largest user). strategy: "interval" packs lives, largest variables first; "first_fit" is
    Fluid 0.15's walk, which also reuses fed variables. skip: names to exclude. skip_grads: exclude
    the gradients that optimizer ops take. batch_size: the value of unknown dimensions in the plan's
    figures.

    Only plain tensors of block 0 take part; variables that are kept, fed, persistable, or used by a
    sub-block do not change. An op never overwrites one of its inputs unless it did before. The
    certificate is a MemoryPlan.
    """

    name: ClassVar[str] = "memory_optimize"
    level: int = 0
    strategy: str = "interval"
    skip: tuple[str, ...] = ()
    skip_grads: bool = False
    batch_size: int = 1

    def __post_init__(self) -> None:
        if self.level not in (0, 1) or isinstance(self.level, bool):
            raise FluidValueError("only support opt_level 0 or 1.")
        if self.strategy not in STRATEGIES:
            raise FluidValueError(
                f"memory_optimize has no strategy {self.strategy!r}; it has {', '.join(STRATEGIES)}"
            )
        check_skip(self.skip)
        if (
            not isinstance(self.batch_size, int)
            or isinstance(self.batch_size, bool)
            or self.batch_size < 1
        ):
            raise FluidValueError(f"batch_size is a positive int, not {self.batch_size!r}")

    def rewrite(self, desc: ProgramDesc, params: Params, keep: frozenset[str]) -> Rewrite:
        left, notes = guarded(desc)
        left |= (
            keep
            | skipped(desc, self.skip)
            | {n for op in desc.blocks[0].ops if op.type == "feed" for n in op.writes}
        )
        if self.skip_grads:
            left |= parameter_gradients(desc)
        found = lives(desc)
        movable = [life for life in found if life.name not in left and shareable(life.var)]
        shared, declared = self._share(desc, movable, left)
        names = {s.var.name: s.host.name for s in shared}
        log = [log_line(s.index, s.var, s.host) for s in shared]
        plan = make_plan(str(self), desc, _hosts(desc, movable, names), names, self.batch_size, log)
        ops = desc.blocks[0].ops
        notes = (*(did(ops[s.at], _said(s)) for s in shared), *notes, *_unknown(found, left))
        return Rewrite(_renamed(desc, names, declared), notes=notes, certificate=plan)

    def _share(
        self, desc: ProgramDesc, movable: Sequence[Life], left: set[str]
    ) -> tuple[list[Shared], Mapping[str, VarDesc]]:
        """The sharing of names, in the order of the ops; and names to declare again."""
        if self.strategy == "first_fit":
            forced = {
                n for op in desc.blocks[0].ops if op.attrs.get("force_cpu") for n in op.writes
            }
            return [
                Shared(h.var, h.host, h.index, h.at)
                for h in first_fit(desc, left | forced, self.level)
            ], {}
        shared = []
        declared = {}
        for index, users in enumerate(pack(movable, self.level)):
            first, *rest = sorted(users, key=lambda life: life.first)
            largest = max(users, key=lambda life: elements(life.var)).var
            declared[first.name] = replace(first.var, shape=largest.shape)
            shared += [Shared(life.var, first.var, index, life.first) for life in rest]
        return sorted(shared, key=lambda s: s.at), declared


def check_skip(skip: object) -> None:
    """Raises FluidTypeError unless `skip` is a tuple or list of names."""
    if not isinstance(skip, tuple | list) or not all(isinstance(n, str) for n in skip):
        raise FluidTypeError(f"skip is a tuple of variable names, not {skip!r}")


def skipped(desc: ProgramDesc, skip: Iterable[str]) -> set[str]:
    """`skip` as a set. Raises FluidValueError for a name that no block declares."""
    known = {n for block in desc.blocks for n in block.vars}
    for name in skip:
        if name not in known:
            raise FluidValueError(
                f"there is no variable {name!r} to skip in the program{near(str(name), known)}"
            )
    return set(skip)


def _renamed(
    desc: ProgramDesc, names: Mapping[str, str], declared: Mapping[str, VarDesc]
) -> ProgramDesc:
    """`desc` with the variables of block 0 renamed by `names`; the merged ones are no longer
    declared.
    """
    if not names:
        return desc
    block = desc.blocks[0]
    vars = FrozenMap({n: declared.get(n, v) for n, v in block.vars.items() if n not in names})
    return edit.replace_block(
        desc, 0, replace(block, vars=vars, ops=tuple(edit.rename_op(op, names) for op in block.ops))
    )


def _hosts(desc: ProgramDesc, movable: Sequence[Life], names: Mapping[str, str]) -> list[Life]:
    """`movable`, and the fed variables whose names are reused (their lives begin before the first
    op).
    """
    known = {life.name for life in movable}
    fed = {n for n in names.values() if n not in known}
    last = {
        n: at
        for at, op in enumerate(desc.blocks[0].ops)
        for n in (*op.reads, *op.writes)
        if n in fed
    }
    return [*(Life(desc.blocks[0].vars[n], 0, at) for n, at in last.items()), *movable]


def _said(s: Shared) -> str:
    many = "a row" if -1 in (s.var.shape or ()) else "in all"
    return f"{s.var.name} reuses the memory of {s.host.name}, {size(s.var):,} bytes {many}"


def _unknown(found: Sequence[Life], left: set[str]) -> list[Note]:
    """Notes on variables that could not take part because of their kind."""
    notes = []
    for life in found:
        var = life.var
        if var.name in left:
            continue
        if var.kind != "LOD_TENSOR":
            notes.append(
                Note(
                    f"variable {var.name!r}",
                    f"it is a {var.kind}; only plain tensors share memory",
                    refused=True,
                )
            )
        elif var.shape is None or var.dtype is None:
            notes.append(
                Note(f"variable {var.name!r}", "its shape or dtype is not declared", refused=True)
            )
    return notes
