"""A compiled step called: whatever happens during the call, the scope shows the state before it or
the one after.

In other threads too: a call that changes variables is made in their turn, which whoever runs it has
taken (turns.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from ..base.interrupts import uninterrupted
from ..ops.threefry import KnownKey
from .building import build
from .compile_cache import CACHE
from .compiled import Compiled
from .fetching import refuse_lod
from .kind import Kind
from .raising import ended
from .scope import Scope
from .state_buffers import StateBuffers
from .turns import held


def call(compiled: Compiled, kind: Kind, scope: Scope, inputs: tuple[Any, ...], numpy: bool) -> Any:
    """The result of a call of the step, whose state is the scope's from now on. inputs: what it is
    given besides its state.

    A step that donates is called so that its result is kept even if Ctrl-C arrives during the call.
    list.extend appends the result before the interpreter looks for signals, and the call itself
    runs in C once it is compiled. A first call is compiled beforehand (Ctrl-C stops that at no
    loss) and then run with SIGINT held back, as is a call that creates variables.
    """
    with compiled.lock:
        buffers = compiled.bind(scope)
        fn = compiled.function(kind)
        signature = compiled.signature(fn, inputs[0])
        if numpy and signature in compiled.executables.ready:
            refuse_lod_of(compiled.executables.ready[signature])
        known = compiled.executables.was_called(signature) and not compiled.plan.creates
        if signature not in compiled.executables.ready:
            build(compiled, kind, (*buffers.arrays, *inputs), refuse_lod if numpy else None)
    if not compiled.donates(kind):
        result = undonated(partial(_ended, fn) if compiled.plan.may_raise else fn, buffers, inputs)
        if kind.checked:
            compiled.executables.finite[kind].refuse(result[4])
        if not compiled.plan.reads_only:
            held(buffers.locks, lambda: buffers.cell.append(result))
            keep(buffers, scope, made(result), compiled)
            del buffers.cell[:-1]
    elif known:
        result = held(buffers.locks, lambda: donated(fn, buffers, inputs))
    else:
        with uninterrupted():
            result = held(buffers.locks, lambda: donated(fn, buffers, inputs))
            keep(buffers, scope, made(result), compiled)
    compiled.executables.called(signature)
    return result


def donated(fn: Any, buffers: StateBuffers, inputs: tuple[Any, ...]) -> Any:
    """The result of a step that is given the state, which is the state of the next one; in its
    turn.
    """
    cell, (feed, seed, step) = buffers.cell, inputs
    # in C from the look at the arguments to the result's place: Ctrl-C finds the state before or
    # the one after
    cell.extend(map(fn, (cell[-1][0],), (buffers.constant,), (feed,), (seed,), (step,)))
    del cell[:-1]
    return cell[-1]


def undonated(run: Callable[..., Any], buffers: StateBuffers, inputs: tuple[Any, ...]) -> Any:
    """The result of a step that leaves the arrays that it reads as they are, and so needs no turn
    for those of others.

    If a step of another thread was given one of them meanwhile, it runs again, on copies.
    """
    mutable, constant = buffers.arrays
    try:
        return run(mutable, constant, *inputs)
    except Exception:
        if not any(array.is_deleted() for array in constant):
            raise
    return run(mutable, buffers.copied(), *inputs)


def _ended(fn: Any, *args: Any) -> Any:
    return ended(fn, args)


def initialise(compiled: Compiled, scope: Scope, seed: int, step: int) -> list[Any]:
    """Run a startup program op by op, and store what it makes; returns the fetches."""
    assert compiled.plan.alone is not None
    with compiled.lock, CACHE.keeping_all():
        made, fetched = compiled.plan.alone.run(KnownKey.of(seed).fold_in(step))
    values = compiled.where.kept([*made.values(), *fetched])
    with uninterrupted():
        _store(scope, compiled, dict(zip(made, values, strict=False)))
    return values[len(made) :]


def made(results: Any) -> Mapping[str, Any]:
    """The variables that a step has created; none if an op objected, for which it is waited."""
    return results[1] if results[3] is None or not np.asarray(results[3])[0] else {}


def refuse_lod_of(name: str | None) -> None:
    """Raises FetchError for a fetch that has a LoD; None: there is none."""
    if name is not None:
        raise refuse_lod(name)


def keep(
    buffers: StateBuffers, scope: Scope, created: Mapping[str, Any], compiled: Compiled
) -> None:
    """Newly created variables become what the scope shows."""
    buffers.keep()
    if created:
        _store(scope, compiled, created)


def _store(scope: Scope, compiled: Compiled, created: Mapping[str, Any]) -> None:
    scope.put({name: compiled.keep(name, value) for name, value in created.items()})
