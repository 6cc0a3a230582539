"""Dead code: ops whose values are not used, and the variables that only they mention."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from ..ir import edit, walk
from ..ir.desc import OpDesc, ProgramDesc
from ..ops.registry import control, traits
from .base import Note, Params, Pass, Rewrite, did, register


def live_ops(desc: ProgramDesc, needed: Iterable[str]) -> list[bool]:
    """Whether a value in `needed` at the end, or an effect, depends on each op of block 0."""
    live = set(needed)
    alive = []
    for op in reversed(desc.blocks[0].ops):
        writes = walk.writes_with_subblocks(desc, op) if op.blocks else tuple(op.writes)
        used = traits(op.type).runs.acts or not writes or not live.isdisjoint(writes)
        alive.append(used)
        if used and control(op.type).frees is None:
            walk.step_back(desc, op, live)
    return alive[::-1]


def without_dead(desc: ProgramDesc, needed: Iterable[str]) -> tuple[ProgramDesc, tuple[Note, ...]]:
    """`desc` without the dead ops of block 0 and their blocks; and notes on the removed ones."""
    alive = live_ops(desc, needed)
    ops = desc.blocks[0].ops
    if all(alive):
        return desc, ()
    notes = tuple(
        did(op, "removed: nothing needs what it computes")
        for op, a in zip(ops, alive, strict=True)
        if not a
    )
    kept = edit.replace_ops(
        desc, 0, _without_idle_deletions(op for op, a in zip(ops, alive, strict=True) if a)
    )
    return edit.drop_dead_blocks(kept), notes


def _without_idle_deletions(ops: Iterable[OpDesc]) -> Iterator[OpDesc]:
    """The ops; one that frees variables names only variables that an op before it has used."""
    seen: set[str] = set()
    for op in ops:
        slot = control(op.type).frees
        if slot is not None:
            names = tuple(n for n in op.input(slot) if n in seen)
            if names:
                yield (
                    op
                    if names == op.input(slot)
                    else replace(op, inputs=op.inputs.set(**{slot: names}))
                )
            continue
        seen.update(op.reads, op.writes)
        yield op


@register
@dataclass(frozen=True)
class Dce(Pass):
    """Remove ops whose values reach no kept or persistable variable, and variables that no op
    mentions.

    Persistable and data variables stay declared. Sub-blocks stay whole with the op that owns them.
    """

    name: ClassVar[str] = "dce"

    def rewrite(self, desc: ProgramDesc, params: Params, keep: frozenset[str]) -> Rewrite:
        needed = keep | set(walk.persistables(desc))
        desc, notes = without_dead(desc, needed)
        return Rewrite(edit.drop_dead_vars(desc, keep), notes=notes)


@register
@dataclass(frozen=True)
class Prune(Pass):
    """Keep only the ops that the kept variables need; updates of persistable variables and all
    unused variables are removed.

    The result computes the kept variables as before, but no longer trains. With nothing to keep,
    nothing is pruned.
    """

    name: ClassVar[str] = "prune"

    def rewrite(self, desc: ProgramDesc, params: Params, keep: frozenset[str]) -> Rewrite:
        if not keep:
            return Rewrite(
                desc,
                notes=(
                    Note("program", "nothing is named to keep, so nothing is pruned", refused=True),
                ),
            )
        desc, notes = without_dead(desc, keep)
        return Rewrite(
            edit.drop_dead_vars(desc, keep, keep_persistable=False, keep_data=False), notes=notes
        )
