"""ProgramDesc -> Step: one run of a program as a pure function.

``step(state, feed, key) -> (state, fetches)`` interprets the ops of block 0 in order over an
environment of named values. It reads and writes nothing else, so jax.jit, scan, vmap and grad apply
to it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp

from ..base.dtypes import numpy_dtype
from ..errors import (
    EnforceNotMet,
    FeedError,
    FetchError,
    MixesRows,
    UnsupportedError,
    VerifyError,
    near,
)
from ..ir import walk
from ..ir.desc import OpDesc, ProgramDesc, VarDesc
from ..ir.text import op_called
from ..ops.absent import reasons
from ..ops.checking import WORD
from ..ops.concrete import known
from ..ops.described import answered, described
from ..ops.fixed import Fixed
from ..ops.loop_course import LIMIT
from ..ops.loops import is_mapped
from ..ops.missing import MISSING, assigned, fetched, missing
from ..ops.ragged import Ragged
from ..ops.registry import GRAD, REGISTRY, OpDef, control, lookup, pullback, traits
from ..ops.selected import SelectedRows
from ..ops.target import Target
from ..ops.tensor_array import KIND as TENSOR_ARRAY
from ..ops.tensor_array import Listed
from ..ops.traits import Runs
from ..ops.unfilled import refuse_unfilled
from ..xla_cpu.policy import Schedule, choose
from .cases import Looked, looked_up
from .checks import Objections, begin, looked_at_when_fed, out_of_bounds
from .control import ControlCall, refuse_remote
from .env import Context, Env, op_key, read_slots, requested, write_slots
from .in_place import as_before, note_reshaped
from .mapped import add_up, as_varying
from .open import closed as closed_desc
from .open import is_open, open_sizes
from .order import by_use
from .origins import keep_origin, with_origins
from .pairing import pair_gradients
from .recomputed import Tie, on_host, ties
from .rows import as_rows, is_ragged, treat, whole_rows
from .selected import is_sparse, treat_sparse
from .sizes import SizeNeeds, checked, decided, folded
from .unlike import are_unlike, fits_within, look


@dataclass(frozen=True, eq=False)
class Step:
    """A program as a function.

    desc: the program. fetches: names that it returns. literal: gradient ops recompute their forward
    op (the tests' reference) instead of sharing its pullback. exact: feeds that decide an op's
    number of rows are constants too (SizeNeeds). counted: the uids of loops whose number of
    iterations depends on feeds, as constants. in_blocks: data-dependent numbers of rows may go
    through large weights block by block. in_place: updates wait until nothing reads the old
    parameter (xla_cpu/last_readers.py). offloads: values that wait for the backward pass under a
    host name (passes/offload.py) are stored in the host's memory. given: persistable variables that
    are fed: the state takes the fed values. unset: persistable variables that only blocks write,
    and that have no value yet: they begin without one.
    """

    desc: ProgramDesc
    fetches: tuple[str, ...] = ()
    literal: bool = False
    exact: bool = False
    counted: frozenset[int] = frozenset()
    in_blocks: bool = False
    in_place: bool = False
    given: frozenset[str] = frozenset()
    unset: frozenset[str] = frozenset()
    offloads: bool = False

    def __post_init__(self) -> None:
        if problem := walk.misnested(self.desc):
            raise VerifyError(f"the program cannot run: {problem}")
        # Tracing and lowering recurse about forty calls deeper for each nested block. Resetting the
        # limit could fail a thread that is deep in such blocks.
        if (needed := 1000 + 80 * min(len(self.desc.blocks), walk.MOST_NESTED)) > max(
            sys.getrecursionlimit(), 3000
        ):
            sys.setrecursionlimit(needed)
        refuse_remote(self.desc)
        unknown = unsupported(self.desc, self.ops)
        if unknown:
            names = f"{', '.join(unknown)}{reasons(unknown)}"
            raise UnsupportedError(
                f"the program needs {len(unknown)} op types that are not supported: {names}"
            )
        refuse_unfilled(self.desc, self.ops)

    @cached_property
    def ops(self) -> tuple[OpDesc, ...]:
        """The ops of block 0 that something depends on (a fetch, a persistable variable, a side
        effect), updates in order of use.
        """
        return by_use(self._looked_up.ops)

    @cached_property
    def _looked_up(self) -> Looked:
        ops = self.desc.blocks[0].ops
        found = Looked(ops) if self.literal else looked_up(self.desc, ops)
        needed = set(self.fetches)
        kept = []
        for op in reversed(found.ops):
            runs = traits(op.type).runs
            if runs is Runs.HOST:
                continue
            writes = walk.writes_with_subblocks(self.desc, op) if op.blocks else op.writes
            if runs.acts or any(n in needed or self._outlives(n) for n in writes):
                kept.append(op)
                walk.step_back(self.desc, op, needed)
        return Looked(tuple(reversed(kept)), found.sure)

    def _outlives(self, name: str) -> bool:
        var = self.desc.blocks[0].vars.get(name)
        return var is not None and var.persistable

    @cached_property
    def uses(self) -> tuple[dict[str, OpDesc], dict[str, None]]:
        """Names read before they are written, with their first reader; and all names written."""
        return walk.uses(self.desc, self.ops, carried)

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """Persistable variables that must be in the state."""
        first, written = self.uses
        fetched = [n for n in self.fetches if n not in written]
        elsewhere = self.kernels_own | self.given | self.unset
        return tuple(
            dict.fromkeys(n for n in (*first, *fetched) if self._outlives(n) and n not in elsewhere)
        )

    @cached_property
    def kernels_own(self) -> frozenset[str]:
        """Variables for the internal state of Paddle's kernels (kind RAW: a cudnn_lstm's Cache):
        ops get None for them.
        """
        return frozenset(
            n for n, v in self.desc.blocks[0].vars.items() if v.kind == "RAW" and n in self.uses[0]
        )

    @cached_property
    def begin_at_zero(self) -> Mapping[str, VarDesc]:
        """Accumulators that need not be in the state: the first op that reads a missing one ignores
        it, and sets it.
        """
        found = (
            (name, op, self.desc.blocks[0].vars.get(name))
            for name, op in self.uses[0].items()
            if name not in self.given
        )
        return {name: var for name, op, var in found if var is not None and _passes_over(op, var)}

    @cached_property
    def writes(self) -> tuple[str, ...]:
        """Persistable variables that the step writes."""
        return tuple(
            dict.fromkeys(n for n in (*sorted(self.given), *self.uses[1]) if self._outlives(n))
        )

    @cached_property
    def feeds(self) -> Mapping[str, VarDesc]:
        """Variables that must be fed."""
        first, written = self.uses
        names = [
            n
            for n in (*first, *(f for f in self.fetches if f not in written))
            if not self._outlives(n)
        ] + sorted(self.given)
        vars = self.desc.blocks[0].vars
        names = [n for n in names if n not in self._may_be_missing or n in self.given]
        # arrays start out empty
        fed = {n: vars[n] for n in names if n in vars and vars[n].kind in walk.FEEDABLE_KINDS}
        return {n: v for n, v in fed.items() if GRAD not in n or n in self.given or self._seeded(n)}

    def may_be_unset(self) -> frozenset[str]:
        """The persistable variables that need no initial value, because only blocks write them, and
        no op reads them before.
        """
        return frozenset(n for n in self._may_be_missing if self._outlives(n))

    @cached_property
    def _may_be_missing(self) -> frozenset[str]:
        """Names without a value at the start: no op reads them before one writes them, but the
        block that writes them may not run.
        """
        vars, read = self.desc.blocks[0].vars, walk.uses(self.desc, self.ops, lambda *_: ())[0]
        return frozenset(
            n
            for n in self.uses[0]
            if n not in read and n in vars and not (vars[n].is_data or vars[n].need_check_feed)
        )

    def _seeded(self, name: str) -> bool:
        """Whether a gradient is fed, which requires a data variable."""
        var = self.desc.blocks[0].vars.get(name)
        return var is not None and var.is_data

    @cached_property
    def random(self) -> bool:
        """Whether the step uses random numbers."""
        below = walk.below(self.desc, self.ops)
        return any(lookup(op.type).is_random(op.attrs) for op in (*self.ops, *below))

    @cached_property
    def pairs(self) -> dict[int, tuple[OpDesc, ...]]:
        """uid of a forward op -> the derived gradient ops that see exactly the values it saw."""
        return {} if self.literal else pair_gradients(self.ops)

    @cached_property
    def ties(self) -> dict[int, Tie]:
        """The values delayed until a gradient arrives, by the position of the op before which they
        are delayed (recomputed.py).
        """
        return {} if self.literal else ties(self.ops, self.desc.blocks[0].vars)

    @cached_property
    def waits(self) -> dict[int, Tie]:
        """The positions that updates wait for, by their uid."""
        wanted = self.in_place and not self.literal
        return choose().waits(self.desc, self.ops) if wanted else {}

    @cached_property
    def schedule(self) -> Schedule | None:
        """A schedule for the ops that suits the compiler; None: one op after another."""
        if self.literal or self.ties:
            return None
        alone = frozenset(self.pairs) | self.sizes.folded if self.in_blocks else None
        return choose().schedule(self.desc, self.ops, (*self.writes, *self.fetches), alone)

    @cached_property
    def sizes(self) -> SizeNeeds:
        """The values that decide sizes, and their origins."""
        return SizeNeeds(self.desc, self.ops, frozenset(self.feeds), self.exact, self.counted)

    def __call__(
        self,
        state: Mapping[str, Any],
        feed: Mapping[str, Any],
        key: jax.Array | None = None,
        watch: Any = None,
        rank: Any = None,
    ) -> tuple[dict[str, Any], list[Any]]:
        """Run the ops. Returns the state with the written variables replaced, and the fetched
        values in order.

        rank: this device's number if several run the step together (see Context). Raises FeedError
        for a missing feed, EnforceNotMet for a variable that the state lacks, and the errors of
        ops, with the op's text and the user's line attached.
        """
        objections = Objections()
        state, values, word = self.run(state, feed, key, objections, watch, rank)
        if known(word) is not None:  # under an outer jit nothing checks it
            objections.refuse(word)
        return state, values

    def run(
        self,
        state: Mapping[str, Any],
        feed: Mapping[str, Any],
        key: Any,
        objections: Objections,
        watch: Any = None,
        rank: Any = None,
        target: Target | None = None,
    ) -> tuple[dict[str, Any], list[Any], Any]:
        """The results of a call, and the word with errors of ops (checks.py); NumPy's if there can
        be none. target: how ops are lowered; the default suits any platform.
        """
        if self._open:
            closed = self.closed(state, feed)
            return closed.run(state, feed, key, objections, watch, rank, target)
        env, ctx = self.enter(state, feed), self.context(key, objections, watch, rank, target)
        ctx = replace(ctx, unlike=are_unlike(env, self.feeds))
        with jax.enable_x64(True):
            self._run(env, ctx)
            changed, values = self.leave(env, ctx)
        return {**state, **changed}, values, env[WORD] if ctx.objected else begin()

    def closed(self, state: Mapping[str, Any], feed: Mapping[str, Any]) -> Step:
        """The step at the sizes of its inputs (open.py); itself if no size is open.

        Raises FeedError for sizes that contradict each other.
        """
        if not self._open:
            return self
        vars = self.desc.blocks[0].vars
        given = [vars[n] for n in (*self.feeds, *self.reads)]
        known = open_sizes(given, {**state, **feed})
        key = tuple(sorted(known.items()))
        if key not in self._at_sizes:
            self._at_sizes[key] = replace(self, desc=closed_desc(self.desc, known))
        return self._at_sizes[key]

    @cached_property
    def _open(self) -> bool:
        return is_open(self.desc)

    @cached_property
    def _at_sizes(self) -> dict[Any, Step]:
        return {}

    def context(
        self,
        key: Any,
        objections: Objections | None = None,
        watch: Any = None,
        rank: Any = None,
        target: Target | None = None,
    ) -> Context:
        """The context of all ops of one run."""
        return Context(
            self.desc, key, self.literal, {}, watch, rank, self.sizes, objections=objections,
            fed=self.fed_integers, target=choose().target if target is None else target,
        )  # fmt: skip

    @cached_property
    def fed_integers(self) -> frozenset[int]:
        """The uids of ops whose integers are checked as feeds, or are in range by construction."""
        return looked_at_when_fed(self.desc, self.ops) | self._looked_up.sure

    def enter(self, state: Mapping[str, Any], feed: Mapping[str, Any]) -> Env:
        """The values before the first op."""
        env: Env = {WORD: begin(), **dict.fromkeys(self.kernels_own)}
        for name in self.reads:
            if name not in state:
                raise EnforceNotMet(self.uninitialised(name))
            env[name] = state[name]
        for name, var in self.feeds.items():
            if name not in feed:
                raise FeedError(f"{name!r} must be fed{self.reader_of(name)}")
            env[name] = as_declared(feed[name], var)
        env.update((n, v.array) for n, v in feed.items() if n.startswith(LIMIT))
        return env

    def leave(self, env: Env, ctx: Context) -> tuple[dict[str, Any], list[Any]]:
        """The written variables and the fetched values, after the last op."""
        self._refuse_missing(env, ctx)
        values = [self._fetched(env, name) for name in self.fetches]
        return {n: _to_keep(n, env[n]) for n in self.writes if n in env}, values

    def _refuse_missing(self, env: Env, ctx: Context) -> None:
        """Raise for a fetch of a variable that only a block writes, if the block has not run."""
        for name, objection in fetched((*self.fetches, *self.unset), env):
            maker = next(
                op
                for op in reversed(self.ops)
                if op.blocks and name in walk.writes_with_subblocks(self.desc, op)
            )
            ctx.object_to(maker, env, [objection])

    def run_one(self, op: OpDesc, env: Env, ctx: Context) -> None:
        """Run one of `ops`, which must be run in order."""
        if op.uid in self.waits:
            self.waits[op.uid].hold(env)
        moves = self.offloads and op.type == "assign"
        if moves:
            on_host(env, op.reads, there=False)
        run_op(op, env, ctx, self.pairs.get(op.uid, ()))
        if moves:
            on_host(env, op.writes, there=True)

    def _run(self, env: Env, ctx: Context) -> None:
        schedule = None if ctx.watch is not None else self.schedule
        if schedule is not None:
            schedule.run(env, ctx, self.run_one)
            return
        for at, op in enumerate(self.ops):
            if at in self.ties:
                self.ties[at].hold(env)
            self.run_one(op, env, ctx)

    def _fetched(self, env: Env, name: str) -> Any:
        var = self.desc.find_var(name)
        if name not in env and var is not None and var.kind == TENSOR_ARRAY:
            return Listed()  # arrays begin empty
        if env.get(name) is None:
            raise FetchError(
                f"fetch target {name!r} has no value: no op computes it{near(name, env)}"
            )
        return jax.tree.map(jnp.asarray, env[name])

    def uninitialised(self, name: str) -> str:
        """The message for a variable of the state without a value, with the source of its first
        one.
        """
        op = self.uses[0].get(name)
        traced = op is not None and op.type.startswith("jax.")
        cure = "write() what fluid.trace returned" if traced else "run the startup program"
        return f"variable {name!r} is not initialised; {cure} first"

    def reader_of(self, name: str) -> str:
        """The op that reads a missing feed, for a message; for a traced argument also the
        alternative to feeding it.
        """
        op = self.uses[0].get(name)
        if op is None:
            return ""
        root, _, leaf = name.partition(".")
        state = f"{root!r}" if leaf else f"{{{root!r}: None}}"
        hint = f" (a parameter is one of fluid.trace's state={state})"
        return f": {op_called(op)} reads it{hint if op.type.startswith('jax.') else ''}"


def _passes_over(op: OpDesc, var: VarDesc) -> bool:
    slots = [s for s in traits(op.type).passes_over if var.name in op.input(s)]
    whole = var.shape is not None and min(var.shape, default=0) >= 0
    sized = whole or any(s in traits(op.type).counters for s in slots)
    return (
        bool(slots)
        and var.persistable
        and var.dtype is not None
        and sized
        and var.name in op.writes
    )


def carried(desc: ProgramDesc, op: OpDesc) -> Iterable[str]:
    """The names whose old value may remain after an op with blocks."""
    return control(op.type).carried(desc, op)


def unsupported(desc: ProgramDesc, ops: Iterable[OpDesc] | None = None) -> list[str]:
    """Op types that cannot run, among `ops` (default: all of block 0) and their nested blocks,
    sorted.
    """
    top = tuple(desc.blocks[0].ops if ops is None else ops)
    used = {op.type for op in (*top, *walk.below(desc, top))}
    return sorted(kind for kind in used if kind not in REGISTRY)


def _to_keep(name: str, value: Any) -> Any:
    """A value for the state. Raises MixesRows for padded rows."""
    if isinstance(value, Ragged):
        if value.padded:
            raise MixesRows(
                f"the persistable variable {name!r} takes ragged rows, so it needs exact sizes"
            )
        value = value.rows
    return jax.tree.map(jnp.asarray, value)


def as_declared(value: Any, var: VarDesc) -> Any:
    """A fed value with the dtype that the program declares (a jit outside may have narrowed int64
    to int32).

    One with more bits, or of another kind, is not converted if the variable need not be checked:
    ops check that (unlike.py).
    """
    if isinstance(value, Fixed):
        value = value.array
    if isinstance(value, Ragged):
        # Not NumPy arrays, which a traced value cannot index.
        return replace(
            value, rows=as_declared(value.rows, var), offsets=tuple(map(jnp.asarray, value.offsets))
        )
    if isinstance(value, SelectedRows):
        return replace(value, values=as_declared(value.values, var))
    value = value if hasattr(value, "dtype") else jnp.asarray(value)
    if var.dtype is None or value.dtype == numpy_dtype(var.dtype):
        return value
    if not (
        var.need_check_feed or var.persistable or fits_within(value.dtype, numpy_dtype(var.dtype))
    ):
        return value
    with jax.enable_x64(True):
        return jnp.asarray(value, numpy_dtype(var.dtype))


def run_block(idx: int, env: Env, ctx: Context) -> None:
    """Run every op of a block in `env`."""
    for op in ctx.desc.blocks[idx].ops:
        run_op(op, env, ctx, ())


def run_op(op: OpDesc, env: Env, ctx: Context, gradients: Sequence[OpDesc]) -> None:
    """Run one op. `gradients`: the gradient ops that will use its pullback."""
    with described(op):
        with jax.named_scope(op.type):
            lower = lookup(op.type).control.lower
            if lower is not None:
                lower(ControlCall(op, env, ctx, run_block))
            else:
                _run_plain(op, env, ctx, gradients)
        if MISSING in env and not op.blocks:
            assigned(env, op.writes)
        if ctx.watch is not None:
            ctx.watch(op, env)


def _run_plain(op: OpDesc, env: Env, ctx: Context, gradients: Sequence[OpDesc]) -> None:
    definition = lookup(op.type)
    given = read_slots(op, definition, env)
    inputs = with_origins(op, definition, given, ctx)
    if ctx.before and definition.forward is not None:
        inputs = as_before(op, inputs, ctx.before)
    summed = definition.forward is not None and is_mapped()
    if summed:
        inputs = as_varying(inputs)
    with answered(definition, inputs, op.attrs):
        if definition.forward is None:
            if ctx.unlike:
                look(op, inputs, ctx.desc)
            _object(op, definition, inputs, env, ctx)
        inputs, results = _computed(op, definition, inputs, ctx, gradients)
    write_slots(op, definition, results, env)
    if summed:
        add_up(op, env, ctx)
    if definition.forward is not None:
        note_reshaped(op, env, ctx.before)
    keep_origin(op, definition, given, env, ctx)


def _computed(
    op: OpDesc, definition: OpDef, inputs: dict[str, Any], ctx: Context, gradients: Sequence[OpDesc]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The inputs in the op's form, and its outputs in the program's."""
    sparse = is_sparse(inputs)
    if not (sparse or is_ragged(inputs)):
        return inputs, _results(op, inputs, ctx, gradients)
    with whole_rows(definition, inputs):
        treated = (
            treat_sparse(op, definition, inputs)
            if sparse
            else treat(definition, inputs, definition.arguments(op.attrs))
        )
        computed = (
            _results(op, treated.inputs, ctx, gradients)
            if treated.results is None
            else treated.results
        )
        return inputs, treated.shown(computed)


