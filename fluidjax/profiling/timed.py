"""Runs a step op by op, each op compiled by itself and timed, while a profile is on."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import jax
import numpy as np

from ..base.flags import flag
from ..errors import NotOneStep
from ..ir import walk
from ..ir.desc import OpDesc
from ..lower.env import Env
from ..lower.nan_check import refuse_left
from ..lower.step import Step
from ..ops.concrete import SMALL
from ..ops.registry import traits
from ..ops.traits import Runs
from ..partition.cuts import Cuts, Part, Piece, by_python
from ..partition.run import CutStep, PartitionRun
from ..partition.segments import Segment
from ..runtime.compiled import Compiled
from .events import RECORDER, Recording, clock


class _EachAlone(Cuts):
    """A partition in which every op is a part by itself; Python runs control ops, and their blocks
    in the same way.
    """

    def __init__(self, step: Step) -> None:
        super().__init__(step, {})
        self.reasons = {
            op.uid: "a profile times the ops of its blocks"
            for ops in self.blocks().values()
            for op in ops
            if by_python(op)
        }

    def divided(self, idx: int, ops: Iterable[OpDesc]) -> list[Part]:
        run = [op for op in ops if traits(op.type).runs is not Runs.HOST]
        return [op if op.uid in self.hosted else self._piece(idx, (op,)) for op in run]


class TimedStep(CutStep):
    """A step whose ops run one by one. Its results equal the step's except for rounding, because
    XLA fuses nothing over several ops.

    An op's time is that of its compiled function, from the call until its results are computed. The
    function is compiled and run once before, which counts as compiling. A gradient op recomputes
    what it needs of its forward op.
    """

    def __init__(self, step: Step) -> None:
        super().__init__(step)
        self.cuts = _EachAlone(step)
        self.seen: set[Hashable] = set()
        counts: dict[str, int] = {}
        self.numbers: dict[int, int] = {}
        for _, op in walk.ops(step.desc):
            self.numbers[op.uid] = counts[op.type] = counts.get(op.type, -1) + 1

    def for_step(self, step: Step) -> TimedStep:
        return TimedStep(step)

    def begin(self, key: Any) -> PartitionRun:
        return _TimedRun(self, key)

    def run(
        self, state: Mapping[str, Any], feed: Mapping[str, Any], key: Any
    ) -> tuple[dict[str, Any], list[Any]]:
        recording = RECORDER.on
        if recording is None:
            return super().run(state, feed, key)
        begin = clock()
        with jax.enable_x64(True):
            feed = {name: _put(recording, value) for name, value in feed.items()}
        changed, fetched = super().run(state, feed, key)
        for value in fetched:
            start = clock()
            jax.tree.map(np.asarray, value)
            recording.add("fetch", (start, start, clock()))
        recording.took(clock() - begin)
        return changed, fetched


class _TimedRun(PartitionRun):
    _cut: TimedStep
    _depth = 0

    def _piece(self, idx: int, piece: Piece, env: Env, path: tuple[int, ...]) -> None:
        recording = RECORDER.on
        if recording is None:  # the program itself turned it off
            super()._piece(idx, piece, env, path)
            return
        try:
            segment = self._cut.segment(piece)
            self._compile(recording, segment, env, path)
            start = clock()
            segment.run(env, self._key, path)
        except NotOneStep as why:
            if not self._cut.refine(why):
                raise
            for part in self._cut.cuts.divided(idx, piece.ops):
                if isinstance(part, Piece):
                    self._piece(idx, part, env, path)
                else:
                    self._hosted(part, env, path)
            return
        self._took(recording, piece.ops[0], start, [env.get(n) for n in piece.results])
        if flag("FLAGS_check_nan_inf"):
            refuse_left(piece.ops, piece.results, env)

    def _compile(
        self, recording: Recording, segment: Segment, env: Env, path: tuple[int, ...]
    ) -> None:
        """If such values are new to the piece, compile and run it once, and drop the results."""
        form = _form(segment, env)
        if form in self._cut.seen:
            return
        start, other = clock(), dict(env)
        segment.run(other, self._key, path)
        jax.block_until_ready([other.get(n) for n in segment.piece.results])
        self._cut.seen.add(form)
        recording.took_to_compile(clock() - start)

    def _hosted(self, op: OpDesc, env: Env, path: tuple[int, ...]) -> None:
        recording, start = RECORDER.on, clock()
        self._depth += 1
        try:
            super()._hosted(op, env, path)
        finally:
            self._depth -= 1
        if recording is not None:
            self._took(recording, op, start, [])

    def _took(self, recording: Recording, op: OpDesc, start: float, results: list[Any]) -> None:
        called = clock()
        jax.block_until_ready(results)
        loc = str(op.loc) if op.loc else ""
        recording.add(
            op.type, (start, called, clock()), self._cut.numbers[op.uid], self._depth, loc
        )


def _put(recording: Recording, value: Any) -> Any:
    """A fed array on the device; any other value is returned unchanged."""
    start = clock()
    put = jax.block_until_ready(jax.device_put(value)) if type(value) is np.ndarray else value
    recording.add("feed", (start, start, clock()))
    return put


# properties besides shape and dtype for which jax.jit compiles again
_ASKED = ("weak_type", "committed", "sharding")


def _form(segment: Segment, env: Env) -> Hashable:
    """The properties that a compiled piece depends on: shapes and dtypes, and the values of
    constants.
    """
    values = [env.get(n) for n in segment.piece.reads]
    leaves, tree = jax.tree.flatten(values)
    kinds = tuple(
        (np.shape(v), str(getattr(v, "dtype", type(v))), *(getattr(v, a, None) for a in _ASKED))
        for v in leaves
    )
    fixed = [env[n] for n in segment.piece.reads if n in segment.deciding and n in env] + [
        v for v in values if isinstance(v, np.ndarray) and v.size <= SMALL]  # fmt: skip
    return (
        segment.piece,
        tree,
        kinds,
        tuple(np.asarray(v).tobytes() for v in fixed if hasattr(v, "dtype")),
    )


_steps: WeakKeyDictionary[Compiled, TimedStep] = WeakKeyDictionary()


def timed(compiled: Compiled) -> TimedStep | None:
    """The step op by op while a profile is on, else None. Also None for a step of several ranks,
    which is timed as a whole.
    """
    if RECORDER.on is None or compiled.where.count != 1:
        return None
    found = _steps.get(compiled)
    if found is None or found.step is not compiled.step:
        found = _steps[compiled] = TimedStep(compiled.step)
    return found


def whole(recording: Recording, began: float, count: int, ranks: int, results: Any) -> None:
    """Record one call that takes `count` steps (0: one), possibly on several ranks, as one
    event.
    """
    called = clock()
    jax.block_until_ready(results)
    recording.add("run_steps" if count else f"step of {ranks} ranks", (began, called, clock()))
    recording.took(clock() - began)
