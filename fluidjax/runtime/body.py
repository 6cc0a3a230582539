"""The pure function of a step that is jitted: it unpacks the arrays of the state, runs the step,
and packs the new state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp

from ..compiling.cache import CACHE, label, named
from ..compiling.kind import Kind
from ..compiling.recompiles import Recompiles
from ..devices.placement import OWN, REPLICATED, STACKED, Mesh, OneDevice, Spanning
from ..feeds.apart import each_alone, samples_of
from ..feeds.fetching import of_rank
from ..feeds.ragged_shards import entered, left
from ..lower.checks import Objections, begin
from ..lower.lockstep import lockstep
from ..lower.nan_check import Finite
from ..ops import ring
from ..ops.fixed import Fixed
from ..state.buffers import StateLayout
from ..xla_cpu.policy import Policy
from .objecting import agreed, first, unless
from .plan import StepPlan


@dataclass(frozen=True, eq=False)
class Body:
    """The function of a plan under a policy. layouts: how its state is packed. own: variables with
    a value of their own on each rank. objections: the table of the messages for the step's words.
    recompiles: counts every trace. finite: collects, during a trace, the values that the NaN check
    inspects.
    """

    plan: StepPlan
    policy: Policy
    layouts: tuple[StateLayout, StateLayout]
    own: frozenset[str]
    objections: Objections
    recompiles: Recompiles
    finite: dict[Kind, Finite]

    def jitted(self, kind: Kind) -> Any:
        """A jitted ``(mutable, constant, feed, seed, step) -> (mutable, extra, fetches, word[,
        finite])``, not compiled yet.

        word: the errors that ops detected (lower/checks.py); None if no op can detect one. After an
        error `mutable` holds the values from before the step.

        If the ranks take turns, `feed` is a tuple of each rank's feed, and `fetches` has a list for
        each rank.
        """
        name = label(op.type for op in self.plan.step.ops)
        CACHE.mend(name)
        bodies: dict[Kind, Callable[..., Any]] = {
            Kind.ONE: self._one,
            Kind.MANY: self._many,
            Kind.TURNS: self._turns,
            Kind.CHECKED: self._checked,
            Kind.CHECKED_TURNS: self._checked_turns,
        }
        body = named(self.policy.traced(bodies[kind]), name)
        options: dict[str, Any] = {
            "donate_argnums": (0,) if self.plan.donates(kind) else (),
            "compiler_options": self.policy.options(memory=self.plan.memory_optimized),
        }
        if kind.in_turn:
            return jax.jit(body, out_shardings=self._result_shardings(kind), **options)
        if isinstance(self.plan.where, Mesh):
            return self._spmd(body, kind, options)
        return jax.jit(body, **options)

    def _spmd(self, body: Any, kind: Kind, options: Mapping[str, Any]) -> Any:
        """A function that runs `body` on all devices of the mesh at once, each on its part of the
        feed.
        """
        assert isinstance(self.plan.where, Mesh)
        mutable, constant = (
            [OWN if own else REPLICATED for own in layout.own] for layout in self.layouts
        )
        batch = STACKED if kind is Kind.MANY else OWN
        extra = {n: OWN if n in self.own else REPLICATED for n in self._created}
        finite = (OWN,) if kind is Kind.CHECKED else ()
        count = self.plan.where.count

        def local(mutable: Any, constant: Any, feed: Any, seed: Any, step: Any) -> Any:
            with ring.bound(ring.Ring(ring.AXIS, count)):
                state, made, fetched, *more = body(
                    mutable, constant, entered(feed), seed, step, jax.lax.axis_index(ring.AXIS)
                )
            return state, made, left(fetched), *more

        local = named(local, body.__name__)
        outs = mutable, extra, batch, REPLICATED, *finite
        return self.plan.where.spmd(
            local, (mutable, constant, batch, REPLICATED, REPLICATED), outs, **options
        )

    def _result_shardings(self, kind: Kind) -> Any:
        """The shardings of a step's results on several devices; the state keeps its sharding."""
        if not isinstance(self.plan.where, Mesh | Spanning):
            return None
        homes = [
            self.plan.where.sharding(OWN if own else REPLICATED) for own in self.layouts[0].own
        ]
        return (homes, None, None, None, None) if kind.checked else (homes, None, None, None)

    @cached_property
    def _created(self) -> tuple[str, ...]:
        """Variables that the step writes and the layouts do not contain."""
        layout = self.layouts[0]
        known = {*layout.singles, *(n for p in layout.packs for n in p.names)}
        return tuple(n for n in self.plan.written if n not in known)

    def _state(self, mutable: Any, constant: Any, row: int = 0) -> dict[str, Any]:
        return {**self.layouts[0].unpack(mutable, row), **self.layouts[1].unpack(constant, row)}

    def _split(self, state: Mapping[str, Any], constant: Any) -> tuple[list[Any], dict[str, Any]]:
        """The mutable group as the next step takes it, and the variables that the step created."""
        taken = {id(v) for v in jax.tree.leaves(constant)}
        own: dict[str, Any] = {}
        for name in self.plan.written:
            if name in state:
                # Two names must not share one buffer, because the next step donates it.
                own[name] = jnp.copy(state[name]) if id(state[name]) in taken else state[name]
                taken.add(id(state[name]))
        extra = {n: own[n][None] if n in self.own else own[n] for n in self._created if n in own}
        return self.layouts[0].pack(own), extra

    def _key(self, seed: Any, step: Any) -> Any:
        return jax.random.fold_in(jax.random.key(seed), step) if self.plan.step.random else None

    def _run(
        self,
        old: dict[str, Any],
        feed: Any,
        key: Any,
        rank: Any = None,
        watch: Any = None,
        nested: bool = False,
    ) -> tuple[dict[str, Any], list[Any], Any]:
        """The state after a step (the old state if an op detects an error), the fetches of this
        rank, and the word (or None).
        """
        target = replace(self.policy.target, nested=nested)
        state, values, word = self.plan.step.run(
            old, feed, key, self.objections, watch, rank, target
        )
        found = agreed(word, None if rank is None else ring.AXIS)
        return unless(found, state, old), of_rank(values, self.plan.where.count), found

    def _one(
        self, mutable: Any, constant: Any, feed: Any, seed: Any, step: Any, rank: Any = None
    ) -> Any:
        old, key = self._state(mutable, constant), self._key(seed, step)
        fetched, word = self._by_samples(old, feed), None
        state: Mapping[str, Any] = old
        if fetched is None:
            state, fetched, word = self._run(old, feed, key, rank)
        self.recompiles.add(feed)  # after the trace, because an op may refuse the step
        return *self._split(state, constant), fetched, word

    def _by_samples(self, state: dict[str, Any], feed: Mapping[str, Any]) -> list[Any] | None:
        """The fetches of a prediction, computed sample by sample; None if that is not faster or if
        rows are not independent.
        """
        plan = self.plan
        if not plan.reads_only or type(plan.where) is not OneDevice:
            return None
        rows = samples_of(plan.step, state, feed)
        if rows is None or not self.policy.by_samples(plan.step.ops, state, rows.values()):
            return None
        run = partial(self._run, state, key=None, nested=True)
        return each_alone(plan.step, state, feed, rows, run)

    def _many(
        self, mutable: Any, constant: Any, feeds: Any, seed: Any, step: Any, rank: Any = None
    ) -> Any:
        def body(carry: Any, feed: Any) -> Any:
            arrays, count, before = carry
            old, key = self._state(arrays, constant), self._key(seed, count)
            state, fetched, word = self._run(old, feed, key, rank, nested=True)
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
        finite = self.finite[Kind.CHECKED] = Finite(self.plan.step.ops)
        state, fetched, word = self._run(
            self._state(mutable, constant), feed, self._key(seed, step), rank, finite.watch
        )
        flags = finite.flags if rank is None else [f[None] for f in finite.flags]
        return *self._split(state, constant), fetched, word, flags

    def _turns(
        self, mutable: Any, constant: Any, feeds: Any, seed: Any, step: Any, watch: Any = None
    ) -> Any:
        states = [self._state(mutable, constant, rank) for rank in range(len(feeds))]
        results = lockstep(
            self.plan.step,
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
            [of_rank(f, self.plan.where.count) for _, f, _ in results],
            word,
        )

    def _checked_turns(self, mutable: Any, constant: Any, feeds: Any, seed: Any, step: Any) -> Any:
        finite = self.finite[Kind.CHECKED_TURNS] = Finite(self.plan.step.ops)
        return *self._turns(mutable, constant, feeds, seed, step, finite.watch), finite.flags
