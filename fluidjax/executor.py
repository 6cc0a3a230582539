"""Executor: Fluid's face on the pure step. ``run`` is a thin feed -> step -> fetch."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import jax
import numpy as np

from .base.flags import flag
from .base.interrupts import uninterrupted
from .dist.jobs.process import current_job, served
from .dist.spmd.multiprocess import before_step, job_seed, whole_job
from .dist.spmd.parallel import Parallel
from .dist.spmd.pserver import own_startup
from .errors import FeedError, FluidTypeError, FluidValueError, MixesRows, UnsupportedError
from .graph.fetches import fetch_names
from .graph.program import Program, default_main_program
from .graph.variable import Variable
from .lod_tensor import LoDTensor
from .runtime.compiled import Compiled, Recompiles
from .runtime.feeding import explained
from .runtime.fetching import refuse_lod, to_numpy, to_tensor
from .runtime.place import Place, as_place
from .runtime.placement import OneDevice
from .runtime.scope import Scope, global_scope
from .runtime.state_buffers import StateBuffers

if TYPE_CHECKING:
    from .compiler import CompiledProgram

_PROCESS_SEED = int.from_bytes(os.urandom(4), "little")  # for programs whose random_seed is 0


class Executor:
    """Runs programs on one device.

    place: CPUPlace() or CUDAPlace(i); default the first GPU that JAX sees, or the CPU.
    """

    def __init__(self, place: Place | None = None) -> None:
        self.place = as_place(place)
        self._device = self.place.device()
        self._elsewhere = self._device != jax.local_devices()[0]
        self._where = OneDevice(self._device)
        self._compiled: WeakKeyDictionary[Program | Parallel, dict[Any, Compiled]] = WeakKeyDictionary()
        self._recompiles: WeakKeyDictionary[Program | Parallel, Recompiles] = WeakKeyDictionary()
        self._runs: WeakKeyDictionary[Program, int] = WeakKeyDictionary()
        self._seeds: WeakKeyDictionary[Program, int] = WeakKeyDictionary()  # of restored programs whose random_seed is 0
        self._jobs: WeakKeyDictionary[Program, tuple[Any, Parallel | None]] = WeakKeyDictionary()
        self._several = jax.process_count() > 1
        self._closed = False

    def run(
        self,
        program: Program | CompiledProgram | None = None,
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

        program: default the main program; a CompiledProgram may run on several devices (with_data_parallel). feed: name ->
        array of exactly the declared dtype and shape (-1: any size), also where it is a torch tensor, a DataFrame or a list of
        arrays; Python numbers and lists of them take the declared dtype.
        fetch_list: variables or names. scope: where persistable variables live; default global_scope().
        return_numpy: True copies the results to NumPy arrays; False returns jax.Arrays (LoDTensors of what has a LoD) and
        does not wait for them.
        return_merged: of several devices, True concatenates their results on dimension 0, False keeps them apart on a new
        first dimension (or in a list, where their shapes differ).
        A pserver's program, run by a process with that role in a job, returns when the trainers have ended.
        feed_var_name, fetch_var_name, use_program_cache, use_prune: accepted as in Fluid; programs are always cached, and
        only what the fetches and persistable variables need is computed.

        Raises FeedError, FetchError (names, dtypes, shapes, ranges), EnforceNotMet (startup program not run). A run
        that raises leaves the scope as it was.
        """
        times = getattr(program, "_iterations", 1)
        parallel = getattr(program, "_parallel", None)
        program = self._in_job(self._program(program))
        parallel = parallel or self._whole_job(program)
        if served(program.desc):  # a pserver of a job: this lasts as long as the job
            return []
        scope = global_scope() if scope is None else scope
        compiled = self._compile(program, fetch_names(fetch_list), parallel)
        values = self._fed(program, compiled, feed, parallel)
        if parallel is not None and not compiled.in_force(scope):
            parallel.prepare(scope)
        if not (return_numpy and compiled.fetches):
            # Nobody waits for the results, so the step may still read a fed array after the caller has filled it anew.
            values = jax.tree.map(lambda v: v.copy() if isinstance(v, np.ndarray) else v, values)
        try:
            fetched = self._execute(compiled, program, scope, compiled.packed(values), numpy=return_numpy)
        except MixesRows as reason:
            if not compiled.remember(values, reason):
                raise
            fetched = self._execute(compiled, program, scope, compiled.packed(values), numpy=return_numpy)
        except Exception as error:
            raise explained(error, compiled.rules, values)  # noqa: B904 - mostly the exception itself goes on
        for _ in range(times - 1):  # ExecutionStrategy.num_iteration_per_run
            fetched = self._execute(compiled, program, scope, compiled.packed(values), numpy=return_numpy)
        if parallel is not None:
            return _merged(parallel, fetched, return_merged, return_numpy)
        return _results(compiled, fetched, return_numpy)

    def _fed(self, program: Program, compiled: Compiled, feed: Any, parallel: Parallel | None) -> Any:
        """The checked feed: a dict, or for ranks with different ones a tuple of dicts."""
        if program._readers:  # what is read wins over what is fed, as in Fluid
            feed = dict(_single(feed) if isinstance(feed, list | tuple) else feed or {})
            for reader in program._readers:
                feed.update(reader._next_feed())
        if parallel is not None:
            return parallel.split(feed or {}, compiled.check_feed)
        return compiled.check_feed((_single(feed) if isinstance(feed, list | tuple) else feed) or {})

    def run_steps(
        self,
        program: Program | CompiledProgram | None = None,
        feeds: Sequence[Mapping[str, Any]] | Mapping[str, Any] | None = None,
        fetch_list: Sequence[Variable | str] | None = None,
        scope: Scope | None = None,
        return_numpy: bool = True,
    ) -> list[Any]:
        """Run a program K times in one call (jax.lax.scan), and return the fetches stacked on a new first dimension.

        feeds: K feed dicts of equal shapes, or one dict of arrays that have a leading dimension K.
        Equal to K calls of run, random numbers included. Raises as run does, and UnsupportedError for a LoDTensor with
        sequences; then no step has taken place.
        """
        parallel = getattr(program, "_parallel", None)
        program = self._in_job(self._program(program))
        parallel = parallel or self._whole_job(program)
        scope = global_scope() if scope is None else scope
        compiled = self._compile(program, fetch_names(fetch_list), parallel)
        stacked, count = _stack(compiled, feeds)
        if parallel is not None:
            parallel.check_steps(stacked)
            if not compiled.in_force(scope):
                parallel.prepare(scope)
        try:
            fetched = self._execute(compiled, program, scope, stacked, count)
        except Exception as error:
            raise explained(error, compiled.rules, {n: v[0] for n, v in stacked.items()})  # noqa: B904 - as above
        return _results(compiled, fetched, return_numpy)

    def close(self) -> None:
        """Forget compiled programs; the executor cannot run any more."""
        self._compiled.clear()
        self._closed = True

    # -- inside ----------------------------------------------------------------------------------------------------

    def _program(self, program: Any) -> Program:
        if self._closed:
            raise FluidValueError("the executor was closed; make a new one")
        if program is None:
            return default_main_program()
        program = getattr(program, "_program", program)  # a CompiledProgram holds its program
        if isinstance(program, Program):
            return program
        raise FluidTypeError(f"Executor.run takes a Program, not {type(program).__name__}")

    def _seed(self, program: Program) -> int:
        """The seed that a program's random numbers hang on; with the number of the step, `_runs`, the whole random state."""
        return program._seed or self._seeds.get(program) or job_seed() or _PROCESS_SEED

    def _in_job(self, program: Program) -> Program:
        """The program itself, but for a trainer's startup program in a job."""
        return program if program._pserver_plan is None or current_job() is None else own_startup(program)

    def _whole_job(self, program: Program) -> Parallel | None:
        """What makes a program with collective ops run with the other processes of a job."""
        if not self._several and (program._pserver_plan is None or current_job() is None):
            return None
        found = self._jobs.get(program)
        if found is None or found[0] != program._version:
            found = self._jobs[program] = program._version, whole_job(program, self._device)
        return found[1]

    def _compile(self, program: Program, fetches: tuple[str, ...], parallel: Parallel | None = None) -> Compiled:
        owner = program if parallel is None else parallel
        cache = self._compiled.get(owner)
        if cache is None:
            cache = self._compiled[owner] = {}
            self._recompiles[owner] = Recompiles()
        found = cache.get((program._version, fetches))
        if found is None:
            program._refuse_reused(fetches)
            for key in [k for k in cache if k[0] != program._version]:
                del cache[key]
            desc, where = (program.desc, self._where) if parallel is None else (parallel.desc(program), parallel.where)
            small = program._memory_optimized or (parallel is not None and parallel.memory_optimized)
            pieces = {} if parallel is None else parallel.pieces(program)
            found = Compiled(desc, fetches, where, self._recompiles[owner], small, pieces)
            cache[program._version, fetches] = found
        return found

    def _execute(
        self, compiled: Compiled, program: Program, scope: Scope, feed: Any, count: int = 0, numpy: bool = False
    ) -> list[Any]:
        """One call of the jitted step; its result becomes the scope's state. numpy: refuse fetches that have a LoD."""
        seed, step = 0, 0
        if compiled.shared:
            signature = compiled.signature(count, feed)
            random = f"seed {program._seed or self._seeds.get(program)}, step {self._runs.get(program, 0)}"
            before_step(compiled, scope, feed, signature, random, _PROCESS_SEED)
        if compiled.random:
            seed = self._seed(program)
            # A seeded startup program starts afresh whenever it is run: the same parameters again.
            step = 0 if compiled.initialises and program._seed else self._runs.get(program, 0)
        device = compiled.where.device
        kind = "many" if count else "turns" if isinstance(feed, tuple) else "one"
        with _context(device if self._elsewhere or device.platform != self._device.platform else None):
            buffers = compiled.bind(scope)
            args = (*buffers.arrays, feed, seed, step)
            if flag("FLAGS_check_nan_inf") and not count:
                kind = "checked turns" if kind == "turns" else "checked"
                result = compiled.function(kind)(*args)
                compiled.refuse_nan(kind, result[3])
                _refuse_lod(compiled.with_lod(result[2]) if numpy else None)
                buffers.cell.append(result)
                _keep(buffers, scope, result[1], compiled)
            else:
                _advance(compiled, compiled.function(kind), buffers, scope, args, numpy)
        result = buffers.cell[-1]
        del buffers.cell[:-1]
        compiled.where.launched(result[0])
        if compiled.random:
            self._runs[program] = step + (count or 1)
        return result[2]


