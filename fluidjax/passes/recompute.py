"""Recomputation of forward values in the backward pass instead of storing them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from typing import ClassVar

from ..base.components import components
from ..errors import FluidTypeError, FluidValueError, near
from ..ir import edit
from ..ir.desc import EMPTY, FrozenMap, OpDesc, ProgramDesc
from ..ir.recomputed import SUFFIX, segment
from ..ops.catalog import REGISTRY, traits
from ..ops.traits import Runs
from .base import Note, Params, Pass, Rewrite, did, register
from .lifetimes import guarded, is_fed


@register
@dataclass(frozen=True)
class Recompute(Pass):
    """Recompute values of the forward pass when the backward pass needs them, instead of storing
    them.

    checkpoints: names of stored values; they cut the forward pass into segments. A segment's values
    that only the backward pass reads are not stored: before the first gradient op that reads such a
    value, the ops that make it are repeated, on ``x.subprog_k`` in place of ``x``, where k counts
    in the order of the backward pass. Unconnected parts of a segment become several segments. kept:
    names of values that are also stored, without a cut. heavy=False: heavy ops (convolutions,
    products, look-ups; ops/traits.py) are not repeated; their results are stored.

    The results of a run do not change: a recomputed random op has the same random numbers, and a
    recomputed batch_norm does not update its averages. Feeds, fetches, persistable variables, and
    results of ops that must not run twice are stored; such ops have a block or a side effect, are
    collectives, or overwrite their inputs.
    """

    name: ClassVar[str] = "recompute"
    checkpoints: tuple[str, ...] = ()
    heavy: bool = True
    kept: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for what, names in (("checkpoints", self.checkpoints), ("kept", self.kept)):
            if not isinstance(names, tuple) or not all(isinstance(n, str) for n in names):
                raise FluidTypeError(f"{what} is a tuple of variable names, not {names!r}")
        if not isinstance(self.heavy, bool):
            raise FluidTypeError(f"heavy is True or False, not {self.heavy!r}")

    def rewrite(self, desc: ProgramDesc, params: Params, keep: frozenset[str]) -> Rewrite:
        for name in (*self.checkpoints, *self.kept):
            if name not in desc.blocks[0].vars:
                raise FluidValueError(
                    f"there is no variable {name!r} to keep in the"
                    f" program{near(name, desc.blocks[0].vars)}"
                )
        forward = Forward(desc, keep, self.heavy)
        if (why := forward.refusal()) is not None:
            return Rewrite(desc, notes=(Note("the program", why, refused=True),))
        new, segments = forward.written(self.checkpoints, self.kept)
        return Rewrite(new, notes=(*map(_said, segments), *forward.notes))


@dataclass(frozen=True)
class Segment:
    """Ops to recompute, their results that are not stored, and the position of the op before which
    they run.
    """

    ops: tuple[OpDesc, ...]
    names: tuple[str, ...]
    at: int


@dataclass
class Forward:
    """The forward ops of block 0, and their values that need not be stored. kept: names that are
    always stored.
    """

    desc: ProgramDesc
    kept: Set[str]
    heavy: bool = True

    def __post_init__(self) -> None:
        block = self.desc.blocks[0]
        left, self.notes = guarded(self.desc)
        self.kept = {
            *self.kept,
            *left,
            *(n for n, v in block.vars.items() if v.persistable or is_fed(v)),
        }
        self.first = next(
            (i for i, op in enumerate(block.ops) if edit.role(op) & edit.BACKWARD), len(block.ops)
        )
        self.ops = [op for op in block.ops[: self.first] if op.type not in ("feed", "fetch")]
        self.writers: dict[str, list[int]] = defaultdict(list)
        self.readers: dict[str, list[int]] = defaultdict(list)
        for i, op in enumerate(block.ops):
            for n in op.reads:
                self.readers[n].append(i)
            for n in op.writes:
                self.writers[n].append(i)
        self.position = {op.uid: i for i, op in enumerate(block.ops)}
        self._why: dict[int, str | None] = {}

    def cut(self, checkpoints: Iterable[str]) -> list[list[OpDesc]]:
        """The forward ops, cut after every op that writes a checkpoint."""
        wanted = set(checkpoints)
        parts: list[list[OpDesc]] = [[]]
        for op in self.ops:
            parts[-1].append(op)
            if wanted.intersection(op.writes):
                parts.append([])
        return [part for part in parts if part]

    def refusal(self) -> str | None:
        """Why nothing in the program can be recomputed; None if something can."""
        if any(segment(op) is not None for op in self.desc.blocks[0].ops):
            return "it computes values again already"
        if (shared := self._shared()) is not None:
            return (
                f"its variables share names ({shared!r}), as memory_optimize lets them; compute"
                " again first, then share"
            )
        return None

    def _shared(self) -> str | None:
        """A name to which a forward and a backward op, or two forward ops, write different values;
        None if there is none.
        """
        ops = self.desc.blocks[0].ops
        for name, at in self.writers.items():
            if (
                at[0] < self.first
                and not self._persistable(name)
                and any(name not in set(ops[i].reads) for i in at[1:])
            ):
                return name
        return None

    def again(self, op: OpDesc) -> str | None:
        """Why an op must not run twice; None if it may."""
        if op.uid not in self._why:
            self._why[op.uid] = self._once(op)
        return self._why[op.uid]

    def _once(self, op: OpDesc) -> str | None:
        if op.blocks or op.type not in REGISTRY:
            return "it has a block" if op.blocks else "nothing is known of it"
        its = traits(op.type)
        if its.runs is not Runs.STEP or its.ranks.together or its.hosted is not None:
            return "it does more than to compute"
        if not self.heavy and its.heavy:
            return "it takes long"
        # moving statistics do not affect an op's other outputs; the second time they are dropped
        moved = (
            set()
            if its.unchanged is None
            else {n for slot in its.unchanged.outs for n in op.output(slot)}
        )
        for n in op.writes:
            if n not in moved and (self._persistable(n) or len(self.writers.get(n, ())) > 1):
                return f"it writes {n!r}, which is kept or written again"
        at = self.position[op.uid]
        for n in op.reads:
            if n not in moved and not all(
                self._updates(i) for i in self.writers.get(n, ()) if i >= at
            ):
                return f"it reads {n!r}, which is written again"
        return None

    def _persistable(self, name: str) -> bool:
        var = self.desc.blocks[0].vars.get(name)
        return var is None or var.persistable

    def _updates(self, at: int) -> bool:
        """Whether the op at this position comes after all gradients."""
        op = self.desc.blocks[0].ops[at]
        return at >= self.first and bool(edit.role(op) & (edit.OPTIMIZE | edit.LRSCHED))

    def _forgettable(self, name: str, end: int) -> bool:
        """Whether only ops before `end` and the backward pass read a value."""
        ops = self.desc.blocks[0].ops
        return name not in self.kept and all(
            i < end or edit.role(ops[i]) & edit.BACKWARD for i in self.readers.get(name, ())
        )

    def free(self, ops: Sequence[OpDesc], kept: Set[str]) -> dict[str, OpDesc]:
        """These ops' values that need not be stored, and the op that computes each."""
        end = max(self.position[op.uid] for op in ops) + 1
        able = (op for op in ops if self.again(op) is None)
        return {
            n: op for op in able for n in op.writes if n not in kept and self._forgettable(n, end)
        }

    def backward_reads(self, name: str) -> bool:
        """Whether the backward pass needs a value."""
        return any(
            edit.role(self.desc.blocks[0].ops[i]) & edit.BACKWARD
            for i in self.readers.get(name, ())
        )

    def segments(self, ops: Sequence[OpDesc], kept: Set[str]) -> list[Segment]:
        """The ops to recompute: ops connected by values that are not stored form one segment."""
        free = self.free(ops, kept)
        needed = [n for n in free if self.backward_reads(n)]
        names: dict[str, int] = {}  # in the order in which they are found
        while needed:  # and their inputs, if these are not stored either
            n = needed.pop()
            if n not in names:
                names[n] = len(names)
                needed += [r for r in free[n].reads if r in free]
        again = [op for op in ops if names.keys() & set(op.writes)]
        meets = [names.keys() & {*op.reads, *op.writes} for op in again]
        found = []
        for members in sorted(components(meets), key=lambda part: part[-1]):
            mentioned = set[str]().union(*(meets[i] for i in members))
            at = min(i for n in mentioned for i in self.readers.get(n, ()) if i >= self.first)
            ordered = tuple(sorted(mentioned, key=names.__getitem__))
            found.append(Segment(tuple(again[i] for i in members), ordered, at))
        return found

    def written(
        self, checkpoints: Iterable[str], kept: Iterable[str] = ()
    ) -> tuple[ProgramDesc, list[Segment]]:
        """The program with recomputation by the pass's options, and the segments in order."""
        checkpoints = tuple(checkpoints)
        keeps = self.kept | {*checkpoints, *kept}
        found = [s for ops in self.cut(checkpoints) for s in self.segments(ops, keeps)]
        found.sort(key=lambda s: s.at)
        return _written(self.desc, found), found


