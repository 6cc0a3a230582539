"""A run prepared: what an earlier one has decided, so that an equal one need not decide it again.

Small steps take a few microseconds, and so does finding out what is to run, from where and on what.
`Prepared` remembers that, and runs where nothing has changed since; whatever is new goes the long
way through `Executor.run`, which raises what is to be raised. What is fed is looked at in every
run.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from ..base.flags import flag
from .calling import donated, undonated
from .compiled import Compiled
from .kind import Kind
from .scope import Scope
from .turns import held


class Overtaken(Exception):
    """Another thread has changed something meanwhile; nothing has happened."""


class Prepared:
    """A step on one device over the state in one scope, for the shapes of feeds with which it was
    called before.
    """

    __slots__ = (
        "_buffers",
        "_devices",
        "_fed",
        "_function",
        "_least",
        "_shapes",
        "_step",
        "compiled",
        "version",
    )

    def __init__(self, version: Any, compiled: Compiled, scope: Scope) -> None:
        """version: of the program, as the caller tells one from another. The state is in force in
        the scope.
        """
        self.version, self.compiled = version, compiled
        self._buffers: Any = weakref.ref(scope.bound[compiled])  # which the scope keeps
        self._step, self._function = compiled.step, compiled.function(Kind.ONE)
        self._devices = {compiled.where.device}
        self._fed = [(name, rule.dtype, rule.ranges) for name, rule in compiled.plan.rules.items()]
        self._shapes: set[tuple[Any, ...]] = set()
        # steps that the program has taken at least: before, another executable may be due
        self._least = 0

    @staticmethod
    def can_be(compiled: Compiled, scope: Scope) -> bool:
        """Whether all that a further call does is to call: it creates nothing, waits for nothing,
        and takes arrays alone.
        """
        plan = compiled.plan
        more = plan.creates or plan.may_raise or plan.alone or plan.fixed or plan.fed_bounds
        looks = compiled.objections.numbers or plan.limited or plan.cutting is not None
        return not (more or looks) and compiled.where.count == 1 and compiled.in_force(scope)

    def remember(self, feed: Mapping[str, Any], taken: int) -> None:
        """Told of a feed with which the step was called, when the program had taken so many steps."""
        compiled = self.compiled
        if len(feed) != len(self._fed) or not all(
            type(v) is np.ndarray or isinstance(v, jax.Array) for v in feed.values()
        ):
            return
        signature = compiled.signature(self._function, feed)
        if (
            compiled.executables.was_called(signature)
            and compiled.executables.ready.get(signature) is None
        ):
            self._shapes.add(tuple([feed[name].shape for name, _, _ in self._fed]))
            self._least = max(self._least, taken)

    def stands(self, scope: Scope, taken: int) -> bool:
        """Whether nothing has changed."""
        buffers = self._buffers()
        if (
            buffers is None
            or not buffers.in_force
            or buffers.scope is not scope
            or self.compiled.step is not self._step
        ):
            return False
        if not buffers.borrowed.stands():
            self.compiled.bind(scope)
        return taken >= self._least and not flag("FLAGS_check_nan_inf")

    def takes(self, feed: Any) -> bool:
        """Whether a feed is of a kind that was fed before. Raises FeedError for integers that are
        out of range.
        """
        if type(feed) is not dict or len(feed) != len(self._fed):
            return False
        shapes = []
        for name, dtype, ranges in self._fed:
            value: Any = feed.get(name)
            kind = type(value)
            if not (kind is np.ndarray or isinstance(value, jax.Array)) or value.dtype != dtype:
                return False
            # it has to be moved first
            if kind is not np.ndarray and value.committed and value.devices() != self._devices:
                return False
            if ranges and kind is np.ndarray:
                for each in ranges:
                    each.check(name, value)
            shapes.append(value.shape)
        return tuple(shapes) in self._shapes

    def __call__(self, feed: Mapping[str, Any], seed: int, step: int) -> list[Any]:
        """The fetched values of one more step, whose state is the scope's from now on. Raises
        Overtaken.
        """
        buffers, inputs = self._buffers(), (feed, seed, step)
        with jax.enable_x64(True):
            if self.compiled.plan.reads_only:
                found: list[Any] = undonated(self._function, buffers, inputs)[2]
                return found
            for turn in buffers.turns:
                if turn.waiting:
                    turn.let_pass()
            # of one turn, as nearly always: `held`, a microsecond shorter
            if len(buffers.locks) == 2:
                with buffers.locks[0], buffers.locks[1]:
                    return self._advanced(buffers, inputs)
            return held(buffers.locks, lambda: self._advanced(buffers, inputs))

    def _advanced(self, buffers: Any, inputs: tuple[Any, ...]) -> list[Any]:
        if not (buffers.in_force and buffers.borrowed.stands()):
            raise Overtaken
        found: list[Any] = donated(self._function, buffers, inputs)[2]
        return found
