"""A compiled step called: whatever happens during the call, the scope shows the state before it or the one after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..base.interrupts import uninterrupted
from ..ops.threefry import KnownKey
from .building import build, compile_lowered
from .compile_cache import CACHE
from .compiled import Compiled
from .fetching import refuse_lod
from .kind import Kind
from .scope import Scope
from .state_buffers import StateBuffers


def advance(compiled: Compiled, kind: Kind, buffers: StateBuffers, scope: Scope, args: tuple[Any, ...], numpy: bool) -> None:
    """Call the donating step so that its result is kept even if Ctrl-C arrives during the call.

    list.extend appends the result before the interpreter looks for signals, and the call itself runs in C once it is
    compiled. A first call is compiled beforehand (Ctrl-C stops that at no loss) and then run with SIGINT held back, as
    is a call that creates variables, and every call in stages, between which Python goes on.
    """
    fn = compiled.function(kind)
    signature = compiled.signature(fn, args[2])
    if numpy and signature in compiled.ready:
        refuse_lod_of(compiled.ready[signature])
    if signature in compiled.called and not compiled.creates:
        buffers.cell.extend(map(fn, *((a,) for a in args)))
        if not buffers.in_force:
            keep(buffers, scope, {}, compiled)
        return
    if signature not in compiled.ready:
        build(compiled, kind, args, refuse_lod if numpy else None)
    elif signature not in compiled.called and signature not in compiled.staged:
        compile_lowered(fn.lower(*args))  # in the background it was; were it for something else, Ctrl-C could stop this one
    with uninterrupted():
        buffers.cell.extend(map(compiled.staged.get(signature, fn), *((a,) for a in args)))
        keep(buffers, scope, made(buffers.cell[-1]), compiled)
    if signature not in compiled.staged:
        compiled.called.add(signature)


def made(results: Any) -> Mapping[str, Any]:
    """The variables that a step has created; none if an op objected, for which it is waited."""
    return results[1] if results[3] is None or not np.asarray(results[3])[0] else {}


def initialise(compiled: Compiled, scope: Scope, seed: int, step: int) -> list[Any]:
    """Run a startup program op by op, and store what it makes; returns the fetches."""
    assert compiled.alone is not None
    with CACHE.keeping_all():
        made, fetched = compiled.alone.run(KnownKey.of(seed).fold_in(step))
    values = compiled.where.kept([*made.values(), *fetched])
    with uninterrupted():
        _store(scope, compiled, zip(made, values, strict=False))
    return values[len(made) :]


def refuse_lod_of(name: str | None) -> None:
    """Raises FetchError for a fetch that has a LoD; None: there is none."""
    if name is not None:
        raise refuse_lod(name)


def keep(buffers: StateBuffers, scope: Scope, created: Mapping[str, Any], compiled: Compiled) -> None:
    """The buffers and newly created variables become what the scope shows."""
    if not buffers.in_force:
        buffers.adopt()
    _store(scope, compiled, created.items())


def _store(scope: Scope, compiled: Compiled, created: Iterable[tuple[str, Any]]) -> None:
    for name, value in created:
        (scope.find_var(name) or scope.var(name)).value = compiled.keep(name, value)
