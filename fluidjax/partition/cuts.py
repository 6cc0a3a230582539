"""Divides a program that cannot be traced as one step into compiled segments and ops that Python
runs between them.

Tracing finds the ops that cannot be traced: such an op raises errors.NotOneStep. From then on the
host runs it. If the op computes on arrays, a segment begins with it instead, so that the sizes of
its inputs are known. The host also runs ops with such an op in a block, ops that keep or read its
step scopes, and ops that handle arrays between segments. Everything else stays in segments that are
as large as possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..ir import walk
from ..ir.desc import EMPTY, OpDesc
from ..lower.step import Step, carried
from ..ops.registry import GRAD, lookup, traits
from ..ops.traits import Runs


@dataclass(frozen=True, eq=False)
class Piece:
    """Ops of a block that are compiled together. reads: the variables that they read from earlier
    ops; results: the variables that later ops read.
    """

    ops: tuple[OpDesc, ...]
    reads: tuple[str, ...]
    results: tuple[str, ...]


Part = Piece | OpDesc


def by_python(op: OpDesc) -> bool:
    """Whether the host can run the op: a control op, or an op with the trait `hosted`."""
    return lookup(op.type).fn is None or traits(op.type).hosted is not None


class Cuts:
    """The partition of a program. reasons: the uids of ops that cannot be traced in their place ->
    the reason.
    """

    def __init__(self, step: Step, reasons: Mapping[int, str]) -> None:
        self.step, self.desc, self.reasons = step, step.desc, dict(reasons)
        self._parts: dict[int, list[Part]] = {}

    def blocks(self) -> dict[int, Sequence[OpDesc]]:
        """The ops that run, by the index of their block."""
        below = walk.nested(self.desc, [i for op in self.step.ops for i in op.blocks])
        return {0: self.step.ops, **{i: self.desc.blocks[i].ops for i in below}}

    @cached_property
    def hosted(self) -> frozenset[int]:
        """The uids of the ops that the host runs."""
        found = {
            op.uid
            for ops in self.blocks().values()
            for op in ops
            if op.uid in self.reasons and by_python(op)
        }
        kinds = {n: v.kind for block in self.desc.blocks for n, v in block.vars.items()}
        before = -1
        while before < len(found):
            before = len(found)
            scopes = {
                n
                for op in self._every
                if op.uid in found
                for n in (*op.reads, *op.writes)
                if kinds.get(n) == "STEP_SCOPES"
            }
            branches = {n for op in self._every if op.uid in found and op.blocks for n in op.writes}
            for op in self._every:
                inside = {o.uid for o in walk.below(self.desc, [op])}
                made = (
                    not op.blocks
                    and lookup(op.type).fn is None
                    and not branches.isdisjoint(op.reads)
                )
                if (
                    made
                    or inside & (found | self.reasons.keys())
                    or (op.blocks and not scopes.isdisjoint((*op.reads, *op.writes)))
                ):
                    found.add(op.uid)
        arrays = {n for n, kind in kinds.items() if kind == "LOD_TENSOR_ARRAY"}
        found.update(
            op.uid
            for op in self._every
            if not op.blocks and not arrays.isdisjoint((*op.reads, *op.writes))
        )
        return frozenset(found)

    @cached_property
    def _every(self) -> list[OpDesc]:
        return [op for ops in self.blocks().values() for op in ops]

    @cached_property
    def acting(self) -> frozenset[int]:
        """The uids of the ops with an effect outside of the step, and of the control ops around
        them.
        """
        acts = {op.uid for op in self._every if traits(op.type).runs is Runs.EFFECT}
        hold = {
            op.uid for op in self._every if any(o.uid in acts for o in walk.below(self.desc, [op]))
        }
        return frozenset(acts | hold)

    @cached_property
    def varying(self) -> frozenset[str]:
        """Variables that loops driven by the host write, so their values differ between
        iterations.
        """
        loops = [op for op in self._every if op.uid in self.hosted and op.blocks]
        return frozenset(n for op in walk.below(self.desc, loops) for n in op.writes)

    @cached_property
    def _readers(self) -> dict[str, set[int]]:
        found: dict[str, set[int]] = {}
        for op in self._every:
            for name in (
                *op.reads,
                *(n for names in walk.hidden_names(op).values() for n in names),
            ):
                found.setdefault(name, set()).add(op.uid)
        return found

    def parts(self, idx: int) -> list[Part]:
        """The parts of a block, in order."""
        if idx not in self._parts:
            self._parts[idx] = self.divided(
                idx, self.step.ops if idx == 0 else self.desc.blocks[idx].ops
            )
        return self._parts[idx]

    def divided(self, idx: int, ops: Iterable[OpDesc]) -> list[Part]:
        """The ops of a block as parts."""
        found: list[Part] = []
        run: list[OpDesc] = []

        def close() -> None:
            if run:
                found.append(self._piece(idx, tuple(run)))
                run.clear()

        for op in ops:
            if traits(op.type).runs is Runs.HOST:
                continue
            if op.uid in self.hosted:
                close()
                found.append(op)
                continue
            if op.uid in self.reasons:
                close()
            run.append(op)
        close()
        return found

    def refine(self, uid: int, why: str) -> bool:
        """Cut at one more op. False if there is a cut already."""
        if uid in self.reasons:
            return False
        self.reasons[uid] = why
        self.__dict__.pop("hosted", None)
        self.__dict__.pop("varying", None)
        self._parts.clear()
        return True

    def _piece(self, idx: int, ops: tuple[OpDesc, ...]) -> Piece:
        own = {op.uid for op in (*ops, *walk.below(self.desc, ops))}
        first, written = walk.uses(self.desc, ops, carried)
        local = self.desc.blocks[idx].vars if idx else {}
        kept = set(self.step.fetches) | set(self.step.writes)
        # the op of a gradient block reads these variables by name
        if idx and self.desc.blocks[idx].forward >= 0:
            kept.update(n for n in written if n.endswith(GRAD))
        results = [n for n in written if n != EMPTY and (
            n in kept or n in first or (idx and n not in local) or not self._readers.get(n, set()) <= own
        )]  # fmt: skip
        return Piece(ops, tuple(n for n in first if n != EMPTY), tuple(results))