def _written(desc: ProgramDesc, segments: Sequence[Segment]) -> ProgramDesc:
    """The program with the ops of these segments once more."""
    block, uid = desc.blocks[0], edit.max_uid(desc)
    inserted: dict[int, list[OpDesc]] = defaultdict(list)
    renamed: dict[str, str] = {}
    made = []
    for k, part in enumerate(segments):
        renamed.update({n: f"{n}{SUFFIX}{k}" for n in part.names})
        for op in part.ops:
            uid += 1
            # a batch_norm's second update of its averages is dropped
            own = {n: f"{n}{SUFFIX}{k}" for n in op.writes}
            moved = edit.rename_op(op, {n: renamed[n] for n in op.reads if n in renamed})
            outputs = FrozenMap(
                {s: tuple(own.get(n, n) for n in names) for s, names in op.outputs.items()}
            )
            attrs = FrozenMap({**op.attrs, "op_role": edit.BACKWARD})
            inserted[part.at].append(replace(moved, uid=uid, outputs=outputs, attrs=attrs))
            made += [(block.vars[n], new) for n, new in own.items() if n != EMPTY]
    ops: list[OpDesc] = []
    for i, op in enumerate(block.ops):
        ops += inserted.get(i, ())
        wanted = (
            {n: renamed[n] for n in op.reads if n in renamed}
            if edit.role(op) & edit.BACKWARD
            else {}
        )
        ops.append(replace(op, inputs=edit.rename_op(op, wanted).inputs) if wanted else op)
    vars = (
        replace(v, name=new, persistable=False, is_parameter=False, stop_gradient=True)
        for v, new in made
    )
    return edit.add_vars(edit.replace_ops(desc, 0, ops), 0, vars)


def _said(part: Segment) -> Note:
    return did(
        part.ops[0],
        f"{len(part.ops)} ops from here on are computed again for {', '.join(part.names)}",
    )
