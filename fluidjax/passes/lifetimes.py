"""The lifetimes and sizes of the variables of block 0, and which ones may share memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from math import prod

from ..base.dtypes import numpy_dtype
from ..ir import dims, edit, walk
from ..ir.desc import ProgramDesc, VarDesc
from ..ops.registry import traits
from ..ops.traits import Runs
from .base import Note, refused


@dataclass(frozen=True, slots=True)
class Life:
    """A variable, and the ops of block 0 during which it needs its memory: first to last, both
    included.
    """

    var: VarDesc
    first: int
    last: int

    @property
    def name(self) -> str:
        return self.var.name


def elements(var: VarDesc, unknown: int = 1) -> int:
    """The number of elements of a variable if every unknown dimension is `unknown`; one that
    depends on others (``4*b``) follows from them.
    """
    texts = var.dims or ("",) * len(var.shape or ())
    return prod(
        dims.value(text, dict.fromkeys(dims.symbols(text), unknown)) if text else unknown if n < 0 else n
        for n, text in zip(var.shape or (), texts, strict=True)
    )  # fmt: skip


def size(var: VarDesc, batch_size: int = 1) -> int:
    """Bytes of a variable if every unknown dimension is `batch_size`; 0 if shape or dtype are not
    declared.
    """
    if var.shape is None or var.dtype is None:
        return 0
    return elements(var, batch_size) * numpy_dtype(var.dtype).itemsize


def lives(desc: ProgramDesc) -> list[Life]:
    """The variables of block 0 that an op of block 0 computes before any reads them, by first
    write.

    A life spans all mentions: a variable that is overwritten keeps its memory in between. Fed and
    stored variables, which have a value before the first op, have no life here.
    """
    block = desc.blocks[0]
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    given: set[str] = set()
    for at, op in enumerate(block.ops):
        reads = walk.reads_with_subblocks(desc, op) if op.blocks else op.reads
        writes = walk.writes_with_subblocks(desc, op) if op.blocks else op.writes
        for name in reads:
            if name not in first:
                given.add(name)
            last[name] = at
        for name in writes:
            first.setdefault(name, at)
            last[name] = at
        if traits(op.type).runs is Runs.HOST:
            given.update(op.writes)
    found = (
        (block.vars[name], at)
        for name, at in first.items()
        if name in block.vars and name not in given
    )
    return [
        Life(var, at, last[var.name]) for var, at in found if not (var.persistable or is_fed(var))
    ]


def is_fed(var: VarDesc) -> bool:
    """Whether a variable is declared to be fed."""
    return var.is_data or var.need_check_feed


def shareable(var: VarDesc) -> bool:
    """Whether a variable is a plain tensor of known size, which takes memory."""
    return (
        var.kind == "LOD_TENSOR" and var.dtype is not None and bool(var.shape) and elements(var) > 0
    )


def guarded(desc: ProgramDesc) -> tuple[set[str], tuple[Note, ...]]:
    """Names that must not change, and notes on why: names that a sub-block or its op mentions, and
    names in any attribute except op_role_var.
    """
    names: set[str] = set()
    notes = []
    for _, op in walk.ops(desc):
        names.update(
            v for attr, value in op.attrs.items() if attr != "op_role_var" for v in _strings(value)
        )
    for block in desc.blocks[1:]:
        names |= block.vars.keys()
        for op in block.ops:
            names.update(op.reads, op.writes)
    for op in desc.blocks[0].ops:
        if op.blocks:
            own = dict.fromkeys(
                (*walk.reads_with_subblocks(desc, op), *walk.writes_with_subblocks(desc, op))
            )
            names.update(own)
            blocks = ", ".join(map(str, op.blocks))
            notes.append(
                refused(
                    op,
                    f"it owns block {blocks}: what is in there stays, and what it uses:"
                    f" {', '.join(own)}",
                )
            )
    return names, tuple(notes)


def _strings(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(v for v in value if isinstance(v, str)) if isinstance(value, tuple) else ()


def parameter_gradients(desc: ProgramDesc) -> set[str]:
    """The gradients that optimizer ops name in op_role_var: parameter, gradient, parameter,
    gradient, ...
    """
    found: set[str] = set()
    for op in desc.blocks[0].ops:
        pairs = op.attrs.get("op_role_var")
        if edit.role(op) & edit.OPTIMIZE and isinstance(pairs, tuple):
            found.update(pairs[1::2])
    return found


def live_bytes(desc: ProgramDesc, names: Collection[str], batch_size: int = 1) -> list[int]:
    """The bytes of those `names` that each op of block 0 reads or writes, or that are needed after
    it.
    """
    block = desc.blocks[0]
    of = {n: size(block.vars[n], batch_size) for n in names}
    live = walk.liveness(block, desc=desc)
    now = sum(of.get(n, 0) for n in live.entry)
    result = []
    for born, dies, dead in zip(live.born, live.dies, live.dead, strict=True):
        now += _sum(of, born)
        result.append(now + _sum(of, dead))
        now -= _sum(of, dies)
    return result


def _sum(of: dict[str, int], names: Iterable[str]) -> int:
    return sum(of.get(n, 0) for n in names)
