"""One program, compiled for a set of fetches on a device or several: the jitted step and what
surrounds it.
"""

from __future__ import annotations

import copy
import math
import threading
import warnings
import weakref
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet, FeedError, FetchError, near
from ..ir import walk
from ..ir.desc import ProgramDesc
from ..ir.recomputed import segment
from ..lower import platforms
from ..lower.by_samples import at_once, mapped
from ..lower.checks import Objections, begin
from ..lower.divergence import divergent
from ..lower.layout import laid_out, predicting, reads_filters_as_they_lie, turned
from ..lower.library import kept_apart
from ..lower.lockstep import AXIS, lockstep
from ..lower.read_only import is_read_only
from ..lower.sizes import first_use
from ..lower.step import Step
from ..lower.uncompiled import uncompiled
from ..ops import ring
from ..ops.enclosed import enclosed, loops_in_library
from ..ops.fixed import Fixed
from ..ops.ragged import Ragged
from .bucketing import limits
from .compilations import Compilation
from .compile_cache import CACHE, label, named
from .compiler_options import (
    IN_LIBRARY,
    MEMORY_OPTIMIZED,
    ORDINARY,
    READS_TURNED,
    YNNPACK,
    known,
    left_open,
)
from .feeding import (
    FeedRule,
    Range,
    fixed,
    overwritten,
    ranges,
    rule_for,
    told_bounds,
    unknown_feed,
)
from .fetching import of_rank
from .kind import Kind
from .nan_check import Finite
from .objecting import agreed, first, unless
from .padding import Padding, goes_by_offsets, inner_levels
from .placement import OWN, REPLICATED, STACKED, Mesh, OneDevice, PerRank, Placement, per_rank
from .ragged_shards import entered, left
from .raising import may_raise
from .recompiles import Recompiles
from .scope import Scope, ScopeVar
from .shard_layout import ShardedValue, ShardLayout, arrays_of, dealt
from .state_buffers import (
    SMALL,
    Borrowed,
    StateBuffers,
    StateLayout,
    Turned,
    all_rows,
    borrow,
    borrows,
    claimed,
    plan,
)
from .state_shapes import fits, zeros
from .storage import lasting
from .turns import NOBODY, Turn, ordered
from .work import LEAST_BATCH, SHARED_BATCH, batch_of, loops_are_long, products


