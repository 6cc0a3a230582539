"""Executor: runs programs. ``run`` binds its arguments, plans a step, calls it and returns the
fetches (see ``runtime/__init__.py``).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import jax
import numpy as np

from .base.flags import flag
from .compiling.cache import CACHE
from .compiling.compilations import Compilation
from .compiling.kind import Kind
from .compiling.reasons import RecompileReport
from .compiling.recompiles import Recompiles
from .core import EOFException
from .devices import forked
from .devices.place import Place, as_place, starts
from .devices.placement import OneDevice, copied
from .errors import (
    EnforceNotMet,
    FetchError,
    FluidTypeError,
    NotOneStep,
    UnsupportedError,
)
from .feeds.feeding import explained
from .feeds.fetching import as_numpy, shown
from .feeds.for_scripts import as_lodtensor, fetch_var
from .feeds.stacking import each_step, stacked_feeds
from .graph.feeds import fed_names, given_before
from .graph.fetches import fetch_names, fetch_targets
from .graph.program import Program, default_main_program
from .graph.variable import Variable
from .ir.edit import OPTIMIZE, role, run_only
from .loaders.ends import before_reading
from .loaders.slots.executing import RunsDatasets
from .loaders.slots.handler import FetchHandler as FetchHandler
from .lod_tensor import bare_feed
from .lower.step import Step
from .profiling.events import RECORDER, clock
from .profiling.timed import timed, whole
from .runtime.building import tracing
from .runtime.calling import Overtaken, again, call, initialise, run_cut
from .runtime.compiled import Compiled
from .runtime.executables import Executable
from .runtime.job import current_job, job_seed, may_describe_job
from .runtime.plan import StepPlan
from .runtime.prepared import Prepared
from .runtime.runnable import Alone, MakesRunnable, Ranks, Runnable
from .state.buffers import StateBuffers
from .state.scope import Scope, chosen
from .state.turns import stepping

PREPARED = 64  # remembered runs of a program: fetch lists and scopes
_PROCESS_SEED = int.from_bytes(os.urandom(4), "little")  # for programs whose random_seed is 0


class _Before(NamedTuple):
    """The part of a step's key that depends on the values before it. given: fed or read variables
    that have a value (see Step).

    unset: persistable variables that have no value, and need none.
    """

    given: frozenset[str]
    unset: frozenset[str]


class _Bound(NamedTuple):
    """A run with its program and number of steps, its ranks, its scope, and the values before
    it.
    """

    this: Runnable[Program]
    ranks: Ranks
    scope: Scope
    given: _Before


@dataclass(eq=False)
class _Steps:
    """The compiled steps of one program on certain ranks, by version and fetches."""

    compiled: dict[Any, Compiled] = field(default_factory=dict)
    recompiles: Recompiles = field(default_factory=Recompiles)


@dataclass(eq=False)
class _Record:
    """An executor's record of a program. runs: the number of steps taken, on which random numbers
    depend.

    seed: of a restored program whose random_seed is 0. job: how it runs with a job's other
    processes, and the program's version for which that was determined. startup: a job's startup
    program before transpile. prepared: runs that need no further decisions, by fetches and the
    scope's id. ends: the programs to run at a reader's end, by the names of the reader's variables.
    pruned: the programs of use_prune, by version, fetches, updates and feeds. counting: the lock of
    `runs`.
    """

    runs: int = 0
    seed: int | None = None
    job: tuple[int, Ranks | None] | None = None
    startup: Program | None = None
    prepared: dict[tuple[Any, ...], Prepared] = field(default_factory=dict)
    ends: dict[tuple[str, ...], tuple[int, Program | None]] = field(default_factory=dict)
    pruned: dict[Any, Program] = field(default_factory=dict)
    unset: tuple[int, frozenset[str]] | None = None
    steps: WeakKeyDictionary[Ranks, _Steps] = field(default_factory=WeakKeyDictionary)
    counting: Any = field(default_factory=threading.Lock)

    def take(self, count: int = 1, afresh: bool = False) -> int:
        """Reserve `count` steps, and return the number of the first. afresh: it is 0."""
        with self.counting:
            first = 0 if afresh else self.runs
            self.runs = first + count
            return first

    def give_back(self, first: int, count: int, before: int) -> None:
        """Return reserved steps that did not run."""
        with self.counting:
            if self.runs == first + count:
                self.runs = before


class Executor(RunsDatasets):
    """Runs programs on one device.

    place: CPUPlace() or CUDAPlace(i); default the first GPU that JAX sees, or the CPU.
    """

    def __init__(self, place: Place | None = None) -> None:
        self.place = as_place(place)
        self._records: WeakKeyDictionary[Program, _Record] = WeakKeyDictionary()
        self._closed = False
        self._making = threading.RLock()  # held while a step is compiled
        self._find_devices()

    def run(
        self,
        program: Program | Runnable | MakesRunnable | None = None,
        feed: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        fetch_list: Sequence[Variable | str] | Variable | str | None = None,
        feed_var_name: str = "feed",
        fetch_var_name: str = "fetch",
        scope: Scope | None = None,
        return_numpy: bool = True,
        use_program_cache: bool = False,
        return_merged: bool = True,
        use_prune: bool = False,
    ) -> list[Any]:
        """Run a program once and return the values of `fetch_list`.

        program: default the main program; a CompiledProgram may run on several devices
        (with_data_parallel). feed: name -> array of exactly the declared dtype and shape (-1: any
        size), which may be a torch tensor, a DataFrame or a list of arrays; Python numbers and
        lists of them take the declared dtype. fetch_list: variables or names, lists of them, and
        optimize ops or the result of minimize: these return no value, but restrict the updates to
        these ops. scope: the scope of persistable variables; default global_scope(). return_numpy:
        True copies the results to NumPy arrays; False returns LoDTensors, which hold jax.Arrays,
        and does not wait for them. A tensor array is returned as a list. return_merged: for several
        devices, True concatenates their results on dimension 0, False stacks them on a new first
        dimension (or returns a list if their shapes differ). A pserver's program, run by a process
        with that role in a job, returns when the trainers have ended. use_prune: skip ops that only
        write persistable variables, such as counters, unless the fetches or updates need them, and
        do not compute fed variables. feed_var_name, fetch_var_name, use_program_cache: accepted as
        in Fluid; programs are always cached, and only what the fetches and persistable variables
        need is computed.

        Raises FeedError, FetchError (names, dtypes, shapes, ranges), EnforceNotMet (startup program
        not run), and UnsupportedError in a process that was forked from one that had used JAX. Any
        number of threads may call it: runs that write the same variables of a scope take turns,
        others run in parallel. A run that raises does not change the scope. At a reader's end
        (core.EOFException) values that the program computes before the read are stored, such as the
        counter of a learning-rate schedule.
        """
        if forked.without_threads:
            forked.refuse()
        program = default_main_program() if program is None else program
        feed = bare_feed(feed)
        fetches, updates = fetch_targets(fetch_list)
        scope = chosen(scope)
        pruning = use_prune or bool(updates)
        known = None if pruning else self._known(program, fetches, scope, feed)
        if known is not None:
            record, compiled, made, buffers = known
            values: Any = feed
            if not (return_numpy and fetches):
                values = {n: _private_copy(v) for n, v in values.items()}
            fetched = self._call_again(program, record, compiled, made, buffers, values)
            if fetched is not None:
                return _shown(compiled, fetched, return_numpy)
        bound = self._bind(program, fetches, scope, feed, updates if pruning else None)
        if bound is None:
            return []
        feed = self._read(bound, feed, program is None or isinstance(program, Program))
        bound, compiled, values = self._plan(bound, fetches, feed)
        if not (return_numpy and fetches):
            # No caller waits for the results, so the step may still read a fed array after the
            # caller has refilled it.
            values = jax.tree.map(_private_copy, values)
        fetched = self._call(bound, compiled, values, return_numpy)
        self._load_served_tables(bound)
        some, along = bound.ranks.fed(feed), compiled.plan.joined_along
        merged = bound.ranks.merge(fetched, return_merged, some, along)
        return _shown(compiled, merged, return_numpy)

    def run_steps(
        self,
        program: Program | Runnable | MakesRunnable | None = None,
        feeds: Sequence[Mapping[str, Any]] | Mapping[str, Any] | None = None,
        fetch_list: Sequence[Variable | str] | None = None,
        scope: Scope | None = None,
        return_numpy: bool = True,
    ) -> list[Any]:
        """Run a program K times in one call (jax.lax.scan), and return the fetches stacked on a new
        first dimension.

        feeds: K feed dicts of equal shapes, or one dict of arrays that have a leading dimension K.
        Equal to K calls of run, random numbers included. LoDTensors must have equally many
        sequences in each step and are padded to the largest; a fetch with ragged rows returns a
        list of K values. Raises the errors of run, and UnsupportedError for feeds that one call
        cannot take; then no step has run.
        """
        fetches = fetch_names(fetch_list)
        scope = chosen(scope)
        this = self._holding(self._runnable(program), fetches)
        if this.fits is not None:
            raise UnsupportedError(
                "run_steps takes no BuildStrategy.memory_budget; call run, or"
                " memory_optimize(program, budget=...)"
            )
        bound = self._in_scope(this, scope, feeds)
        compiled = self._compile(bound, fetches)
        checks = partial(compiled.plan.check_feed, parts=bound.ranks.where.count)
        stacked, count, first = stacked_feeds(feeds, checks, compiled.packed)
        bound.ranks.check_steps(stacked)

        steps = partial(self._execute, compiled, bound, stacked, count, return_numpy)
        compiled.fit(first)
        try:
            fetched = self._in_turn(bound, compiled, steps)
        except Exception as error:
            raise explained(error, compiled.plan.rules, first)  # noqa: B904
        return _shown(compiled, [each_step(v, count) for v in fetched], return_numpy)

    def compiled_steps(
        self, program: Program | Runnable | MakesRunnable | None = None
    ) -> list[Compiled]:
        """The steps that this executor has compiled for the program's current version, one for each
        fetch list.
        """
        this = self._runnable(program)
        steps = self._record(this.program).steps.get(this.ranks or self._alone)
        return (
            []
            if steps is None
            else [
                c for (version, *_), c in steps.compiled.items() if version == this.program.version
            ]
        )

    def compilations(
        self, program: Program | Runnable | MakesRunnable | None = None
    ) -> list[Compilation]:
        """The compilations of the program's current version: their feeds, fetches and times."""
        return [made for step in self.compiled_steps(program) for made in step.compilations]

    def explain_recompiles(
        self, program: Program | Runnable | MakesRunnable | None = None
    ) -> RecompileReport:
        """The compilations of a program since it was made: the line of the script, the time, and
        the reason.

            print(exe.explain_recompiles(main))
            # 2 executables were compiled of this program, 0.61 s in all:
            #   1. train.py:31, 0.33 s: the first run
            #   2. train.py:31, 0.28 s: feed 'x' is float32[5, 13], before float32[32, 13]

        The reason is the difference from the most similar executable that was compiled before.
        Earlier versions of the program are included, which `compilations` leaves out.
        """
        this = self._runnable(program)
        steps = self._record(this.program).steps.get(this.ranks or self._alone)
        return RecompileReport(() if steps is None else tuple(steps.recompiles.reasons.made))

    def random_state(self, program: Program) -> tuple[int, int]:
        """The complete random state: the seed that a program's random numbers depend on, and the
        number of steps it has taken.
        """
        record = self._record(program)
        return _seed(program, record), record.runs

    def set_random_state(self, program: Program, seed: int, runs: int) -> None:
        """Set the random state of a program. seed: for a program whose random_seed is 0."""
        record = self._record(program)
        record.runs = runs
        if not program.random_seed:
            record.seed = seed

    def rank_count(self, program: Program | Runnable | MakesRunnable | None) -> int:
        """The number of ranks that a program runs on."""
        return (self._runnable(program, joins=False).ranks or self._alone).where.count

    def close(self) -> None:
        """Drop compiled programs; the executor cannot run any more."""
        self._records.clear()
        self._closed = True

    def flush(self) -> None:
        """Does nothing, because a run stores its values in the scope."""

    # -- inside ------------------------------------------------------------------------------------

    def _find_devices(self) -> None:
        """Find the devices. Executables for other devices are dropped; the numbers of steps are
        kept.
        """
        self._device = self.place.device()
        self._elsewhere = self._device != jax.local_devices()[0]
        self._alone = Alone(OneDevice(self._device))
        self._several = jax.process_count() > 1
        self._settled = starts()
        for program, record in list(self._records.items()):
            self._records[program] = _Record(record.runs, record.seed, startup=record.startup)

    # The stages of a run: bind (program, ranks, scope), plan (step, feed), call, show.

    def _known(
        self, program: Any, fetches: tuple[str, ...], scope: Scope, feed: Any
    ) -> tuple[_Record, Compiled, Executable, StateBuffers] | None:
        """The record, executable and buffers of an earlier equal run, if there was one and nothing
        has changed since. Raises FeedError for integers that are out of range.
        """
        record = self._records.get(program) if type(program) is Program else None
        if record is None or not record.prepared or RECORDER.on is not None or current_job():
            return None
        prepared = record.prepared.get((fetches, id(scope)))
        if prepared is None or prepared.version != (program.version, program.info):
            return None
        buffers = prepared.standing(scope)
        if buffers is None or (made := prepared.made_for(feed)) is None:
            return None
        return record, prepared.compiled, made, buffers

    def _call_again(
        self,
        program: Any,
        record: _Record,
        compiled: Compiled,
        made: Executable,
        buffers: StateBuffers,
        feed: Any,
    ) -> list[Any] | None:
        """The fetches of a further call; None if another thread has changed something in the
        meantime.
        """
        taken = record.take()
        try:
            seed, step = _numbers(compiled, program, record, taken)
            fetched: list[Any] = again(compiled, made, buffers, (feed, seed, step))[2]
            return fetched
        except BaseException as error:
            record.give_back(taken, 1, taken)
            if isinstance(error, Overtaken):
                return None
            if isinstance(error, Exception):
                raise explained(error, compiled.plan.rules, feed)  # noqa: B904
            raise

    def _bind(
        self,
        program: Any,
        fetches: tuple[str, ...],
        scope: Scope,
        feed: Any,
        updates: tuple[int, ...] | None,
    ) -> _Bound | None:
        """The program to run, and where; None for a pserver's program, which has run as long as the
        job. updates: the program is pruned to these (see _pruned).
        """
        this = self._holding(self._runnable(program), fetches)
        if updates is not None:
            this = this._replace(program=self._pruned(this.program, fetches, updates, feed))
        job = current_job()
        if job is not None and job.serves(this.program.desc, this.program.info.loaded_from):
            return None
        return self._in_scope(this, scope, feed)

    def _in_scope(self, this: Runnable[Program], scope: Scope, feed: Any) -> _Bound:
        """The program bound to its scope."""
        given = _Before(given_before(this.program, feed), self._unset(this.program, scope))
        return _Bound(this, this.ranks or self._alone, scope, given)

    def _plan(
        self, bound: _Bound, fetches: tuple[str, ...], feed: Any
    ) -> tuple[_Bound, Compiled, Any]:
        """The step of a run, on ranks that keep its budget, and the feed in the form that the step
        takes.
        """
        compiled = self._compile(bound, fetches)
        values = bound.ranks.split(feed or {}, compiled.plan.check_feed)
        fits, program = bound.this.fits, bound.this.program
        if fits is not None:

            def within(ranks: Ranks) -> Compiled:
                return self._compile(bound._replace(ranks=ranks), fetches, within_budget=True)

            ranks = fits.ranks(program, bound.ranks, fetches, values, within)
            bound, compiled = bound._replace(ranks=ranks), within(ranks)
        compiled.fit(values)
        return bound, compiled, values

    def _load_served_tables(self, bound: _Bound) -> None:
        """A trainer has run the job's first program: load tables of pservers."""
        job = current_job()
        if bound.this.begins is not None and job is not None and (loaded := job.loaded()):
            from .saved.jobs import take_loaded

            take_loaded(bound.this.begins, loaded, bound.scope)

    def _read(self, bound: _Bound, feed: Any, counts_ends: bool) -> Any:
        """The feed with the values of the program's readers, which take precedence over fed ones,
        as in Fluid.
        """
        program = bound.this.program
        if not program.info.readers:
            return feed
        try:
            return bound.ranks.read(feed or {}, program.info.readers)
        except EOFException as end:
            if counts_ends and bound.ranks is self._alone:
                self._end(program, end.names, bound.scope)
            raise

    def _call(self, bound: _Bound, compiled: Compiled, values: Any, numpy: bool) -> list[Any]:
        """The fetches of the last step of a run. The steps run in their turn."""
        this, scope = bound.this, bound.scope

        def steps() -> list[Any]:
            fetched = self._execute_adapting(compiled, bound, values, numpy)
            for _ in range(this.iterations - 1):
                fetched = self._execute(compiled, bound, compiled.packed(values), numpy=numpy)
            return fetched

        fetched = self._in_turn(bound, compiled, steps)
        if bound.ranks is self._alone and this.iterations == 1:
            self._prepare(this.program, compiled, scope, values)
        return fetched

    @staticmethod
    def _in_turn(bound: _Bound, compiled: Compiled, steps: Callable[[], list[Any]]) -> list[Any]:
        """Run `steps` in their turn, at the learning rates that the program's schedules set."""

        def at_their_rates() -> list[Any]:
            with ExitStack() as stack:
                for schedule in bound.this.program.info.schedules:
                    stack.enter_context(schedule.set_in(bound.scope))
                if not compiled.in_force(bound.scope):
                    bound.ranks.prepare(bound.scope)
                return steps()

        return stepping(compiled.turns(bound.scope), at_their_rates)

    def _holding(self, this: Runnable[Program], fetches: tuple[str, ...]) -> Runnable[Program]:
        """The program to run for a fetch whose memory memory_optimize reused: a step of the
        original program.
        """
        program = this.program.holding(fetches)
        if program is not this.program:
            self._records[program] = self._record(this.program)
            this = this._replace(program=program)
        return this

    def _unset(self, program: Program, scope: Scope) -> frozenset[str]:
        """The variables that only the program's blocks write (such as a learning rate in the cases
        of a Switch) and that have no value in the scope.
        """
        record = self._record(program)
        if record.unset is None or record.unset[0] != program.version:
            blocks = len(program.desc.blocks) > 1
            unset = Step(program.desc).may_be_unset() if blocks else frozenset[str]()
            record.unset = program.version, unset
        return frozenset(
            n for n in record.unset[1] if (var := scope.find_var(n)) is None or var.value is None
        )

    def _pruned(
        self, program: Program, fetches: tuple[str, ...], updates: tuple[int, ...], feed: Any
    ) -> Program:
        """The part of a program that these fetches and updates need; without `updates` all updates
        of the program run.
        """
        key = program.version, fetches, updates, frozenset(fed_names(feed))
        pruned = self._record(program).pruned
        if key not in pruned:
            ops = program.desc.blocks[0].ops
            wanted = set(updates or (op.uid for op in ops if role(op) & OPTIMIZE))
            if not wanted.issubset(op.uid for op in ops):
                raise FetchError(
                    "fetch_list holds an optimize op of another program than the one that is to run"
                )
            for old in [k for k in pruned if k[0] != program.version]:
                del pruned[old]
            pruned[key] = program.copy_with(run_only(program.desc, fetches, wanted, key[3]))
        return pruned[key]

    def _prepare(self, program: Program, compiled: Compiled, scope: Scope, feed: Any) -> None:
        """Remember a run, if a later run can be equal to it."""
        device = compiled.where.device
        ours = not self._elsewhere and device.platform == self._device.platform
        ours = ours and not (program.info.readers or program.info.schedules)
        if not (ours and Prepared.can_be(compiled, scope)):
            return
        prepared, version = self._record(program).prepared, (program.version, program.info)
        key = compiled.fetches, id(scope)
        found = prepared.get(key)
        if (
            found is None
            or (found.compiled, found.version) != (compiled, version)
            or found.standing(scope) is None
        ):
            if len(prepared) >= PREPARED:
                prepared.clear()
            found = prepared[key] = Prepared(version, compiled, scope)
        found.remember(feed)

    def _record(self, program: Program) -> _Record:
        record = self._records.get(program)
        if record is None:
            record = self._records[program] = _Record()
        return record

    def _runnable(self, program: Any, joins: bool = True) -> Runnable[Program]:
        """The program to run, and its ranks."""
        forked.refuse()
        if self._closed:
            raise EnforceNotMet("the executor was closed; make a new one")
        if program is None:
            program = default_main_program()
        if isinstance(program, Program):
            this: Runnable[Program] = Runnable(program)
        elif isinstance(program, Runnable):
            this = program
        elif isinstance(program, MakesRunnable):
            this = program.runnable()
        else:
            raise FluidTypeError(f"Executor.run takes a Program, not {type(program).__name__}")
        info = this.program.info
        # a Runnable has its own ranks
        if joins and this is not program and may_describe_job(this.program.desc, info.pserver_plan):
            from .dist.jobs.described import join_job_of

            join_job_of(this.program)
        if self._settled != starts():
            self._find_devices()
        joined = self._several or (info.pserver_plan is not None and current_job() is not None)
        return self._in_job(this) if joined else this

    def _in_job(self, this: Runnable[Program]) -> Runnable[Program]:
        """The program as it runs with the other processes of a job: a trainer's startup program
        from before transpile, collective ops on all ranks.
        """
        from .dist.spmd.multiprocess import turn, whole_job
        from .dist.spmd.pserver import own_startup

        program, ranks = this.program, this.ranks
        if program.info.pserver_plan is not None and current_job() is not None:
            record = self._record(program)
            record.startup = program = record.startup or own_startup(program)
        if ranks is None:
            record = self._record(program)
            if record.job is None or record.job[0] != program.version:
                record.job = program.version, whole_job(program, self._device)
            ranks = record.job[1]
        if ranks is not None:
            turn()
        begins = None if program is this.program else program.info.pserver_plan
        return Runnable(program, ranks, this.iterations, this.fits, begins)

    def _compile(
        self, bound: _Bound, fetches: tuple[str, ...], within_budget: bool = False
    ) -> Compiled:
        """The step of a run, which the first thread to need it makes."""
        program, ranks, given = bound.this.program, bound.ranks, bound.given
        with self._making:
            record = self._record(program)
            steps = record.steps.get(ranks)
            if steps is None:
                steps = record.steps[ranks] = _Steps()
            found = steps.compiled.get((program.version, fetches, given))
            if found is None:
                CACHE.turn_on()
                for key in [k for k in steps.compiled if k[0] != program.version]:
                    del steps.compiled[key]
                plan = StepPlan.of(
                    ranks.desc(program),
                    fetches,
                    ranks.where,
                    program.info.memory_optimized or ranks.memory_optimized,
                    ranks.sharded(program),
                    *given,
                    within_budget or program.info.within_budget,
                    program.info.batch_sizes,
                    program.info.max_executables,
                )
                found = Compiled(plan, steps.recompiles)
                steps.compiled[program.version, fetches, given] = found
            return found

    def _end(self, program: Program, names: tuple[str, ...], scope: Scope) -> None:
        """At a reader's end, run the ops before the read, because in Fluid counters before it have
        counted this run too.

        names: the variables of the reader. Fluid's CompiledProgram reads first and counts nothing.
        """
        record = self._record(program)
        found = record.ends.get(names)
        if found is None or found[0] != program.version:
            found = record.ends[names] = program.version, before_reading(program, names)
        if found[1] is not None:
            self.run(found[1], scope=scope)

    def _execute_adapting(
        self, compiled: Compiled, bound: _Bound, values: Any, numpy: bool
    ) -> list[Any]:
        """`_execute`, in another way if the step cannot run such feeds as planned. values: as
        `ranks` split and checked them.
        """
        otherwise = False
        while True:
            try:
                return self._execute(compiled, bound, compiled.packed(values), numpy=numpy)
            except NotOneStep as why:
                if not compiled.adapt(values, why):
                    raise
                otherwise = True
            except Exception as error:
                if otherwise:  # these feeds were wrong, and right ones need no other way
                    program, given = bound.this.program, bound.given
                    made = self._record(program).steps[bound.ranks].compiled
                    made.pop((program.version, compiled.fetches, given), None)
                raise explained(error, compiled.plan.rules, values)  # noqa: B904

    def _execute(
        self, compiled: Compiled, bound: _Bound, feed: Any, count: int = 0, numpy: bool = False
    ) -> list[Any]:
        """One call of the step; its result becomes the scope's state. count: the steps in one call,
        0 for a single step. numpy: refuse fetches that have a LoD.
        """
        began, program, scope = clock(), bound.this.program, bound.scope
        record, plan = self._record(program), compiled.plan
        if plan.shared:
            from .dist.spmd.multiprocess import before_step

            signature = compiled.signature(None, feed)
            random = f"seed {program.random_seed or record.seed}, step {record.runs}"
            before_step(compiled, scope, feed, (count, signature), random, _PROCESS_SEED)
        device = compiled.where.device
        here = not self._elsewhere and device.platform == self._device.platform
        checked = bool(flag("FLAGS_check_nan_inf")) and not count
        cutting = None if count else timed(compiled) or plan.cutting
        alone = cutting is None and plan.alone is not None and not count and not checked

        # a seeded startup program starts from step 0 in every run, for the same parameters
        afresh = compiled.step.random and plan.initialises and bool(program.random_seed)
        before, taken = record.runs, record.take(count or 1, afresh)
        try:
            with tracing(None if here else device):
                seed, step = _numbers(compiled, program, record, taken)
                if cutting is not None:
                    return run_cut(cutting, compiled, scope, feed, (seed, step), numpy)
                if alone:
                    return initialise(compiled, scope, seed, step)
                kind = Kind.MANY if count else Kind.of(isinstance(feed, tuple), checked)
                result = call(compiled, kind, scope, (feed, seed, step), numpy)
            if result[3] is not None:
                compiled.objections.refuse(result[3])
        except BaseException:
            record.give_back(taken, count or 1, before if afresh else taken)
            raise
        compiled.where.launched(result[0])
        if RECORDER.on is not None:  # several steps in one call, or several ranks
            whole(RECORDER.on, began, count, compiled.where.count, result[2] or result[0])
        fetched: list[Any] = result[2]
        return fetched


def _private_copy(value: Any) -> Any:
    """A copy of a fed array, which the caller cannot change."""
    return value.copy() if isinstance(value, np.ndarray) else value


def _seed(program: Program, record: _Record) -> int:
    return program.random_seed or record.seed or job_seed() or _PROCESS_SEED


def _numbers(compiled: Compiled, program: Program, record: _Record, taken: int) -> tuple[int, int]:
    """The seed and the step number of a step's random key; zeros if it needs none."""
    return (_seed(program, record), taken) if compiled.step.random else (0, 0)


def _shown(compiled: Compiled, fetched: list[Any], return_numpy: bool) -> list[Any]:
    """Fetched values in the form that the caller gets."""
    if not return_numpy and compiled.where.count == 1:
        # a later step must not donate what the caller holds
        for i in compiled.plan.persistable_fetches:
            fetched[i] = jax.tree.map(copied, fetched[i])
    return [shown(v, return_numpy) for v in fetched]


_as_lodtensor, _fetch_var = as_lodtensor, fetch_var  # as old scripts call them

__all__ = ["Executor", "as_numpy"]