def _advance(compiled: Compiled, fn: Any, buffers: StateBuffers, scope: Scope, args: tuple[Any, ...], numpy: bool) -> None:
    """Call the donating step so that its result is kept even if Ctrl-C arrives during the call.

    list.extend appends the result before the interpreter looks for signals, and the call itself runs in C once it is
    compiled. A first call is compiled beforehand (Ctrl-C stops that at no loss) and then run with SIGINT held back, as
    is a call that creates variables.
    """
    signature = compiled.signature(fn, args[2])
    if signature in compiled.ready and not compiled.creates:
        if numpy:
            _refuse_lod(compiled.ready[signature])
        buffers.cell.extend(map(fn, *((a,) for a in args)))
        if not buffers.in_force:
            _keep(buffers, scope, {}, compiled)
        return
    lowered = fn.lower(*args)
    ragged = compiled.with_lod(lowered.out_info[2])
    if numpy:
        _refuse_lod(ragged)
    lowered.compile()
    with uninterrupted():
        buffers.cell.extend(map(fn, *((a,) for a in args)))
        _keep(buffers, scope, buffers.cell[-1][1], compiled)
    compiled.ready[signature] = ragged


def _refuse_lod(name: str | None) -> None:
    if name is not None:
        raise refuse_lod(name)