class Compiled:
    """A jitted step over the buffers of its state."""

    def __init__(
        self, desc: ProgramDesc, fetches: tuple[str, ...], where: Placement, recompiles: Recompiles, memory_optimized: bool = False,
        sharded: Mapping[str, ShardLayout] = MappingProxyType({}), given: frozenset[str] = frozenset(),
        unset: frozenset[str] = frozenset(), batch_sizes: tuple[int, ...] | None = None,
    ) -> None:  # fmt: skip
        """sharded: variables of which no rank holds the whole, and where their elements are. given:
        persistable ones that are fed. unset: persistable ones that begin without a value. batch_sizes:
        see Padding.
        """
        self.tuning = platforms.tuning(where.device.platform)
        in_place = memory_optimized and self.tuning.waits
        offloads = isinstance(where, OneDevice) and where.count == 1
        step = Step(
            desc,
            fetches,
            in_blocks=True,
            in_place=in_place,
            given=given,
            unset=unset,
            offloads=offloads,
        )
        self.step = laid_out(step, where.device.platform)
        if where.reorders:
            self.step = predicting(self.step)
        self.sharded = {
            n: p for n, p in sharded.items() if not set(arrays_of([p])).isdisjoint(self.step.reads)
        }
        self.made = {
            n: p
            for n, p in sharded.items()
            if n not in self.sharded and set(arrays_of([p])) == {n} and n in self.step.writes
        }
        self._holders = {
            n: math.prod(desc.blocks[0].vars[n].shape or ())
            for n in arrays_of(self.sharded.values())
        }
        self.where = where
        self.memory_optimized = memory_optimized
        self.compilations: list[Compilation] = []
        self.recompiles = recompiles
        self.objections = Objections()
        self.fixed: frozenset[str] = frozenset()
        self.take_sizes()
        self.fetches = fetches
        self._check_fetches(desc)
        self.rules = self._rules(desc)
        self.fed_bounds = [
            t for t in told_bounds(desc, self.step.ops) if t[0] in self.rules and t[1] in self.rules
        ]
        # what is fed to the state stays in it
        self.reads_only = is_read_only(self.step) and not self.step.given and borrows(where)
        self.written = () if self.reads_only else tuple(dict.fromkeys((*self.step.writes,)))
        self.creates = any(n not in self.step.reads for n in self.written)
        self.initialises = self.creates and not self.step.reads and not self.rules
        self.random, self.may_raise = self.step.random, may_raise(self.step)
        plain = type(where) in (OneDevice, Mesh) and not sharded
        # how it runs op by op, not compiled
        self.alone = uncompiled(self.step, where.together) if plain else None
        batches = frozenset(
            n for n, v in self.step.feeds.items() if not v.lod_level and (v.shape or (0,))[0] < 0
        )
        self.padding = Padding(
            batches, inner_levels(self.step), goes_by_offsets(self.step), batch_sizes
        )
        # feeds that bound loops: a step is compiled for each of their buckets
        self.limited: set[str] = set()
        self.cutting: Any = None  # CutStep: the step in segments, where it cannot be one function
        self.lock = threading.RLock()  # held while something here is decided or compiled
        self.shared = isinstance(where, Mesh) and where.shared  # with other processes
        self.wanted: Mapping[str, Any] | None = None  # options of XLA, chosen by what is fed first
        self.within_budget = False  # it was fitted into so many bytes
        self._begin()
        self.persistable_fetches = tuple(
            i for i, n in enumerate(fetches) if (v := desc.blocks[0].vars.get(n)) and v.persistable
        )

    def _begin(self) -> None:
        # signatures that are compiled, and a fetch that has a LoD there
        self.ready: dict[Any, str | None] = {}
        # those of them that were called, so that a further call runs in C
        self.called: set[Any] = set()
        self._last: Any = lambda: None  # a weak reference to the buffers that were bound last
        self.own: frozenset[str] = frozenset()  # of these variables every rank has its own value
        self.agreed: set[Any] = set()  # signatures of feeds that the processes have compared
        self.layouts: tuple[StateLayout, StateLayout] | None = None
        self._fresh: Any = None  # the types that the layouts were planned for
        self._jitted: dict[Kind, Any] = {}
        self.finite: dict[Kind, Finite] = {}

    def again(self) -> Compiled:
        """The same step, for the same feeds and fetches, of which nothing is bound, traced or
        compiled yet.
        """
        other = copy.copy(self)
        other._begin()
        return other

    def choose_options(self, feed: Any) -> None:
        """Before anything is compiled: whether loops over elements are a library's, which follows
        from the sizes that are fed first.
        """
        if self.wanted is not None:
            return
        batch = SHARED_BATCH if self.shared else batch_of(feed)
        tight = (
            self.within_budget
            or self.memory_optimized
            or any(segment(op) is not None for op in self.step.ops)
        )
        found = IN_LIBRARY if not tight and loops_are_long(self.step, batch) else ORDINARY
        with self.lock:  # the first of several threads decides
            self.wanted = self.wanted or found

    @property
    def options(self) -> dict[str, Any] | None:
        """What XLA is told for this step."""
        if not self.tuning.options:
            return None
        turned = READS_TURNED if reads_filters_as_they_lie(self.step) else {}
        return (
            known(
                {
                    **left_open(self.wanted or ORDINARY),
                    **(MEMORY_OPTIMIZED if self.memory_optimized else {}),
                    **turned,
                }
            )
            or None
        )

    def _check_fetches(self, desc: ProgramDesc) -> None:
        for name in self.fetches:
            if desc.find_var(name) is None and name in self.sharded:
                raise FetchError(
                    f"fetch target {name!r} lies in parts on the ranks; read it from the scope"
                    " after the run"
                )
            if desc.find_var(name) is None:
                raise FetchError(
                    f"fetch target {name!r} is not in the program{near(name, desc.blocks[0].vars)}"
                )

    def _rules(self, desc: ProgramDesc) -> dict[str, FeedRule]:
        bounds = ranges(desc, self.step.ops)
        readers = {n: [op for _, op in walk.ops(desc) if n in op.reads] for n in self.step.feeds}
        return {
            name: rule_for(var, bounds.get(name, ()), readers[name])
            for name, var in self.step.feeds.items()
        }

    def check_feed(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        """The fed values that the step takes. Raises FeedError for what is missing or does not fit.

        What the program does not know is passed over with a warning; it is an error on several
        devices, as in 1.8.5, and where something else is missing.
        """
        rules = self.rules
        values: dict[str, Any] = {}
        unknown: list[FeedError] = []
        for name, value in feed.items():
            rule = rules.get(name)
            if rule is not None:
                try:
                    values[name] = (
                        self.where.fed(rule(value))
                        if name not in self.fixed
                        else fixed(rule(value))
                    )
                except FeedError as error:
                    raise overwritten(error, name, self.step.desc) from None
            else:
                var = self.step.desc.find_var(name)
                if var is None:
                    unknown.append(unknown_feed(name, self.step.desc))
                else:
                    rule_for(var, readers=())(value)  # fed, but nothing that is asked for reads it
        if unknown and (len(values) < len(rules) or self.where.count > 1):
            raise unknown[0]
        for passed_over in unknown:
            warnings.warn(f"{passed_over}; it is passed over", RuntimeWarning, stacklevel=4)
        if len(values) < len(rules):
            name = next(n for n in rules if n not in values)
            given = f"; fed are {', '.join(map(repr, feed))}" if feed else ""
            raise FeedError(f"{name!r} must be fed{self.step.reader_of(name)}{given}")
        for name, bound, what in self.fed_bounds:
            if isinstance(values[bound], Fixed) and isinstance(values[name], np.ndarray):
                Range(0, int(values[bound].array.reshape(-1)[0]), None, what).check(
                    name, values[name]
                )
        return values

    def packed(self, values: Any) -> Any:
        """Checked values with LoDTensors as a step takes them: padded up to a bucket unless an op
        mixes rows.
        """
        if isinstance(values, tuple):
            return tuple(map(self.packed, values))
        if self.fixed:  # some of which may have been found after these values were checked
            values = {
                n: fixed(v) if n in self.fixed and not isinstance(v, Fixed) else v
                for n, v in values.items()
            }
        return self.padding.packed(limits(self.limited, values))

    def take_sizes(self) -> None:
        """Which feeds decide sizes: a step is compiled for each of their values."""
        self.fixed = self.step.sizes.fixed
        self.recompiles.deciders.update((n, first_use(self.step.sizes.all, n)) for n in self.fixed)

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
        if buffers is not None and self.cutting is None:
            return buffers.turns
        names = (
            self.written
            if borrows(self.where) and self.cutting is None
            else (*self.step.reads, *self.sharded, *self.written)
        )
        vars = [var for name in dict.fromkeys(names) if (var := scope.find_var(name)) is not None]
        return ordered({v.turn for v in vars} - {NOBODY}) if self.initialises else claimed(vars)

    def bind(self, scope: Scope) -> StateBuffers:
        """The buffers of this program's state in `scope`; made from the scope's variables where
        they are not in force.
        """
        buffers = self.bound(scope)
        if buffers is not None and (not borrows(self.where) or buffers.borrowed.stands()):
            return buffers
        return scope.between_steps(
            (*self.step.reads, *self.sharded), lambda: self._bound_anew(scope, buffers)
        )

    def _bound_anew(self, scope: Scope, buffers: StateBuffers | None) -> StateBuffers:
        taken = set(self.written) if borrows(self.where) else None
        if buffers is not None and buffers.renew(borrow(scope, buffers.constants)):
            return buffers
        values, fresh = self.collect(scope, taken)
        layouts = self.layouts
        if layouts is None or fresh != self._fresh:
            self._fresh = fresh
            own = {n for n, v in values.items() if n in self._holders or isinstance(v, PerRank)}
            shapes = {
                n: jax.ShapeDtypeStruct(v.shape[1:] if n in own else v.shape, v.dtype)
                for n, v in values.items()
            }
            layouts = self.plan_layouts(shapes)
            self._jitted.clear()
            self.ready.clear()
            self.called.clear()
        borrowed = (
            Borrowed() if taken is None else borrow(scope, (n for n in values if n not in taken))
        )
        buffers = StateBuffers(scope, layouts, values, self.where, self.sharded)
        buffers.bind(borrowed)
        scope.bound[self], self._last, buffers.step = (
            buffers,
            weakref.ref(buffers),
            weakref.ref(self),
        )
        return buffers

    def plan_layouts(self, shapes: Mapping[str, Any]) -> tuple[StateLayout, StateLayout]:
        """Decide how state of these shapes and dtypes travels: what the step writes, and what it
        only reads.
        """
        self.shapes, mutable = shapes, {n: shapes[n] for n in self.written if n in shapes}
        constant = {n: v for n, v in shapes.items() if n not in mutable}
        packing, flops = self.tuning.packs, products(self.step) * LEAST_BATCH
        orders = turned(self.step) if self.where.reorders else {}
        self.layouts = (
            plan(mutable, packing, flops, self.own),
            plan(constant, packing, flops, self.own, orders),
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
            self.own = divergent(self.step, [*self._holders, *self.made])
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
        for name in (*(n for n in self.step.reads if n not in self._holders), *self.sharded):
            var = scope.find_var(name)
            if var is not None and (taken is None or name in taken):
                var.storage.release()
            value = (
                None
                if var is None
                else self._parts(var)
                or (var.storage if isinstance(var.storage, Turned) else var.storage.read())
            )
            if value is None:
                value = zeros(self.step, name)
            if value is None:
                raise EnforceNotMet(
                    f"variable {name!r} is not initialised; run the startup program first"
                )
            value = (
                value if isinstance(value, jax.Array | ShardedValue | Turned) else np.asarray(value)
            )
            shape = (
                self.sharded[name].shape
                if name in self.sharded
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
            if n not in self.sharded and (v := self._per_rank(scope, n)) is not None
        }
        kept.update(self._dealt({n: values.pop(n) for n in self.sharded}))
        self.own = divergent(self.step, [*kept, *self.made])
        return {**values, **kept}, (types, self.own)

    def apart(self, scope: Scope) -> dict[str, Any]:
        """Values of what the step reads, for a run that takes its time: those that other programs
        may change are copies.
        """

        def values() -> dict[str, Any]:
            taken = {*self.written} if borrows(self.where) else None
            found, _ = self.collect(scope, taken)
            for name in found.keys() - (found.keys() if taken is None else taken):
                var = scope.find_var(name)
                found[name] = (
                    found[name] if var is None or var.turn is NOBODY else lasting(found[name])
                )
            return {n: v.read() if isinstance(v, Turned) else v for n, v in found.items()}

        return scope.between_steps((*self.step.reads, *self.sharded), values)

    def _parts(self, var: ScopeVar) -> ShardedValue | None:
        """The variable as it lies on this mesh already, if it does."""
        value = var.storage.shards() if var.name in self.sharded else None
        return (
            value
            if value is not None
            and value.placed == self.sharded[var.name]
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
        placed = {n: self.sharded[n] for n in wholes}
        found = dealt(placed, agreed, self._holders, self.where.count)
        return {
            **lying,
            **{
                n: per_rank(v.reshape(len(v), *(self.step.desc.blocks[0].vars[n].shape or ())))
                for n, v in found.items()
            },
        }

    def keep(self, name: str, value: Any) -> Any:
        """A newly created variable as the scope has it."""
        if name in self.made:
            return ShardedValue(self.made[name], {name: value}, self.where.read)
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
        if kind not in self._jitted:
            name = label(op.type for op in self.step.ops)
            CACHE.mend(name)
            body = named(self.body(kind), name)
            options: dict[str, Any] = {
                "donate_argnums": (0,) if self.donates(kind) else (),
                "compiler_options": self.options,
            }
            if kind.in_turn:
                self._jitted[kind] = jax.jit(body, out_shardings=self._homes(kind), **options)
            elif isinstance(self.where, Mesh):
                self._jitted[kind] = self._spmd(body, kind, options)
            else:
                self._jitted[kind] = jax.jit(body, **options)
        return self._jitted[kind]

    def donates(self, kind: Kind) -> bool:
        """Whether a call is given the old state, whose arrays are no more afterwards."""
        return not (kind.checked or self.may_raise or self.reads_only)

    def body(self, kind: Kind) -> Any:
        """What the jitted function runs, traced in the form that suits how it is compiled."""
        if (
            self.wanted is not IN_LIBRARY
            or (self.options or {}).get(YNNPACK) != IN_LIBRARY[YNNPACK]
        ):
            return self._bodies[kind]
        run = kept_apart(self._bodies[kind])

        def call(*args: Any) -> Any:
            with loops_in_library():
                return run(*args)

        return call

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
        return [n for n in self.written if n not in known]

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
        for name in self.written:
            if name in state:
                # Two names may not share one buffer: the next step donates it.
                own[name] = jnp.copy(state[name]) if id(state[name]) in taken else state[name]
                taken.add(id(state[name]))
        extra = {n: own[n][None] if n in self.own else own[n] for n in self._created() if n in own}
        return self.layouts[0].pack(own), extra

    def _key(self, seed: Any, step: Any) -> Any:
        return jax.random.fold_in(jax.random.key(seed), step) if self.random else None

    def _run(
        self, old: dict[str, Any], feed: Any, key: Any, rank: Any = None, watch: Any = None
    ) -> tuple[dict[str, Any], list[Any], Any]:
        """The state after a step, which is the old one where an op objects, the fetches of this
        rank, and the word (or None).
        """
        state, values, word = self.step.run(old, feed, key, self.objections, watch, rank)
        found = agreed(word, None if rank is None else AXIS)
        return unless(found, state, old), of_rank(values, self.where.count), found

    def _one(
        self, mutable: Any, constant: Any, feed: Any, seed: Any, step: Any, rank: Any = None
    ) -> Any:
        old, key = self._state(mutable, constant), self._key(seed, step)
        some = at_once(self.step, old, feed)
        if some:
            state, word = old, None
            # the state unpacked in the loop, where it is used, so that the turning of filters is
            # seen to undo itself
            fetched = mapped(
                lambda part: self._run(self._state(mutable, constant), part, key)[1], feed, some
            )
        else:
            state, fetched, word = self._run(old, feed, key, rank)
        self.recompiles.add(feed)  # now that no op refused it
        return *self._split(state, constant), fetched, word

    def _many(
        self, mutable: Any, constant: Any, feeds: Any, seed: Any, step: Any, rank: Any = None
    ) -> Any:
        def body(carry: Any, feed: Any) -> Any:
            arrays, count, before = carry
            with enclosed():
                state, fetched, word = self._run(
                    self._state(arrays, constant), feed, self._key(seed, count), rank
                )
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
        finite = self.finite[Kind.CHECKED] = Finite(self.step.ops)
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
        results = lockstep(self.step, states, feeds, self._key(seed, step), watch, self.objections)
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
        finite = self.finite[Kind.CHECKED_TURNS] = Finite(self.step.ops)
        return *self._turns(mutable, constant, feeds, seed, step, finite.watch), finite.flags


# kinds of values of which a compiled step is particular to more than shape and dtype
_FORMED = frozenset({Ragged, Fixed})
