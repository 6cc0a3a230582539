"""Ways of computing a training step in less memory: which values each recomputes, and estimates of
the added time and the memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import prod

from ..ir import edit, walk
from ..ir.desc import OpDesc, ProgramDesc, VarDesc
from ..ir.recomputed import HOST
from ..ops.catalog import traits
from ..ops.products import FLOPS_A_SECOND, flops, flops_of_jaxs
from ..passes.base import Pass, run
from ..passes.lifetimes import is_fed, size
from ..passes.offload import Offload, waiting
from ..passes.recompute import Forward, Recompute
from .kept import Choice

# single ops of the forward pass that are recomputed by themselves
PARTS = (1, 2, 3, 4, 6, 8, 12, 16, 24)
BYTES_A_SECOND = 4e9  # that ops besides convolutions and products read and write
FUSED_BYTES_A_SECOND = 4e10  # of small ops, which XLA fuses into their readers
# times the seconds: XLA's convolutions with groups of channels (28 ms for 19 million operations)
GROUPED = 30
PRICES = tuple(1e-12 * 4**i for i in range(11))  # prices: seconds of computation for a byte
MOST_TOLD = 3
SHARES = (0.25, 0.5, 1.0)  # shares of the values that may wait on the host
HOST_BYTES_A_SECOND = 2e10  # each way between a device and its host
# the number of ways between two that differ by so much in memory or time
FAR, DEARER, BETWEEN = 0.85, 2.0, 5


@dataclass(frozen=True)
class Way:
    """A program that computes the same. again: ops that it computes twice. work: the share of
    convolutions and products among them in the work of the step. seconds: the estimated time of
    computing them. estimate: the most live bytes by declared shapes, besides persistable and fed
    variables. made_by: the pass that makes it; None if nothing is recomputed. offload: values that
    wait on the host.
    """

    desc: ProgramDesc
    again: int
    work: float
    seconds: float
    estimate: int
    made_by: Recompute | None = None
    offload: Offload | None = None

    @property
    def made(self) -> tuple[Pass, ...]:
        """The passes that make it from the program."""
        return tuple(p for p in (self.made_by, self.offload) if p is not None)

    def __str__(self) -> str:
        parts = (
            [f"{self.again} ops twice ({self.work:+.0%} of convolutions and products)"]
            if self.again
            else []
        )
        if self.offload is not None:
            parts.append(f"{len(self.offload.names)} values on the host")
        return ", ".join(parts) or "as it is"


class Ways:
    """The ways of a program. kept: names of values that must be kept; rows: the number that unknown
    sizes count as.
    """

    def __init__(self, desc: ProgramDesc, kept: frozenset[str], rows: int) -> None:
        self.desc, self.rows = desc, rows
        self.forward = Forward(desc, kept)
        self.vars = desc.blocks[0].vars
        self.seconds = {op.uid: self._seconds(op) for op in self.forward.ops}

    @cached_property
    def why_none(self) -> str | None:
        """Why nothing of the program is recomputed; None if something is."""
        if (why := self.forward.refusal()) is not None:
            return why
        if any(way.again for way in self.found):
            return None
        reasons = {
            why: op for op in self.forward.ops[::-1] if (why := self.forward.again(op)) is not None
        }
        refused = ", ".join(
            f"op '{op.type}'{f' ({op.loc})' if op.loc else ''}: {why}"
            for why, op in list(reasons.items())[:MOST_TOLD]
        )
        return "none of its values takes less memory for it" + (
            f"; not computed twice is {refused}" if refused else ""
        )

    @cached_property
    def found(self) -> list[Way]:
        """The unchanged program; then ways with more and more time and less and less memory, by
        estimates; last, of the smallest ways, the one with the fewest bytes waiting for the
        backward pass.
        """
        plain = Way(self.desc, 0, 0.0, 0.0, self.estimate(self.desc))
        if self.forward.refusal() is not None:
            return [plain]
        ways = list(self._all())
        found = _pareto_front([plain, *ways])
        found = _pareto_front(
            [*found, *(way for pair in pairwise(found) for way in self._mixed_ways(*pair))]
        )
        least = min(
            ways,
            key=lambda way: (way.estimate, self._waiting_bytes(way), way.seconds),
            default=plain,
        )
        smaller = found[-1].again and least.seconds > found[-1].seconds
        return [*found, least] if smaller else found

    def _waiting_bytes(self, way: Way) -> int:
        """The bytes that wait for the backward pass."""
        made = way.made_by
        return sum(map(self._bytes, {*made.checkpoints, *made.kept})) if made is not None else 0

    def offloading(self) -> list[Way]:
        """The smallest way, with more and more of its kept values on the host, the largest values
        first.
        """
        if self.forward.refusal() is not None:
            return []
        way = self.found[-1]
        can = sorted(
            (n for n in waiting(way.desc, frozenset(self.forward.kept)) if self._bytes(n)),
            key=self._bytes,
            reverse=True,
        )
        found: list[Way] = []
        for share in SHARES:
            names = tuple(can[: max(1, round(share * len(can)))])
            if names and names not in [w.offload.names for w in found if w.offload is not None]:
                offload = Offload(names)
                desc = run(
                    offload, way.desc, {}, self.forward.kept & way.desc.blocks[0].vars.keys()
                ).desc
                seconds = way.seconds + 2 * sum(map(self._bytes, names)) / HOST_BYTES_A_SECOND
                found.append(
                    replace(
                        way,
                        desc=desc,
                        seconds=seconds,
                        estimate=self.estimate(desc),
                        offload=offload,
                    )
                )
        return found

    def _mixed_ways(self, cheap: Way, small: Way) -> Iterator[Way]:
        """Ways that recompute like `small` in the first part of the net, and like `cheap` in the
        rest. A price alone cannot separate equal layers: it takes all of them or none.
        """
        near = small.estimate > FAR * cheap.estimate and small.seconds < DEARER * cheap.seconds
        if near or small.made_by is None:
            return
        # the unchanged program keeps all
        whole = cheap.made_by or Recompute(kept=tuple(self._choice(()).free))
        for part in range(1, BETWEEN + 1):
            border = len(self.forward.ops) * part // (BETWEEN + 1)
            early = {n for op in self.forward.ops[:border] for n in op.writes}
            cuts, kept = (
                (*(n for n in a if n in early), *(n for n in b if n not in early))
                for a, b in zip(
                    *((w.checkpoints, w.kept) for w in (small.made_by, whole)), strict=True
                )
            )
            yield self._way(cuts, kept)

    def _all(self) -> Iterator[Way]:
        seen: set[tuple[tuple[str, ...], frozenset[str]]] = set()
        for cuts in dict.fromkeys(self._checkpoints(n) for n in PARTS):
            choice = self._choice(cuts)
            for price in PRICES:
                kept = choice.kept(price)
                if (cuts, frozenset(kept)) not in seen:
                    seen.add((cuts, frozenset(kept)))
                    yield self._way(cuts, kept)

    def _choice(self, cuts: tuple[str, ...]) -> Choice:
        forward = self.forward
        keeps = forward.kept | set(cuts)
        free = {n: op for part in forward.cut(cuts) for n, op in forward.free(part, keeps).items()}
        needed = {n for n in free if forward.backward_reads(n)}
        return Choice(forward.ops, free, needed, {n: self._bytes(n) for n in free}, self.seconds)

    def _way(self, cuts: tuple[str, ...], kept: tuple[str, ...]) -> Way:
        desc, segments = self.forward.written(cuts, kept)
        again = [op for s in segments for op in s.ops]
        # a gradient takes twice the work of its forward op
        work = sum(map(self._flops, again)) / (3 * self.work) if self.work else 0.0
        seconds = sum(self.seconds[op.uid] for op in again)
        return Way(
            desc, len(again), work, seconds, self.estimate(desc), Recompute(cuts, True, kept)
        )

    @cached_property
    def work(self) -> float:
        return sum(map(self._flops, self.forward.ops))

    def _flops(self, op: OpDesc) -> float:
        return flops(op, self.vars) or flops_of_jaxs(op, self.vars)

    def _seconds(self, op: OpDesc) -> float:
        moved = sum(self._bytes(n) for n in {*op.reads, *op.writes})
        computed = flops(op, self.vars) * self.rows + flops_of_jaxs(op, self.vars)
        if op.attrs.get("feature_group_count", 1) > 1:
            computed *= GROUPED
        fused = op.type.startswith("jax.") and not traits(op.type).heavy
        return computed / FLOPS_A_SECOND + moved / (
            FUSED_BYTES_A_SECOND if fused else BYTES_A_SECOND
        )

    def estimate(self, desc: ProgramDesc) -> int:
        """The most live bytes, if parameters are updated as soon as their gradients exist."""
        return self.peak(desc)[0]

    def peak(self, desc: ProgramDesc) -> tuple[int, OpDesc | None]:
        """The most live bytes, and the op at which they are live."""
        block = desc.blocks[0]
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        for i, op in enumerate(block.ops):
            updates = edit.role(op) & (edit.OPTIMIZE | edit.LRSCHED)
            reads = tuple(walk.reads_with_subblocks(desc, op) if op.blocks else op.reads)
            writes = tuple(walk.writes_with_subblocks(desc, op) if op.blocks else op.writes)
            at = max((first.get(n, 0) for n in reads), default=i) if updates else i
            for n in writes:
                first.setdefault(n, i)
            for n in (*reads, *writes):
                last[n] = max(at, last.get(n, 0))
        change = [0] * (len(block.ops) + 1)
        for n, i in first.items():
            var = block.vars.get(n)
            if var is not None and _plain(var):
                own = size(var, self.rows)
                change[i] += own
                change[max(last[n], i) + 1] -= own
        now = most = 0
        where: OpDesc | None = None
        for i, n_bytes in enumerate(change[:-1]):  # nothing begins behind the last op
            now += n_bytes
            if now > most:
                most, where = now, block.ops[i]
        return most, where

    def _checkpoints(self, count: int) -> tuple[str, ...]:
        """The values that divide the forward pass into about `count` parts of equal bytes, at its
        narrowest places.
        """
        ops, made = self.forward.ops, [0]
        for op in ops:
            made.append(made[-1] + sum(self._bytes(n) for n in op.writes))
        names: dict[str, None] = {}
        for k in range(1, count):
            middle, reach = made[-1] * k / count, made[-1] / (2 * count)
            near = [i for i in range(1, len(ops)) if abs(made[i] - middle) <= reach]
            if near:
                place = min(near, key=lambda i: (self._width[i], abs(made[i] - middle)))
                names.update(dict.fromkeys(self._across[place]))
        return tuple(names)

    @cached_property
    def _width(self) -> list[int]:
        return [sum(map(self._bytes, names)) for names in self._across]

    @cached_property
    def _across(self) -> list[tuple[str, ...]]:
        """For each forward op, the values that are written before it and read by it or a later
        forward op.
        """
        ops = self.forward.ops
        last = {n: i for i, op in enumerate(ops) for n in op.reads}
        alive: dict[str, None] = {}
        found = []
        for i, op in enumerate(ops):
            found.append(tuple(alive))
            alive.update((n, None) for n in op.writes if n in self.vars and _plain(self.vars[n]))
            alive = {n: None for n in alive if last.get(n, -1) > i}
        return found

    def _bytes(self, name: str) -> int:
        found = self._sizes.get(name)
        if found is None:
            var = self.vars.get(name)
            found = self._sizes[name] = (
                size(var, self.rows) if var is not None and _plain(var) else 0
            )
        return found

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return {}


def _pareto_front(ways: Sequence[Way]) -> list[Way]:
    """The ways than which no other is both faster and smaller, the fastest first."""
    found: list[Way] = []
    for way in sorted(ways, key=lambda w: (w.seconds, w.estimate)):
        if not found or way.estimate < found[-1].estimate:
            found.append(way)
    return found


def _plain(var: VarDesc) -> bool:
    here = not var.persistable and not is_fed(var) and not var.name.endswith(HOST)
    return (
        here and var.kind == "LOD_TENSOR" and var.dtype is not None and prod(var.shape or ()) != 0
    )
