"""One program, compiled for a set of fetches on a device or several: the jitted step and what
surrounds it.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet, NotOneStep
from ..lower.checks import Objections, begin
from ..lower.divergence import divergent
from ..lower.lockstep import AXIS, lockstep
from ..lower.products import LEAST_BATCH, products
from ..lower.sizes import first_use
from ..lower.step import Step
from ..ops import ring
from ..ops.fixed import Fixed
from ..ops.ragged import Ragged
from ..xla_cpu.policy import choose
from .adapting import adapted
from .compilations import Compilation, record
from .compile_cache import CACHE, label, named
from .executables import Executables
from .feeding import SHARED_BATCH, batch_of
from .fetching import of_rank
from .kind import Kind
from .nan_check import Finite
from .objecting import agreed, first, unless
from .placement import OWN, REPLICATED, STACKED, Mesh, PerRank, Placement, per_rank
from .plan import StepPlan
from .ragged_shards import entered, left
from .recompiles import Recompiles
from .scope import Scope, ScopeVar
from .shard_layout import ShardedValue, dealt
from .state_buffers import (
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
from .state_shapes import fits, zeros
from .storage import lasting
from .turns import NOBODY, Turn, ordered


class Compiled:
    """A jitted step over the buffers of its state.

    plan: what it was made from. policy: what suits its compiler. recompiles: counts every
    signature. compilations: what was compiled. objections: what its words speak of. padding: of its
    ragged feeds. lock: held while something here is decided or compiled. layouts: how its state
    travels, once that is known, of these `shapes`. own: variables of which every rank has its own
    value. agreed: signatures of feeds that the processes of a job have compared.
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
        self.executables = Executables()
        self._fitted = False  # whether the policy is the one for what was fed first
        self._fresh: Any = None  # the types that the layouts were planned for
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
        """The same step, for the same feeds and fetches, of which nothing is bound, traced or
        compiled yet.
        """
        other = Compiled(self.plan, self.recompiles)
        other.policy, other._fitted, other.padding = self.policy, self._fitted, self.padding
        return other

    def adapt(self, values: Any, why: NotOneStep) -> bool:
        """Have the step run such feeds in another way from now on. False if nothing is left to
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
        """The processes have compared feeds of this signature."""
        self.agreed |= {signature}

    def built(self, signature: Any, made: Compilation, ragged: str | None) -> None:
        """A call of this signature is compiled. ragged: a fetch of it that has a LoD."""
        self.recompiles.reasons.made.append(made)
        record(self.compilations, made, self.step)
        self.executables.built(signature, ragged)

    def fit(self, feed: Any) -> None:
        """Before anything is compiled: have the policy be the one for a step that is fed so first."""
        with self.lock:  # the first of several threads decides
            if not self._fitted:
                self._fitted = True
                if not self.plan.tight:
                    batch = SHARED_BATCH if self.plan.shared else batch_of(feed)
                    self.policy = self.policy.fitted(self.step.desc, self.step.ops, batch)

    @property
    def options(self) -> dict[str, Any] | None:
        """Options for XLA, for this step."""
        return self.policy.options(memory=self.plan.memory_optimized)

    def packed(self, values: Any) -> Any:
        """Checked values as the step takes them."""
        return self.plan.packed(values, self.padding)

    # -- state -------------------------------------------------------------------------------------

    @property
    def buffers(self) -> StateBuffers | None:
        """The buffers that were bound last, in whatever scope."""
        found: StateBuffers | None = self._last()
        return found

    def bound(self, scope: Scope) -> StateBuffers | None:
        """The buffers of this program's state in `scope`, if they are what the scope shows."""
        found: StateBuffers | None = scope.bound.get(self)
        return (
            found
            if found is not None and found.in_force and found.layouts is self.layouts
            else None
        )

    def in_force(self, scope: Scope) -> bool:
        """Whether the buffers of this program's state are what `scope` shows."""
        return self.bound(scope) is not None

    def turns(self, scope: Scope) -> list[Turn]:
        """Whose turns a run takes: of the variables that it writes; of all, if Python goes through
        its parts, or on a mesh.
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
        """The buffers of this program's state in `scope`; made from the scope's variables where
        they are not in force.
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
        """Decide how state of these shapes and dtypes travels: what the step writes, and what it
        only reads.
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
        """The step, traced for values of these types: nothing is bound, compiled or run. On a mesh
        the state's are those of one rank.

        platform: one that need not be here ("cuda"), for whose compiler the step is lowered.
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
        """Types of one rank's arrays as all ranks' together have them."""
        each = zip(types, layout.own, strict=True)
        return [
            jax.ShapeDtypeStruct((self.where.count, *t.shape), t.dtype) if own else t
            for t, own in each
        ]

    def collect(
        self, scope: Scope, taken: Collection[str] | None = None
    ) -> tuple[dict[str, Any], Any]:
        """Values of what the step reads, and their types, which the layout depends on. In the turn
        of the variables.

        taken: those that are taken out of other buffers, default all.
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
                raise EnforceNotMet(
                    f"variable {name!r} is not initialised; run the startup program first"
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
        kept.update(self._dealt({n: values.pop(n) for n in self.plan.sharded}))
        self.own = divergent(self.step, [*kept, *self.plan.made])
        return {**values, **kept}, (types, self.own)

    def apart(self, scope: Scope) -> dict[str, Any]:
        """Values of what the step reads, for a run that takes its time: those that other programs
        may change are copies.
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
        """The variable as it lies on this mesh already, if it does."""
        value = var.storage.shards() if var.name in self.plan.sharded else None
        return (
            value
            if value is not None
            and value.placed == self.plan.sharded[var.name]
            and self.where.has(value.arrays)
            else None
        )

    def _dealt(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The arrays that hold the variables of which every rank has a part."""
        lying = {
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
        for name, array in lying.items():
            if math.prod(array.shape[1:]) <= SMALL:  # it may be packed
                lying[name] = per_rank(self.where.everywhere(array))
        placed = {n: self.plan.sharded[n] for n in wholes}
        found = dealt(placed, agreed, self.plan.holders, self.where.count)
        return {
            **lying,
            **{
                n: per_rank(v.reshape(len(v), *(self.step.desc.blocks[0].vars[n].shape or ())))
                for n, v in found.items()
            },
        }

    def keep(self, name: str, value: Any) -> Any:
        """A newly created variable as the scope has it."""
        if name in self.plan.made:
            return ShardedValue(self.plan.made[name], {name: value}, self.where.read)
        return all_rows(value) if name in self.own else value

    def _per_rank(self, scope: Scope, name: str) -> PerRank | None:
        """The values that the ranks have each of their own since an earlier run, if they have."""
        var = scope.find_var(name)
        value = None if var is None else var.storage.per_rank()
        return value if value is not None and len(value) == self.where.count else None

    # -- running -----------------------------------------------------------------------------------

    def function(self, kind: Kind = Kind.ONE) -> Any:
        """The jitted ``(mutable, constant, feed, seed, step) -> (mutable, extra, fetches, word[,
        finite])``.

        word: what ops object to (lower/checks.py), None where none can; then `mutable` holds the
        values from before the step.

        Where the ranks take turns, `feed` is a tuple of what each is fed, and `fetches` has a list
        for each rank.
        """
        return self.executables.function(kind, lambda: self._jitted(kind))

    def _jitted(self, kind: Kind) -> Any:
        name = label(op.type for op in self.step.ops)
        CACHE.mend(name)
        body = named(self.policy.traced(self._bodies[kind]), name)
        options: dict[str, Any] = {
            "donate_argnums": (0,) if self.donates(kind) else (),
            "compiler_options": self.options,
        }
        if kind.in_turn:
            return jax.jit(body, out_shardings=self._homes(kind), **options)
        if isinstance(self.where, Mesh):
            return self._spmd(body, kind, options)
        return jax.jit(body, **options)

    def donates(self, kind: Kind) -> bool:
        """Whether a call is given the old state, whose arrays are no more afterwards."""
        return not (kind.checked or self.plan.may_raise or self.plan.reads_only)

    @property
    def _bodies(self) -> Mapping[Kind, Any]:
        return dict(
            zip(
                Kind,
                (self._one, self._many, self._turns, self._checked, self._checked_turns),
                strict=True,
            )
        )

    def _spmd(self, body: Any, kind: Kind, options: Mapping[str, Any]) -> Any:
        """`body` run by every device of the mesh on its part of the feed, at once."""
        assert self.layouts is not None and isinstance(self.where, Mesh)
        mutable, constant = (
            [OWN if own else REPLICATED for own in layout.own] for layout in self.layouts
        )
        batch = STACKED if kind is Kind.MANY else OWN
        extra = {n: OWN if n in self.own else REPLICATED for n in self._created()}
        finite = (OWN,) if kind is Kind.CHECKED else ()
        count = self.where.count

        def local(mutable: Any, constant: Any, feed: Any, seed: Any, step: Any) -> Any:
            with ring.bound(ring.Ring(AXIS, count)):
                state, made, fetched, *more = body(
                    mutable, constant, entered(feed), seed, step, jax.lax.axis_index(AXIS)
                )
            return state, made, left(fetched), *more

        local = named(local, body.__name__)
        outs = mutable, extra, batch, REPLICATED, *finite
        return self.where.spmd(
            local, (mutable, constant, batch, REPLICATED, REPLICATED), outs, **options
        )

    def _homes(self, kind: Kind) -> Any:
        """Where the results of a step of ranks in turn belong: the state where it was."""
        if not isinstance(self.where, Mesh):
            return None
        assert self.layouts is not None
        homes = [self.where.sharding(OWN if own else REPLICATED) for own in self.layouts[0].own]
        return (homes, None, None, None, None) if kind.checked else (homes, None, None, None)

    def _created(self) -> list[str]:
        """Variables that the step writes and that the layouts do not hold."""
        assert self.layouts is not None
        known = {*self.layouts[0].singles, *(n for p in self.layouts[0].packs for n in p.names)}
        return [n for n in self.plan.written if n not in known]

    @staticmethod
    def signature(fn: Any, feed: Any) -> Any:
        """What a compiled function is particular to, beside the state's types."""
        if isinstance(feed, tuple):
            return (
                fn,
                *(
                    v.form if type(v) in _FORMED else (v.shape, v.dtype)
                    for one in feed
                    for v in one.values()
                ),
            )
        return (fn, *(v.form if type(v) in _FORMED else (v.shape, v.dtype) for v in feed.values()))

    def with_lod(self, fetched: Sequence[Any]) -> str | None:
        """The first fetch that has a LoD, given the fetched values or their types."""
        if fetched and isinstance(fetched[0], list):  # of each rank
            return next((name for values in fetched if (name := self.with_lod(values))), None)
        return next(
            (
                n
                for n, v in zip(self.fetches, fetched, strict=True)
                if isinstance(v, Ragged) and not v.bare
            ),
            None,
        )

    def _state(self, mutable: Any, constant: Any, row: int = 0) -> dict[str, Any]:
        assert self.layouts is not None
        return {**self.layouts[0].unpack(mutable, row), **self.layouts[1].unpack(constant, row)}

    def _split(self, state: Mapping[str, Any], constant: Any) -> tuple[list[Any], dict[str, Any]]:
        """The mutable group as it travels on, and the variables that the step made for the first
        time.
        """
        assert self.layouts is not None
        taken = {id(v) for v in jax.tree.leaves(constant)}
        own: dict[str, Any] = {}
        for name in self.plan.written:
            if name in state:
                # Two names may not share one buffer: the next step donates it.
                own[name] = jnp.copy(state[name]) if id(state[name]) in taken else state[name]
                taken.add(id(state[name]))
        extra = {n: own[n][None] if n in self.own else own[n] for n in self._created() if n in own}
        return self.layouts[0].pack(own), extra

    def _key(self, seed: Any, step: Any) -> Any:
        return jax.random.fold_in(jax.random.key(seed), step) if self.step.random else None

    def _run(
        self,
        old: dict[str, Any],
        feed: Any,
        key: Any,
        rank: Any = None,
        watch: Any = None,
        enclosed: bool = False,
    ) -> tuple[dict[str, Any], list[Any], Any]:
        """The state after a step, which is the old one where an op objects, the fetches of this
        rank, and the word (or None).
        """
        target = replace(self.policy.target, enclosed=enclosed)
        state, values, word = self.step.run(old, feed, key, self.objections, watch, rank, target)
        found = agreed(word, None if rank is None else AXIS)
        return unless(found, state, old), of_rank(values, self.where.count), found

    def _one(
        self, mutable: Any, constant: Any, feed: Any, seed: Any, step: Any, rank: Any = None
    ) -> Any:
        old, key = self._state(mutable, constant), self._key(seed, step)
        state, fetched, word = self._run(old, feed, key, rank)
        self.recompiles.add(feed)  # now that no op refused it
        return *self._split(state, constant), fetched, word

    def _many(
        self, mutable: Any, constant: Any, feeds: Any, seed: Any, step: Any, rank: Any = None
    ) -> Any:
        def body(carry: Any, feed: Any) -> Any:
            arrays, count, before = carry
            old, key = self._state(arrays, constant), self._key(seed, count)
            state, fetched, word = self._run(old, feed, key, rank, enclosed=True)
            arrays, extra = self._split(state, constant)
            return (arrays, count + 1, before if word is None else first(before, word)), (
                extra,
                fetched,
            )

        start = mutable, jnp.asarray(step, jnp.int64), jnp.asarray(begin())
        (arrays, _, word), (extra, fetched) = jax.lax.scan(body, start, feeds)
        found = word if self.objections.numbers else None
        return unless(found, arrays, mutable), jax.tree.map(lambda v: v[-1], extra), fetched, found

    def _checked(
        self, mutable: Any, constant: Any, feed: Any, seed: Any, step: Any, rank: Any = None
    ) -> Any:
        finite = self.executables.watches(Kind.CHECKED, Finite(self.step.ops))
        state, fetched, word = self._run(
            self._state(mutable, constant), feed, self._key(seed, step), rank, finite.watch
        )
        flags = finite.flags if rank is None else [f[None] for f in finite.flags]
        return *self._split(state, constant), fetched, word, flags

    def _turns(
        self, mutable: Any, constant: Any, feeds: Any, seed: Any, step: Any, watch: Any = None
    ) -> Any:
        assert self.layouts is not None
        states = [self._state(mutable, constant, rank) for rank in range(len(feeds))]
        results = lockstep(
            self.step,
            states,
            feeds,
            self._key(seed, step),
            watch,
            self.objections,
            self.policy.target,
        )
        named = (
            (n if isinstance(v, Fixed) else f"{n} of rank {r}", v)
            for r, feed in enumerate(feeds)
            for n, v in feed.items()
        )
        self.recompiles.add(dict(named))
        word = agreed([word for _, _, word in results])
        left = [
            self._split(unless(word, state, old), constant)
            for (state, _, _), old in zip(results, states, strict=True)
        ]
        extra = {
            n: jnp.concatenate([e[n] for _, e in left]) if n in self.own else v
            for n, v in left[0][1].items()
        }
        return (
            self.layouts[0].stack([arrays for arrays, _ in left]),
            extra,
            [of_rank(f, self.where.count) for _, f, _ in results],
            word,
        )

    def _checked_turns(self, mutable: Any, constant: Any, feeds: Any, seed: Any, step: Any) -> Any:
        finite = self.executables.watches(Kind.CHECKED_TURNS, Finite(self.step.ops))
        return *self._turns(mutable, constant, feeds, seed, step, finite.watch), finite.flags


# kinds of values of which a compiled step is particular to more than shape and dtype
_FORMED = frozenset({Ragged, Fixed})
