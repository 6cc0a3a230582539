"""A call of a step traced, or its trace found where an earlier process left it (kept.py).

What may be kept is compiled from what is kept, also by the process that keeps it, so that both have the same executables; and in
the same form where nothing is kept, so that the last bits do not depend on the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax

from ..lower.stages import Stages, whole
from .compiled import Compiled
from .exported import Exporting, NotExported
from .kept import Keeping
from .kind import Kind
from .staged import in_stages
from .trace_key import may_be_kept
from .traces import Results, Trace


@dataclass(frozen=True)
class Traced:
    """stages: what is compiled at once; None: the jitted function, which need not run the ops any more. tree: how results are nested.

    order: of the stages, for who compiles them. ragged: a fetch that has a LoD. found: whether the trace was found. keep: called once
    all is compiled.
    """

    stages: Stages | None
    tree: Any
    order: Sequence[int] | None = None
    ragged: str | None = None
    found: bool = False
    keep: Callable[[], None] = lambda: None


def traced(compiled: Compiled, kind: Kind, args: Sequence[Any]) -> Traced:
    """Trace a call for arguments like these."""
    if not may_be_kept(compiled, kind):
        made = compiled.function(kind).trace(*args)
        stages = in_stages(compiled, kind, made) if _state_stays(args[0], made.out_info[0]) else None
        return Traced(stages, jax.tree.structure(made.out_info), ragged=compiled.with_lod(made.out_info[2]))
    keeping = Keeping.of(compiled, kind, args)
    trace = keeping.read(compiled) if keeping is not None else None
    if trace is None:
        return _anew(compiled, kind, args, keeping)
    if kind is Kind.ONE:
        compiled.recompiles.add(args[2])  # as running the ops on types does
    stages, tree = trace.stages(), trace.nested.tree()
    if len(stages.stages) == 1:
        compiled.was_traced(kind, args[2], _whole(stages, tree))
        return Traced(None, tree, found=True)
    lengths = [len(part.code.code) for part in trace.parts]  # the longest is read first, which takes longest
    return Traced(stages, tree, sorted(range(len(lengths)), key=lambda i: -lengths[i]), found=True)


def _anew(compiled: Compiled, kind: Kind, args: Sequence[Any], keeping: Keeping | None) -> Traced:
    made = jax.jit(compiled.body(kind)).trace(*args)
    ragged, tree = compiled.with_lod(made.out_info[2]), jax.tree.structure(made.out_info)
    if not _state_stays(args[0], made.out_info[0]):
        return Traced(None, tree, ragged=ragged)
    several = in_stages(compiled, kind, made)
    stages = several or whole(made.jaxpr)
    if stages is None:  # it has effects, so JAX itself is to order them
        return Traced(None, tree, ragged=ragged)
    # exported or not, each is one call of another function: else XLA would meet its operations in another order
    functions: list[Any] = [(jax.jit if keeping is None else Exporting)(stage.function) for stage in stages.stages]
    stages = replace(stages, stages=tuple(replace(s, function=f) for s, f in zip(stages.stages, functions, strict=True)))
    if several is None:
        compiled.was_traced(kind, args[2], _whole(stages, tree))
    if keeping is None:
        return Traced(several and stages, tree, ragged=ragged)
    kept = keeping

    def keep() -> None:
        codes = [each.made for each in functions]
        try:
            if None not in codes:
                kept.write(Trace.of(stages, codes, Results.of(made.out_info), kept.told(compiled)))
        except NotExported:
            pass

    return Traced(several and stages, tree, ragged=ragged, keep=keep)


def _state_stays(old: Any, new: Any) -> bool:
    """Whether the next step's state has the types of this one's; else each has a trace of its own, which the jitted function makes."""
    return [(v.shape, v.dtype) for v in jax.tree.leaves(old)] == [(v.shape, v.dtype) for v in jax.tree.leaves(new)]


def _whole(stages: Stages, tree: Any) -> Callable[..., Any]:
    """The only stage as a function of the step's arguments, to be called while it is traced."""
    (stage,) = stages.stages

    def step(*args: Any) -> Any:
        values = dict(enumerate([*jax.tree.leaves(args), *stages.consts]))
        values.update(zip(stage.makes, stage.function(*(values[n] for n in stage.takes)), strict=True))
        return jax.tree.unflatten(tree, [values[n] for n in stages.results])

    return step
