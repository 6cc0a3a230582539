"""Sharing of names as in Fluid 0.15's memory_optimize: every result takes the first dead variable
that fits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ..ir import walk
from ..ir.desc import EMPTY, ProgramDesc, VarDesc
from .lifetimes import elements, is_fed


@dataclass(frozen=True, slots=True)
class Hit:
    """A variable that takes the name of a dead one at `index` of the pool; `at` is the op that
    writes it.
    """

    var: VarDesc
    host: VarDesc
    index: int
    at: int


def first_fit(desc: ProgramDesc, skip: Collection[str], level: int) -> list[Hit]:
    """The hits of Fluid 0.15's walk over block 0; variables in `skip` take no part.

    Dead variables join a pool in the order of their last op, fed ones too. An op's result that is
    not also its input takes the first of the pool with its dtype and shape (level 1: at least its
    size, and an unknown first dimension in both or neither); both then stay out of the pool, as in
    Fluid. A variable with several writes keeps its own name from the first write to the last
    mention.
    """
    block = desc.blocks[0]
    first, last = _mentions(desc)
    pool: list[VarDesc] = []
    hits: list[Hit] = []
    taken: set[str] = set()
    computed: set[str] = set()
    for at, op in enumerate(block.ops):
        if op.blocks:
            continue
        for name in _names(op.outputs):
            var = block.vars.get(name)
            if var is None or first[name] != at or name in op.reads or not _eligible(var, skip):
                continue
            index = next((i for i, dead in enumerate(pool) if _fits(var, dead, level)), None)
            if index is not None:
                hits.append(Hit(var, pool.pop(index), index, at))
                taken.add(name)
        for name in _names(op.inputs):
            var = block.vars.get(name)
            if var is None or last[name] != at or name in taken or not _eligible(var, skip):
                continue
            # not a gradient that no op computes and that counts as zero
            if name in computed or is_fed(var):
                pool.append(var)
        computed.update(op.writes)
    return hits


def _names(slots: Mapping[str, tuple[str, ...]]) -> dict[str, None]:
    """A slot map's names in Paddle's order: slots by name."""
    return dict.fromkeys(n for slot in sorted(slots) for n in slots[slot] if n != EMPTY)


def _mentions(desc: ProgramDesc) -> tuple[dict[str, int], dict[str, int]]:
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for at, op in enumerate(desc.blocks[0].ops):
        reads = walk.reads_with_subblocks(desc, op) if op.blocks else op.reads
        writes = walk.writes_with_subblocks(desc, op) if op.blocks else op.writes
        for name in (*reads, *writes):
            first.setdefault(name, at)
            last[name] = at
    return first, last


def _eligible(var: VarDesc, skip: Collection[str]) -> bool:
    return (
        not var.persistable
        and var.kind == "LOD_TENSOR"
        and bool(var.shape)
        and var.name not in skip
    )


def _fits(var: VarDesc, dead: VarDesc, level: int) -> bool:
    if var.dtype != dead.dtype:
        return False
    if level == 0 or var.shape is None or dead.shape is None:
        return var.shape == dead.shape
    return elements(var) <= elements(dead) and (var.shape[0] == -1) == (dead.shape[0] == -1)
