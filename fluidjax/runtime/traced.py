"""A call of a step traced, or its trace found where an earlier process left it (kept.py).

What may be kept is compiled from what is kept, also by the process that keeps it, so that both have
the same executables; and in the same form where nothing is kept, so that the last bits do not
depend on the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.extend.core import jaxpr_as_fun

from .compiled import Compiled
from .exported import Exporting, NotExported
from .kept import Keeping
from .kind import Kind
from .trace_key import may_be_kept
from .traces import Results, Trace


@dataclass(frozen=True)
class Traced:
    """ragged: a fetch that has a LoD. found: whether the trace was found. keep: called once the
    call is compiled.
    """

    ragged: str | None = None
    found: bool = False
    keep: Callable[[], None] = lambda: None


def traced(compiled: Compiled, kind: Kind, args: Sequence[Any]) -> Traced:
    """Trace a call for arguments like these; the jitted function then need not run the ops any
    more.
    """
    if not may_be_kept(compiled, kind):
        return Traced(compiled.with_lod(compiled.function(kind).trace(*args).out_info[2]))
    keeping = Keeping.of(compiled, kind, args)
    trace = keeping.read(compiled) if keeping is not None else None
    if trace is None:
        return _anew(compiled, kind, args, keeping)
    if kind is Kind.ONE:
        compiled.recompiles.add(args[2])  # as running the ops on types does
    compiled.was_traced(kind, args[2], _nested(trace.code.function(), trace.nested.tree()))
    return Traced(found=True)


def _anew(compiled: Compiled, kind: Kind, args: Sequence[Any], keeping: Keeping | None) -> Traced:
    made = jax.jit(compiled.body(kind)).trace(*args)
    ragged, tree = compiled.with_lod(made.out_info[2]), jax.tree.structure(made.out_info)
    # Effects tie a trace to its process. Where the next step's state has other types than this
    # one's, each has a trace of its own.
    if made.jaxpr.effects or not _state_stays(args[0], made.out_info[0]):
        return Traced(ragged)
    # exported or not, it is one call of another function: else XLA would meet its operations in
    # another order
    function: Any = (jax.jit if keeping is None else Exporting)(jaxpr_as_fun(made.jaxpr))
    compiled.was_traced(kind, args[2], _nested(function, tree))
    if keeping is None:
        return Traced(ragged)
    kept = keeping

    def keep() -> None:
        try:
            if function.made is not None:
                kept.write(
                    Trace(function.made, Results.of(made.out_info), tuple(kept.told(compiled)))
                )
        except NotExported:
            pass

    return Traced(ragged, keep=keep)


def _state_stays(old: Any, new: Any) -> bool:
    return [(v.shape, v.dtype) for v in jax.tree.leaves(old)] == [
        (v.shape, v.dtype) for v in jax.tree.leaves(new)
    ]


def _nested(function: Callable[..., Any], tree: Any) -> Callable[..., Any]:
    """A function of arrays as one of the step's arguments, to be called while it is traced. tree:
    how its results are nested.
    """
    return lambda *args: jax.tree.unflatten(tree, function(*jax.tree.leaves(args)))
