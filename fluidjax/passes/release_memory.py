"""Delete variables after their last use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from ..ir import edit, walk
from ..ir.desc import FrozenMap, OpDesc, ProgramDesc
from ..ops.registry import traits
from ..ops.traits import Runs
from .base import Note, Params, Pass, Rewrite, did, register
from .lifetimes import guarded
from .memory_optimize import check_skip, skipped

DELETE = "delete_var"


@register
@dataclass(frozen=True)
class ReleaseMemory(Pass):
    """Insert delete_var ops that free variables of block 0 after their last use.

    A run op by op executes them; a compiled step needs none and skips them. skip: names to exclude.
    unread: also delete variables that are written and never read, which Fluid left in memory.
    Variables that are kept, persistable, or used by a sub-block are not deleted.
    """

    name: ClassVar[str] = "release_memory"
    skip: tuple[str, ...] = ()
    unread: bool = True

    def __post_init__(self) -> None:
        check_skip(self.skip)

    def rewrite(self, desc: ProgramDesc, params: Params, keep: frozenset[str]) -> Rewrite:
        left, notes = guarded(desc)
        left |= keep | skipped(desc, self.skip)
        uid = edit.max_uid(desc) + 1
        ops: list[OpDesc] = []
        done: list[Note] = []
        for op, names in self._dying(desc, left):
            ops.append(op)
            if names:
                ops.append(_delete(uid, op, names))
                done.append(did(op, f"deleted after it: {', '.join(names)}"))
                uid += 1
        if not done:
            return Rewrite(desc, notes=notes)
        return Rewrite(edit.replace_ops(desc, 0, ops), notes=(*done, *notes))

    def _dying(self, desc: ProgramDesc, left: set[str]) -> Iterator[tuple[OpDesc, tuple[str, ...]]]:
        """The ops of block 0, each with the names that nothing needs after it, sorted."""
        block = desc.blocks[0]
        live = walk.liveness(block, left | walk.persistables(desc).keys(), desc)
        for op, dies, dead in zip(block.ops, live.dies, live.dead, strict=True):
            if traits(op.type).runs is Runs.HOST:  # a fetched value is the caller's
                yield op, ()
                continue
            names = dies | dead if self.unread else dies
            yield (
                op,
                tuple(
                    sorted(
                        n for n in names if n in block.vars and block.vars[n].kind == "LOD_TENSOR"
                    )
                ),
            )


def _delete(uid: int, after: OpDesc, names: tuple[str, ...]) -> OpDesc:
    """A delete_var op with the role of the op before it, so that both belong to the same part."""
    role = {k: v for k, v in after.attrs.items() if k == "op_role"}
    return replace(
        after,
        uid=uid,
        type=DELETE,
        inputs=FrozenMap({"X": names}),
        outputs=FrozenMap(),
        attrs=FrozenMap(role),
    )
