"""The variables alive at every op in op-by-op execution, in which each variable has memory of its
own.

A variable lives from its write to its last read; a fetched one lives to the end. Persistable
variables and feeds are always held, because they belong to the scope and to the caller. A variable
that an op overwrites keeps its memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from ..base.roles import OpRole
from ..ir import edit, walk
from ..ir.desc import BlockDesc, OpDesc, ProgramDesc
from ..lower.step import Step
from .sizes import Sizes

KINDS = ("parameters", "optimizer state", "feeds", "activations", "gradients")


@dataclass(frozen=True)
class Alive:
    """A variable that holds memory. line: the user's line of the op that wrote it, or of the first
    op that reads it if it is fed or persistable.
    """

    name: str
    bytes: int
    kind: str
    line: str | None


@dataclass(frozen=True)
class Point:
    """One op while it runs: its index among the ops that run, its type, the user's line, and the
    live bytes by kind.

    inside: the bytes of activations in the op's own sub-blocks, at their maximum.
    """

    index: int
    op: str
    line: str | None
    by_kind: Mapping[str, int]
    inside: int = 0

    @property
    def bytes(self) -> int:
        return sum(self.by_kind.values())


@dataclass(frozen=True)
class Peak(Point):
    """The first op with the most live bytes, and the variables alive there, largest first."""

    alive: tuple[Alive, ...] = ()


class _Held:
    """The variables that hold memory, and the sum for each kind."""

    def __init__(self, kind: Callable[[str], str]) -> None:
        self.kind = kind
        self.bytes: dict[str, int] = {}
        self.total = dict.fromkeys(KINDS, 0)

    def put(self, name: str, n: int) -> None:
        self.total[self.kind(name)] += n - self.bytes.get(name, 0)
        self.bytes[name] = n

    def drop(self, name: str) -> None:
        if name in self.bytes:
            self.total[self.kind(name)] -= self.bytes.pop(name)


def timeline(step: Step, sizes: Sizes) -> tuple[tuple[Point, ...], Peak]:
    """The live bytes at every op of a step, in program order, and the peak. Linear in the size of
    the program.
    """
    block = replace(step.desc.blocks[0], ops=step.ops)
    keep = {*step.reads, *step.writes, *step.feeds, *step.fetches}
    kind, inside = kinds(step), _inner_peaks(step, sizes)
    points = []
    for at, (op, held) in enumerate(_run(block, step.desc, sizes, _holding(sizes, kind), keep)):
        own = max((inside.get(idx, 0) for idx in op.blocks), default=0)
        points.append(
            Point(
                at,
                op.type,
                op.loc,
                {**held.total, "activations": held.total["activations"] + own},
                own,
            )
        )
    top = max(points, key=lambda p: p.bytes)
    again = enumerate(_run(block, step.desc, sizes, _holding(sizes, kind), keep))
    held = next(held for at, (_, held) in again if at == top.index)
    lines = _lines(step)
    alive = [Alive(name, n, kind(name), lines.get(name)) for name, n in held.bytes.items()]
    alive.sort(key=lambda a: (-a.bytes, a.name))
    return tuple(points), Peak(top.index, top.op, top.line, top.by_kind, top.inside, tuple(alive))


def _holding(sizes: Sizes, kind: Callable[[str], str]) -> _Held:
    held = _Held(kind)
    for name, n in sizes.given.items():
        held.put(name, n)
    return held


def _run(
    block: BlockDesc, desc: ProgramDesc, sizes: Sizes, held: _Held, keep: Collection[str]
) -> Iterator[tuple[OpDesc, _Held]]:
    """Every op with the variables held while it runs (one object, which is updated)."""
    live = walk.liveness(block, keep, desc)
    for op, dies, dead in zip(block.ops, live.dies, live.dead, strict=True):
        written = sizes.written.get(op.uid, {})
        for name, n in written.items():
            held.put(name, max(n, held.bytes.get(name, 0)))
        yield op, held
        for name, n in written.items():
            held.put(name, n)
        for name in (*dies, *dead):
            held.drop(name)


def _inner_peaks(step: Step, sizes: Sizes) -> dict[int, int]:
    """Sub-block -> the maximum of the bytes of its own variables and of the blocks below it."""
    desc = step.desc
    found: dict[int, int] = {}
    for idx in reversed(walk.nested(desc, [i for op in step.ops for i in op.blocks])):
        block = desc.blocks[idx]
        own = Sizes(
            {},
            {
                op.uid: {n: b for n, b in sizes.written.get(op.uid, {}).items() if n in block.vars}
                for op in block.ops
            },
        )
        peak = 0
        for op, held in _run(block, desc, own, _Held(lambda _: "activations"), ()):
            below = max((found.get(ref, 0) for ref in op.blocks), default=0)
            peak = max(peak, held.total["activations"] + below)
        found[idx] = peak
    return found


def kinds(step: Step) -> Callable[[str], str]:
    """Variable of block 0 -> one of KINDS."""
    vars = step.desc.blocks[0].vars
    updated: set[str] = set()
    params = {name for name, var in vars.items() if var.is_parameter}
    backward: set[str] = set()
    for op in step.ops:
        role = edit.role(op)
        if role & (OpRole.Optimize | OpRole.LRSched):
            updated.update(op.reads, op.writes)
            params.update(op.input("Param"))
        if role & (OpRole.Backward | OpRole.Optimize):
            backward.update(op.writes)

    def kind(name: str) -> str:
        var = vars.get(name)
        if var is not None and var.persistable:
            return "optimizer state" if name in updated and name not in params else "parameters"
        if name in step.feeds:
            return "feeds"
        return "gradients" if "@GRAD" in name or name in backward else "activations"

    return kind


def _lines(step: Step) -> dict[str, str | None]:
    """Name -> the user's line of the first op that mentions it: its writer, unless it has a value
    from the start.
    """
    first: dict[str, str | None] = {}
    for op in step.ops:
        for name in (
            *walk.reads_with_subblocks(step.desc, op),
            *walk.writes_with_subblocks(step.desc, op),
        ):
            first.setdefault(name, op.loc)
    return first