def _keep(buffers: StateBuffers, scope: Scope, created: Mapping[str, Any], compiled: Compiled) -> None:
    """The buffers and newly created variables become what the scope shows."""
    if not buffers.in_force:
        buffers.adopt()
    for name, value in created.items():
        (scope.find_var(name) or scope.var(name)).value = compiled.keep(name, value)


@contextlib.contextmanager
def _context(device: Any) -> Iterator[None]:
    with jax.enable_x64(True):
        if device is None:
            yield
        else:
            with jax.default_device(device):
                yield


def _single(feed: Sequence[Any]) -> Mapping[str, Any]:
    if len(feed) == 1 and isinstance(feed[0], Mapping):
        return feed[0]
    raise FeedError("on one device a feed is a dict of names and arrays (or a list of one such dict)")


def _results(compiled: Compiled, fetched: list[Any], return_numpy: bool) -> list[Any]:
    if return_numpy:
        return [to_numpy(v) for v in fetched]
    for i in compiled.persistable_fetches:  # what the caller holds must not be donated by a later step
        fetched[i] = jax.tree.map(lambda a: a.copy(), fetched[i])
    return [to_tensor(v) for v in fetched]


def _merged(parallel: Parallel, fetched: list[Any], merged: bool, return_numpy: bool) -> list[Any]:
    """The fetches of all ranks together."""
    show = to_numpy if return_numpy else to_tensor
    together = parallel.merge(fetched, merged)
    return [[show(one) for one in v] if isinstance(v, list) else show(v) for v in together]


def _stack(compiled: Compiled, feeds: Any) -> tuple[dict[str, Any], int]:
    if isinstance(feeds, Mapping):
        counts = {np.shape(v)[0] if np.ndim(v) else 0 for v in feeds.values()}
        if len(counts) != 1:
            raise FeedError("run_steps with one dict needs arrays with the same leading dimension: the number of steps")
        count = counts.pop()
        feeds = [{n: v[i] for n, v in feeds.items()} for i in range(count)]
    feeds = list(feeds or ())
    if not feeds:
        raise FeedError("run_steps needs at least one feed")
    checked = [compiled.check_feed(f) for f in feeds]
    ragged = [n for f in checked for n, v in f.items() if isinstance(v, LoDTensor)]
    if ragged:
        raise UnsupportedError(f"run_steps takes arrays of equal shapes, but {ragged[0]!r} is fed with a LoD; call run for each step")
    first = {n: v.shape for n, v in checked[0].items()}
    for i, f in enumerate(checked):
        if {n: v.shape for n, v in f.items()} != first:
            raise FeedError(f"run_steps needs feeds of equal shapes; feed 0 has {first}, feed {i} {({n: v.shape for n, v in f.items()})}")
    stacked = {n: np.stack([np.asarray(f[n]) for f in checked]) for n in first}
    return stacked, len(feeds)


__all__ = ["Executor"]
