"""A program that is cut, run: Python goes through its parts and drives its loops, and the scope changes at the end alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ..base.flags import flag
from ..base.interrupts import uninterrupted
from ..errors import NotOneStep
from ..ir.desc import OpDesc
from ..lower.checks import Objections
from ..lower.control import ControlCall
from ..lower.cuts import Cuts, Piece
from ..lower.env import Context, Env
from ..lower.step import Step, run_op
from ..lower.told import told
from ..ops.checking import WORD
from ..ops.ragged import Ragged, trimmed
from ..ops.registry import lookup
from ..ops.unmade import UNMADE, made_anew
from .nan_check import refuse_left
from .scope import Scope
from .segments import Segment


@dataclass(frozen=True)
class HostedCall(ControlCall):
    """One run of a control op by the host. path: the iterations of the loops around it."""

    path: tuple[int, ...] = ()

    @property
    def hosted(self) -> bool:
        return True

    def exact(self, name: str, value: Any) -> Any:
        return super().exact(name, trimmed(value) if isinstance(value, Ragged) and value.padded else value)

    def run_block(self, idx: int, env: Env, iteration: Any = None) -> None:
        self.runner(idx, env, self.path if iteration is None else (*self.path, int(iteration)))  # type: ignore[arg-type]


class CutStep:
    """A step in segments. It finds out where to cut as it goes."""

    def __init__(self, step: Step) -> None:
        self.step, self.cuts, self.objections = step, Cuts(step, {}), Objections()
        self._segments: dict[Piece, Segment] = {}
        self._by_ops: dict[tuple[int, ...], Segment] = {}

    def refine(self, why: NotOneStep) -> bool:
        """Cut at the op that objects. False where nothing more can be cut there."""
        first = next(iter(str(why).splitlines()), "")
        return why.uid is not None and self.cuts.refine(why.uid, first)

    def run(self, state: Mapping[str, Any], feed: Mapping[str, Any], key: Any) -> tuple[dict[str, Any], list[Any]]:
        """The written variables and the fetches of one step. Raises what its ops object to."""
        with jax.enable_x64(True):
            while True:
                run = _Run(self, key)
                env = self.step.enter(state, feed)
                try:
                    run.block(0, env, ())
                    written = {n for n in self.step.writes if n in env}
                    env.update({n: trimmed(v) for n in written if isinstance(v := env[n], Ragged) and v.padded})
                    changed, values = self.step.leave(env, run.context)
                except NotOneStep as why:
                    if not self.refine(why):
                        raise
                    continue
                self.objections.refuse(env[WORD])
                return changed, values

    def segment(self, piece: Piece) -> Segment:
        """The compiled piece; an equal one of an earlier division serves too."""
        found = self._segments.get(piece)
        if found is None:
            key = tuple(op.uid for op in piece.ops)
            found = self._by_ops.get(key)
            new = Segment(piece, self.cuts, self.objections)
            if found is None or not found.serves(new):
                found = self._by_ops[key] = new
            self._segments[piece] = found
        return found


class _Run:
    """One run of a step that is cut."""

    def __init__(self, cut: CutStep, key: Any) -> None:
        self._cut, self._key = cut, key
        self.context: Context = cut.step.context(key, cut.objections)

    def block(self, idx: int, env: Env, path: tuple[int, ...]) -> None:
        for part in self._cut.cuts.parts(idx):
            if isinstance(part, Piece):
                self._piece(idx, part, env, path)
            else:
                self._hosted(part, env, path)

    def _piece(self, idx: int, piece: Piece, env: Env, path: tuple[int, ...]) -> None:
        """Run a segment; one that cannot be traced is divided, and nothing of it has run before."""
        try:
            self._cut.segment(piece).run(env, self._key, path)
            if flag("FLAGS_check_nan_inf"):
                refuse_left(piece.ops, piece.results, env)
        except NotOneStep as why:
            if not self._cut.refine(why):
                raise
            for part in self._cut.cuts.divided(idx, piece.ops):
                if isinstance(part, Piece):
                    self._piece(idx, part, env, path)
                else:
                    self._hosted(part, env, path)

    def _hosted(self, op: OpDesc, env: Env, path: tuple[int, ...]) -> None:
        lower = lookup(op.type).control.lower
        if lower is None:  # it adds arrays up
            run_op(op, env, self.context, ())
            return
        with told(op):
            lower(HostedCall(op, env, self.context, self.block, path))  # type: ignore[arg-type]
        if UNMADE in env and not op.blocks:
            made_anew(env, op.writes)


def store(scope: Scope, changed: Mapping[str, Any]) -> None:
    """The written variables become what the scope shows, all or none."""
    values = {n: v if isinstance(v, jax.Array) else np.asarray(v) for n, v in changed.items()}
    with uninterrupted():
        for name, value in values.items():
            (scope.find_var(name) or scope.var(name)).value = value
