"""Prepared runs: the results of binding and planning an earlier run, so that an equal run can skip
both.

A small step takes a few microseconds, and so does the search for the program, the scope and the
devices of a run. `Prepared` remembers the executables; calling.py calls them as always. Any run
that differs goes through all of `Executor.run`, which raises the errors. Feeds are checked in every
run.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from ..base.flags import flag
from ..compiling.kind import Kind
from ..devices.placement import REPLICATED
from ..state.buffers import StateBuffers
from ..state.scope import Scope
from .compiled import Compiled
from .executables import Executable


class Prepared:
    """A step on one device over the state in one scope, with its executables by the shapes of the
    feeds.
    """

    __slots__ = ("_buffers", "_devices", "_fed", "_made", "_plan", "compiled", "version")

    def __init__(self, version: Any, compiled: Compiled, scope: Scope) -> None:
        """version: the program's version, by which the caller notices changes. The state is in
        force in the scope.
        """
        self.version, self.compiled, self._plan = version, compiled, compiled.plan
        self._buffers: Any = weakref.ref(scope.bound[compiled])  # the scope keeps it alive
        self._devices = compiled.where.sharding(REPLICATED).device_set
        self._fed = [(name, rule.dtype, rule.ranges) for name, rule in compiled.plan.rules.items()]
        self._made: dict[tuple[Any, ...], Executable] = {}

    @staticmethod
    def can_be(compiled: Compiled, scope: Scope) -> bool:
        """Whether a further call needs nothing but the call: it creates no variables, waits for
        nothing, and takes only arrays.
        """
        plan = compiled.plan
        more = plan.creates or plan.may_raise or plan.alone or plan.fixed or plan.fed_bounds
        looks = compiled.objections.numbers or plan.limited or plan.cutting is not None
        return not (more or looks) and compiled.where.count == 1 and compiled.in_force(scope)

    def remember(self, feed: Mapping[str, Any]) -> None:
        """Called with the feed of a finished call."""
        if len(feed) != len(self._fed) or not all(
            type(v) is np.ndarray or isinstance(v, jax.Array) for v in feed.values()
        ):
            return
        made = self.compiled.executables.get(self.compiled.signature(Kind.ONE, feed))
        if made is not None and made.called and made.ragged is None:
            self._made[tuple([feed[name].shape for name, _, _ in self._fed])] = made

    def standing(self, scope: Scope) -> StateBuffers | None:
        """The buffers of its state, if nothing has changed since."""
        buffers: StateBuffers | None = self._buffers()
        if (
            buffers is None
            or not buffers.in_force
            or buffers.scope is not scope
            or self.compiled.plan is not self._plan
            or flag("FLAGS_check_nan_inf")
        ):
            return None
        if not buffers.borrowed.stands():
            self.compiled.bind(scope)
        return buffers

    def made_for(self, feed: Any) -> Executable | None:
        """The executable for a feed like one that was fed before, or None. Raises FeedError for
        integers that are out of range.
        """
        if type(feed) is not dict or len(feed) != len(self._fed):
            return None
        shapes = []
        for name, dtype, ranges in self._fed:
            value: Any = feed.get(name)
            kind = type(value)
            if not (kind is np.ndarray or isinstance(value, jax.Array)) or value.dtype != dtype:
                return None
            # it has to be moved first
            if kind is not np.ndarray and value.committed and value.devices() != self._devices:
                return None
            if ranges and kind is np.ndarray:
                for each in ranges:
                    each.check(name, value)
            shapes.append(value.shape)
        return self._made.get(tuple(shapes))