def _object(op: OpDesc, definition: OpDef, inputs: dict[str, Any], env: Env, ctx: Context) -> None:
    """Record the op's errors for its input values, unless these have been checked before."""
    if (
        definition.traits.bounds is not None
        and op.uid not in ctx.fed
        and ctx.objections is not None
    ):
        ctx.object_to(op, env, out_of_bounds(op, definition, inputs))
    if definition.traits.refuses is not None:
        given = as_rows(definition, inputs)
        with whole_rows(definition, given):
            ctx.object_to(op, env, definition.traits.refuses(given, definition.arguments(op.attrs)))
    if MISSING in env:
        ctx.object_to(op, env, missing(op.reads, env))


def _results(
    op: OpDesc, inputs: dict[str, Any], ctx: Context, gradients: Sequence[OpDesc]
) -> dict[str, Any]:
    """The outputs by slot: from a pullback if one is kept for this op, else from the op itself."""
    definition = lookup(op.type)
    stored = ctx.pullbacks.pop(op.uid, None)
    if stored is not None:
        graddef = lookup(definition.forward or "").grad
        assert graddef is not None
        return stored(
            {
                o.removesuffix(GRAD): inputs.get(s)
                for s, o in graddef.takes.items()
                if o.endswith(GRAD)
            }
        )
    if ctx.sizes is not None and op.uid in ctx.sizes.folded:
        known = folded(definition, inputs, op.attrs)
        if known is not None:
            return known
    key = op_key(op, ctx, inputs) if definition.is_random(op.attrs) else None
    wanted = requested(op) if definition.forward is not None else None
    if definition.traits.sizes is not None and ctx.sizes is not None:
        follows = decided(op, ctx.sizes.of(op), inputs)
        if follows:
            checked(definition, follows, inputs, op.attrs, key, wanted)
    if not gradients:
        return definition(inputs, op.attrs, key, wanted, ctx.target)
    assert definition.grad is not None
    asked = {slot for g in gradients for slot in requested(g)}
    attrs = definition.arguments(op.attrs)
    result, pull = pullback(definition, definition.grad, inputs, attrs, key, asked, ctx.target)
    for g in gradients:
        ctx.pullbacks[g.uid] = pull
    return result
