"""Calls a compiled step. The scope always shows either the state before the call or the state after
it, even if the call fails or is interrupted.

This holds across threads too: a call that changes variables is made during their turn (turns.py),
which the caller has taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np

from ..base.interrupts import uninterrupted
from ..compiling.cache import CACHE
from ..compiling.kind import Kind
from ..feeds.fetching import refuse_lod
from ..ops.threefry import KnownKey
from ..partition.run import CutStep, store, with_lod
from ..state.buffers import StateBuffers, borrows
from ..state.scope import Scope
from ..state.turns import held
from .building import build
from .compiled import Compiled
from .executables import Executable
from .raising import ended


class Overtaken(Exception):
    """Another thread changed the state in the meantime; the call had no effect."""


def call(compiled: Compiled, kind: Kind, scope: Scope, inputs: tuple[Any, ...], numpy: bool) -> Any:
    """Calls the step, stores its new state in the scope and returns its result. inputs: the
    arguments besides the state.

    A call of a step that donates keeps its result even if Ctrl-C arrives during the call:
    list.extend appends the result before the interpreter looks for signals, and the call itself
    runs in C once it is compiled. A first call is compiled beforehand (Ctrl-C stops that without
    loss) and then run with SIGINT held back. A call that creates variables is run with SIGINT held
    back too.
    """
    while True:
        try:
            return _call(compiled, kind, scope, inputs, numpy)
        except Overtaken:  # bound anew, it reads what the other thread wrote
            continue


def _call(
    compiled: Compiled, kind: Kind, scope: Scope, inputs: tuple[Any, ...], numpy: bool
) -> Any:
    with compiled.lock:
        buffers = compiled.bind(scope)
        made = compiled.executables.get(compiled.signature(kind, inputs[0]))
        if made is None:
            refuse = refuse_lod if numpy else None
            made = build(compiled, kind, (*buffers.arrays, *inputs), refuse)
        elif numpy:
            _refuse_lod_of(made.ragged)
        fn = made.use()
    if not compiled.plan.donates(kind):
        result = undonated(partial(ended, fn) if compiled.plan.may_raise else fn, buffers, inputs)
        if kind.checked:
            compiled.executables.finite[kind].refuse(result[4])
        if not compiled.plan.reads_only:
            held(buffers.locks, lambda: buffers.cell.append(result))
            _publish(buffers, scope, result, compiled)
            del buffers.cell[:-1]
    elif made.called and not compiled.plan.creates:
        result = held(buffers.locks, lambda: _in_turn(compiled, fn, buffers, inputs))
    else:
        with uninterrupted():
            result = held(buffers.locks, lambda: _in_turn(compiled, fn, buffers, inputs))
            _publish(buffers, scope, result, compiled)
    made.was_called()
    return result


def _in_turn(compiled: Compiled, fn: Any, buffers: StateBuffers, inputs: tuple[Any, ...]) -> Any:
    """`donated`, unless a step of another thread has donated what this one only reads since it was
    bound.
    """
    overtaken = borrows(compiled.where) and not buffers.borrowed.stands()
    if overtaken and any(array.is_deleted() for array in buffers.constant):
        raise Overtaken
    return donated(fn, buffers, inputs)


def again(
    compiled: Compiled, made: Executable, buffers: StateBuffers, inputs: tuple[Any, ...]
) -> Any:
    """`call` for a step that needs no preparation; takes the turn itself. Raises Overtaken."""
    fn = made.use()
    if fn is None:
        raise Overtaken
    with jax.enable_x64(True):
        if compiled.plan.reads_only:
            return undonated(fn, buffers, inputs)
        for turn in buffers.turns:
            if turn.waiting:
                turn.let_pass()
        # nearly always one turn: the same as `held`, but a microsecond faster
        if len(buffers.locks) == 2:
            with buffers.locks[0], buffers.locks[1]:
                return _advanced(fn, buffers, inputs)
        return held(buffers.locks, lambda: _advanced(fn, buffers, inputs))


def _advanced(fn: Any, buffers: StateBuffers, inputs: tuple[Any, ...]) -> Any:
    if not (buffers.in_force and buffers.borrowed.stands()):
        raise Overtaken
    return donated(fn, buffers, inputs)


def donated(fn: Any, buffers: StateBuffers, inputs: tuple[Any, ...]) -> Any:
    """The result of a step that donates its state. The caller holds the turn."""
    cell, (feed, seed, step) = buffers.cell, inputs
    # All of this runs in C, so Ctrl-C finds the state before the step or the state after it.
    cell.extend(map(fn, (cell[-1][0],), (buffers.constant,), (feed,), (seed,), (step,)))
    del cell[:-1]
    return cell[-1]


def undonated(run: Callable[..., Any], buffers: StateBuffers, inputs: tuple[Any, ...]) -> Any:
    """The result of a step that does not donate. It needs no turn for variables that other programs
    write.

    If a step of another thread has donated one of these arrays in the meantime, the step runs again
    on copies.
    """
    mutable, constant = buffers.arrays
    try:
        return run(mutable, constant, *inputs)
    except Exception:
        if not any(array.is_deleted() for array in constant):
            raise
    return run(mutable, buffers.copied(), *inputs)


def initialise(compiled: Compiled, scope: Scope, seed: int, step: int) -> list[Any]:
    """Run a startup program op by op and store the variables that it creates; returns the
    fetches.
    """
    assert compiled.plan.alone is not None
    with compiled.lock, CACHE.keeping_all():
        made, fetched = compiled.plan.alone.run(KnownKey.of(seed).fold_in(step))
    values = compiled.where.kept([*made.values(), *fetched])
    with uninterrupted():
        _store(scope, compiled, dict(zip(made, values, strict=False)))
    return values[len(made) :]


def run_cut(
    cutting: CutStep,
    compiled: Compiled,
    scope: Scope,
    feed: Any,
    key: tuple[int, int],
    numpy: bool,
) -> list[Any]:
    """The fetches of one run of a program in segments, or of a program that is profiled. Threads
    run one after another. key: the seed and the step's number. numpy: refuse fetches that have a
    LoD.
    """
    random = jax.random.fold_in(jax.random.key(key[0]), key[1]) if compiled.step.random else None
    with compiled.lock:
        state = compiled.apart(scope)
        given = with_lod(compiled.step, scope, state)
        changed, fetched = ended(cutting.run, given, feed, random)
    if numpy:
        _refuse_lod_of(compiled.with_lod(fetched))
    store(scope, changed)
    return fetched


def _refuse_lod_of(name: str | None) -> None:
    """Raises FetchError if the name of a fetch with a LoD is given; None means there is none."""
    if name is not None:
        raise refuse_lod(name)


def _publish(buffers: StateBuffers, scope: Scope, result: Any, compiled: Compiled) -> None:
    """Show in the scope the variables that a step has created, unless an op detected an error; this
    waits for the step to find out.
    """
    objected = result[3] is not None and bool(np.asarray(result[3])[0])
    buffers.keep()
    if result[1] and not objected:
        _store(scope, compiled, result[1])


def _store(scope: Scope, compiled: Compiled, created: Mapping[str, Any]) -> None:
    scope.put({name: compiled.keep(name, value) for name, value in created.items()})
