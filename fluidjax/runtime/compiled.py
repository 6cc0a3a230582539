"""One program, compiled for a set of fetches on one or several devices: the jitted step, its
executables and its state.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from ..compiling.compilations import Compilation, record
from ..compiling.kind import Kind
from ..compiling.recompiles import Recompiles
from ..devices.placement import PerRank, Placement, per_rank, refuse_mesh
from ..devices.shard_layout import ShardedValue, distributed
from ..errors import EnforceNotMet, NotOneStep, UnsupportedError
from ..feeds.feeding import SHARED_BATCH, batch_of
from ..lower.checks import Objections
from ..lower.divergence import divergent
from ..lower.sizes import first_use
from ..lower.step import Step
from ..ops.fixed import Fixed
from ..ops.products import LEAST_BATCH, products
from ..ops.ragged import Ragged
from ..ops.selected import SelectedRows
from ..state.buffers import (
    SMALL,
    Borrowed,
    StateBuffers,
    StateLayout,
    all_rows,
    borrow,
    borrows,
    claimed,
    plan,
)
from ..state.scope import Scope, ScopeVar
from ..state.shapes import fits, zeros
from ..state.storage import lasting
from ..state.turns import NOBODY, Turn, ordered
from ..xla_cpu.policy import choose
from .adapting import adapted
from .body import Body
from .executables import Executables
from .plan import StepPlan


class Compiled:
    """A jitted step over the buffers of its state.

    plan: the plan that it was made from. policy: the tuning for its compiler. recompiles: counts
    every signature. compilations: the reports of what was compiled. objections: the messages for
    its words. padding: the padding of its ragged feeds. lock: held while something here is decided
    or compiled. layouts: how its state is packed, once that is known, for these `shapes`. own:
    variables with a value of their own on each rank. agreed: signatures of feeds that the processes
    of a job have compared.
    """

    def __init__(self, plan: StepPlan, recompiles: Recompiles) -> None:
        self.plan = plan
        self.policy = choose(plan.where.device.platform)
        self.recompiles = recompiles
        self.compilations: list[Compilation] = []
        self.objections = Objections()
        self.padding = plan.padding()
        self.lock = threading.RLock()
        self.layouts: tuple[StateLayout, StateLayout] | None = None
        self.shapes: Mapping[str, Any] = {}
        self.own: frozenset[str] = frozenset()
        self.agreed: frozenset[Any] = frozenset()
        self.executables = Executables(plan.max_executables)
        self._fitted = False  # whether the policy has been fitted to the first feed
        self._fresh: Any = None  # types for which the layouts were planned
        self._last: Any = lambda: None  # a weak reference to the buffers that were bound last
        self._take_sizes()

    @property
    def step(self) -> Step:
        return self.plan.step

    @property
    def where(self) -> Placement:
        return self.plan.where

    @property
    def fetches(self) -> tuple[str, ...]:
        return self.plan.fetches

    def again(self) -> Compiled:
        """The same step for the same feeds and fetches, with nothing bound, traced or compiled
        yet.
        """
        other = Compiled(self.plan, self.recompiles)
        other.policy, other._fitted, other.padding = self.policy, self._fitted, self.padding
        return other

    def adapt(self, values: Any, why: NotOneStep) -> bool:
        """Run the step on such feeds in another way from now on. False if nothing is left to
        try.
        """
        with self.lock:
            found = adapted(self.plan, self.padding, self.recompiles, values, why)
            if found is None:
                return False
            self.plan = found
            self._take_sizes()
            return True

    def _take_sizes(self) -> None:
        needs = self.step.sizes.all
        self.recompiles.deciders.update((n, first_use(needs, n)) for n in self.plan.fixed)

    def agree(self, signature: Any) -> None:
        """Note that the processes have compared feeds of this signature."""
        self.agreed |= {signature}

    def report(self, made: Compilation) -> None:
        """Called after every compilation."""
        self.recompiles.reasons.made.append(made)
        record(self.compilations, made, self.step)

    def fit(self, feed: Any) -> None:
        """Fit the policy to the first feed; called before anything is compiled."""
        with self.lock:  # the first of several threads decides
            if not self._fitted:
                self._fitted = True
                if not self.plan.tight:
                    batch = SHARED_BATCH if self.plan.shared else batch_of(feed)
                    self.policy = self.policy.fitted(self.step.desc, self.step.ops, batch)

    def packed(self, values: Any) -> Any:
        """Checked values in the form that the step takes."""
        return self.plan.packed(values, self.padding)

    # -- state -------------------------------------------------------------------------------------

    @property
    def buffers(self) -> StateBuffers | None:
        """The buffers that were bound last, in any scope."""
        found: StateBuffers | None = self._last()
        return found

    def bound(self, scope: Scope) -> StateBuffers | None:
        """The buffers of this program's state in `scope`, if the scope's variables point to
        them.
        """
        found: StateBuffers | None = scope.bound.get(self)
        return (
            found
            if found is not None and found.in_force and found.layouts is self.layouts
            else None
        )

    def in_force(self, scope: Scope) -> bool:
        """Whether the variables of `scope` point to the buffers of this program's state."""
        return self.bound(scope) is not None

    def turns(self, scope: Scope) -> list[Turn]:
        """The turns that a run takes: those of the variables that it writes; those of all its
        variables if the host runs it in segments, or on a mesh.
        """
        buffers = self.bound(scope)
        if buffers is not None and self.plan.cutting is None:
            return buffers.turns
        names = (
            self.plan.written
            if borrows(self.where) and self.plan.cutting is None
            else (*self.step.reads, *self.plan.sharded, *self.plan.written)
        )
        vars = [var for name in dict.fromkeys(names) if (var := scope.find_var(name)) is not None]
        return (
            ordered({v.turn for v in vars} - {NOBODY}) if self.plan.initialises else claimed(vars)
        )

    def bind(self, scope: Scope) -> StateBuffers:
        """The buffers of this program's state in `scope`; made from the scope's variables if there
        are none in force.
        """
        buffers = self.bound(scope)
        if buffers is not None and (not borrows(self.where) or buffers.borrowed.stands()):
            return buffers
        return scope.between_steps(
            (*self.step.reads, *self.plan.sharded), lambda: self._bound_anew(scope, buffers)
        )

    def _bound_anew(self, scope: Scope, buffers: StateBuffers | None) -> StateBuffers:
        taken = set(self.plan.written) if borrows(self.where) else None
        if buffers is not None and buffers.renew(borrow(scope, buffers.constants)):
            return buffers
        values, fresh = self.collect(scope, taken)
        layouts = self.layouts
        if layouts is None or fresh != self._fresh:
            self._fresh = fresh
            own = {n for n, v in values.items() if n in self.plan.holders or isinstance(v, PerRank)}
            shapes = {
                n: jax.ShapeDtypeStruct(v.shape[1:] if n in own else v.shape, v.dtype)
                for n, v in values.items()
            }
            layouts = self.plan_layouts(shapes)
            self.executables.forget()
        borrowed = (
            Borrowed() if taken is None else borrow(scope, (n for n in values if n not in taken))
        )
        buffers = StateBuffers(
            scope, layouts, values, self.where, self.plan.sharded, weakref.ref(self)
        )
        buffers.bind(borrowed)
        scope.bound[self], self._last = buffers, weakref.ref(buffers)
        return buffers

    def plan_layouts(self, shapes: Mapping[str, Any]) -> tuple[StateLayout, StateLayout]:
        """Plan the layouts of state of these shapes and dtypes: one for the variables that the step
        writes, one for those that it only reads.
        """
        self.shapes, mutable = shapes, {n: shapes[n] for n in self.plan.written if n in shapes}
        constant = {n: v for n, v in shapes.items() if n not in mutable}
        packing, flops = (
            self.plan.tuning.packs,
            products(self.step.desc, self.step.ops) * LEAST_BATCH,
        )
        self.layouts = (
            plan(mutable, packing, flops, self.own),
            plan(constant, packing, flops, self.own),
        )
        return self.layouts

    def lower(
        self,
        state: Mapping[str, jax.ShapeDtypeStruct],
        feed: Mapping[str, jax.ShapeDtypeStruct],
        platform: str | None = None,
    ) -> jax.stages.Lowered:
        """The step, traced for values of these types; nothing is bound, compiled or run. On a mesh
        the state's types are those of one rank.

        platform: lower the step for the compiler of this platform ("cuda"), which this machine need
        not have.
        """
        if self.where.count > 1:
            self.own = divergent(self.step, [*self.plan.holders, *self.plan.made])
        groups = [
            self._of_ranks(layout, layout.types(state)) for layout in self.plan_layouts(state)
        ]
        if platform is not None:
            with jax.enable_x64(True):
                return (
                    self.function()
                    .trace(*groups, dict(feed), 0, 0)
                    .lower(lowering_platforms=(platform,))
                )
        with jax.enable_x64(True), jax.default_device(self.where.device):
            return self.function().lower(*groups, dict(feed), 0, 0)

    def _of_ranks(
        self, layout: StateLayout, types: Sequence[jax.ShapeDtypeStruct]
    ) -> list[jax.ShapeDtypeStruct]:
        """The types of the arrays of all ranks together, given those of one rank."""
        each = zip(types, layout.own, strict=True)
        return [
            jax.ShapeDtypeStruct((self.where.count, *t.shape), t.dtype) if own else t
            for t, own in each
        ]

    def collect(
        self, scope: Scope, taken: Collection[str] | None = None
    ) -> tuple[dict[str, Any], Any]:
        """The values that the step reads, and their types, on which the layout depends. The caller
        holds the turn of the variables.

        taken: the variables that are taken out of other buffers; by default all.
        """
        values: dict[str, Any] = {}
        for name in (
            *(n for n in self.step.reads if n not in self.plan.holders),
            *self.plan.sharded,
        ):
            var = scope.find_var(name)
            if var is not None and (taken is None or name in taken):
                var.storage.release()
            value = None if var is None else self._parts(var) or var.storage.read()
            if value is None:
                value = zeros(self.step, name)
            if value is None:
                raise EnforceNotMet(self.step.uninitialised(name))
            if isinstance(value, SelectedRows):
                raise UnsupportedError(
                    f"variable {name!r} holds sparse rows (SELECTED_ROWS), which no step reads from"
                    " the scope; compute them in the program that reads them"
                )
            value = value if isinstance(value, jax.Array | ShardedValue) else np.asarray(value)
            shape = (
                self.plan.sharded[name].shape
                if name in self.plan.sharded
                else self.step.desc.blocks[0].vars[name].shape
            )
            if not fits(self.step, name, shape, value.shape):
                raise EnforceNotMet(
                    f"variable {name!r} holds a value of shape {list(value.shape)} in the scope,"
                    f" but the program declares {list(shape)}"
                )
            values[name] = value
        types = tuple((n, tuple(v.shape), str(v.dtype)) for n, v in values.items())
        if self.where.count == 1:
            return values, types
        kept = {
            n: v
            for n in values
            if n not in self.plan.sharded and (v := self._per_rank(scope, n)) is not None
        }
        kept.update(self._distributed({n: values.pop(n) for n in self.plan.sharded}))
        self.own = divergent(self.step, [*kept, *self.plan.made])
        return {**values, **kept}, (types, self.own)

    def apart(self, scope: Scope) -> dict[str, Any]:
        """The values that the step reads, for a long run: values that other programs may change are
        copies.
        """

        def values() -> dict[str, Any]:
            taken = {*self.plan.written} if borrows(self.where) else None
            found, _ = self.collect(scope, taken)
            for name in found.keys() - (found.keys() if taken is None else taken):
                var = scope.find_var(name)
                found[name] = (
                    found[name] if var is None or var.turn is NOBODY else lasting(found[name])
                )
            return found

        return scope.between_steps((*self.step.reads, *self.plan.sharded), values)

    def _parts(self, var: ScopeVar) -> ShardedValue | None:
        """The variable's shards if they are on this mesh already, else None."""
        value = var.storage.shards() if var.name in self.plan.sharded else None
        return (
            value
            if value is not None
            and value.placed == self.plan.sharded[var.name]
            and self.where.has(value.arrays)
            else None
        )

    def _distributed(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The arrays that hold the sharded variables."""
        stored = {
            n: a
            for v in values.values()
            if isinstance(v, ShardedValue)
            for n, a in v.arrays.items()
        }
        wholes = {n: v for n, v in values.items() if not isinstance(v, ShardedValue)}
        agreed = (
            dict(zip(wholes, self.where.agreed(list(wholes.values())), strict=True))
            if wholes
            else {}
        )
        for name, array in stored.items():
            if math.prod(array.shape[1:]) <= SMALL:  # it may be packed
                stored[name] = per_rank(self.where.everywhere(array))
        placed = {n: self.plan.sharded[n] for n in wholes}
        found = distributed(placed, agreed, self.plan.holders, self.where.count)
        return {
            **stored,
            **{
                n: per_rank(v.reshape(len(v), *(self.step.desc.blocks[0].vars[n].shape or ())))
                for n, v in found.items()
            },
        }

    def keep(self, name: str, value: Any) -> Any:
        """A newly created variable in the form that the scope holds."""
        if name in self.plan.made:
            return ShardedValue(self.plan.made[name], {name: value}, self.where.read)
        return all_rows(value) if name in self.own else value

    def _per_rank(self, scope: Scope, name: str) -> PerRank | None:
        """The per-rank values from an earlier run, if there are any."""
        var = scope.find_var(name)
        value = None if var is None else var.storage.per_rank()
        return value if value is not None and len(value) == self.where.count else None

    # -- running -----------------------------------------------------------------------------------

    def function(self, kind: Kind = Kind.ONE) -> Any:
        """A jitted call of the step (body.py), not compiled yet."""
        assert self.layouts is not None
        refuse_mesh("an Executor runs a program on the devices of its places")
        body = Body(
            self.plan,
            self.policy,
            self.layouts,
            self.own,
            self.objections,
            self.recompiles,
            self.executables.finite,
        )
        return body.jitted(kind)

    @staticmethod
    def signature(kind: Kind | None, feed: Any) -> Any:
        """The key of an executable, besides the state's types."""
        if isinstance(feed, tuple):
            return (kind, *(_form(v) for one in feed for v in one.values()))
        return (kind, *map(_form, feed.values()))

    def with_lod(self, fetched: Sequence[Any]) -> str | None:
        """The first fetch that has a LoD, given the fetched values or their types."""
        if fetched and isinstance(fetched[0], list):  # for each rank
            return next((name for values in fetched if (name := self.with_lod(values))), None)
        return next(
            (
                n
                for n, v in zip(self.fetches, fetched, strict=True)
                if isinstance(v, Ragged) and not v.bare
            ),
            None,
        )


def _form(value: Any) -> Any:
    """A fed value's part of an executable's key: for most values shape and dtype alone."""
    return value.form if type(value) in _FORMED else (value.shape, value.dtype)


_FORMED = frozenset({Ragged, Fixed})
