"""Runs a program in segments: Python runs the parts in order and drives the loops. The scope
changes only at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ..base.flags import flag
from ..base.interrupts import uninterrupted
from ..compiling.compilations import Compilation, log
from ..errors import NotOneStep
from ..ir.desc import OpDesc
from ..lod_tensor import Lod
from ..lower.checks import Objections
from ..lower.control import ControlCall
from ..lower.env import Context, Env, read_slots, write_slots
from ..lower.nan_check import refuse_left
from ..lower.step import Step, run_op
from ..ops.checking import WORD
from ..ops.described import described
from ..ops.missing import MISSING, assigned
from ..ops.ragged import Ragged, trimmed
from ..ops.registry import lookup, traits
from ..state.scope import Scope
from .cuts import Cuts, Part, Piece
from .segments import Segment


@dataclass(frozen=True)
class HostedCall(ControlCall):
    """One run of a control op by the host. path: the iterations of the loops around it."""

    path: tuple[int, ...] = ()

    @property
    def hosted(self) -> bool:
        return True

    def exact(self, name: str, value: Any) -> Any:
        return super().exact(
            name, trimmed(value) if isinstance(value, Ragged) and value.padded else value
        )

    def run_block(self, idx: int, env: Env, iteration: Any = None) -> None:
        self.runner(idx, env, self.path if iteration is None else (*self.path, int(iteration)))  # type: ignore[arg-type]


class CutStep:
    """A step in segments. It finds the cuts as it runs."""

    def __init__(self, step: Step, made: list[Compilation] | None = None) -> None:
        """made: the list that compilation reports are added to."""
        self.step, self.cuts, self.objections = step, Cuts(step, {}), Objections()
        self._made: list[Compilation] = [] if made is None else made
        self._segments: dict[Piece, Segment] = {}
        self._by_ops: dict[tuple[int, ...], Segment] = {}
        # for a program with open sizes: its steps in segments, by the sizes fed so far
        self._at_sizes: dict[Step, CutStep] = {}

    def refine(self, why: NotOneStep) -> bool:
        """Cut at the op that raised. False if nothing more can be cut there."""
        first = next(iter(str(why).splitlines()), "")
        return why.uid is not None and self.cuts.refine(why.uid, first)

    def run(
        self, state: Mapping[str, Any], feed: Mapping[str, Any], key: Any
    ) -> tuple[dict[str, Any], list[Any]]:
        """The written variables and the fetches of one step. Raises the errors that its ops
        detect.
        """
        closed = self.step.closed(state, feed)
        if closed is self.step:
            return self._once(state, feed, key)
        if closed not in self._at_sizes:
            self._at_sizes[closed] = self.for_step(closed)
        return self._at_sizes[closed]._once(state, feed, key)

    def for_step(self, step: Step) -> CutStep:
        """The same partition for another step."""
        return CutStep(step, self._made)

    def _once(
        self, state: Mapping[str, Any], feed: Mapping[str, Any], key: Any
    ) -> tuple[dict[str, Any], list[Any]]:
        with jax.enable_x64(True):
            while True:
                run = self.begin(key)
                env = self.step.enter(state, feed)
                try:
                    run.block(0, env, ())
                    written = {n for n in self.step.writes if n in env}
                    env.update(
                        {
                            n: trimmed(v)
                            for n in written
                            if isinstance(v := env[n], Ragged) and v.padded
                        }
                    )
                    changed, values = self.step.leave(env, run.context)
                    changed |= {
                        n: v for n in changed if isinstance(v := env[n], Ragged) and not v.bare
                    }
                except NotOneStep as why:
                    if not self.refine(why):
                        raise
                    continue
                self.objections.refuse(env[WORD])
                return changed, values

    def begin(self, key: Any) -> PartitionRun:
        """Begin one run at its first op."""
        return PartitionRun(self, key)

    def segment(self, piece: Piece) -> Segment:
        """The compiled segment; an equal one of an earlier partition is reused."""
        found = self._segments.get(piece)
        if found is None:
            key = tuple(op.uid for op in piece.ops)
            found = self._by_ops.get(key)
            new = Segment(piece, self.cuts, self.objections, self._compiled)
            if found is None or not found.serves(new):
                found = self._by_ops[key] = new
            self._segments[piece] = found
        return found

    def _compiled(self, made: Compilation) -> None:
        self._made.append(made)
        log(made)


class PartitionRun:
    """One run of a step in segments."""

    def __init__(self, cut: CutStep, key: Any) -> None:
        self._cut, self._key, self._acted = cut, key, False
        self.context: Context = cut.step.context(key, cut.objections)

    def block(self, idx: int, env: Env, path: tuple[int, ...]) -> None:
        self._run_parts(idx, self._cut.cuts.parts(idx), env, path)

    def _run_parts(self, idx: int, parts: Sequence[Part], env: Env, path: tuple[int, ...]) -> None:
        """Run parts of a block. If one of them finds a further cut, the remaining parts are divided
        anew.
        """
        cuts = self._cut.cuts
        for at, part in enumerate(parts):
            known = len(cuts.reasons)
            if isinstance(part, Piece):
                self._piece(idx, part, env, path)
            else:
                self._hosted(part, env, path)
            if len(cuts.reasons) > known:
                left = [
                    op for p in parts[at + 1 :] for op in (p.ops if isinstance(p, Piece) else (p,))
                ]
                return self._run_parts(idx, cuts.divided(idx, left), env, path)

    def _piece(self, idx: int, piece: Piece, env: Env, path: tuple[int, ...]) -> None:
        """Run a segment. If the segment cannot be traced, the program is cut anew; nothing of the
        segment has run by then.

        The run then starts again, because earlier segments may have dropped values that the new
        ones need. It goes on from here only if it already had an effect outside (a print, a call of
        a Python function).
        """
        try:
            self._cut.segment(piece).run(env, self._key, path)
            self._acted = self._acted or not self._cut.cuts.acting.isdisjoint(
                op.uid for op in piece.ops
            )
            if flag("FLAGS_check_nan_inf"):
                refuse_left(piece.ops, piece.results, env)
        except NotOneStep as why:
            if not self._acted or not self._cut.refine(why):
                raise
            self._run_parts(idx, self._cut.cuts.divided(idx, piece.ops), env, path)

    def _hosted(self, op: OpDesc, env: Env, path: tuple[int, ...]) -> None:
        self._acted = self._acted or (not op.blocks and op.uid in self._cut.cuts.acting)
        definition = lookup(op.type)
        lower, hosted = definition.control.lower, definition.traits.hosted
        if lower is None and hosted is None:  # it sums arrays
            run_op(op, env, self.context, ())
            return
        with described(op):
            if lower is None:
                values = read_slots(op, definition, env)
                write_slots(op, definition, hosted(values, definition.arguments(op.attrs)), env)  # type: ignore[misc]
                return
            lower(HostedCall(op, env, self.context, self.block, path))  # type: ignore[arg-type]
        if MISSING in env and not op.blocks:
            assigned(env, op.writes)


def store(scope: Scope, changed: Mapping[str, Any]) -> None:
    """Store the written variables in the scope, all or none, between two steps of other
    programs.
    """
    arrays = {n: v.rows if isinstance(v, Ragged) else v for n, v in changed.items()}
    values = {n: v if isinstance(v, jax.Array) else np.asarray(v) for n, v in arrays.items()}
    lods = {
        n: (
            tuple(tuple(np.asarray(level).tolist()) for level in v.offsets)
            if isinstance(v, Ragged)
            else ()
        )
        for n, v in changed.items()
    }

    def put() -> None:
        for name, value in values.items():
            scope.persistable(name).store(value, lods[name])

    with uninterrupted():
        scope.between_steps(values, put, changing=True)


def with_lod(step: Step, scope: Scope, state: dict[str, Any]) -> dict[str, Any]:
    """The state with the LoD of variables that an op on the host reads (trait `hosted`)."""
    read = {n for op in step.ops if traits(op.type).hosted is not None for n in op.reads}
    lods = {
        n: var.lod
        for n in read & state.keys()
        if (var := scope.find_var(n)) is not None and var.lod
    }
    return {**state, **{n: _ragged(state[n], lod) for n, lod in lods.items()}}


def _ragged(rows: Any, lod: Lod) -> Ragged:
    offsets = tuple(np.array(level, np.int32) for level in lod)
    return Ragged(
        rows,
        offsets,
        tuple(int(np.diff(level).max(initial=0)) for level in offsets),
        ("state", lod),
    )
