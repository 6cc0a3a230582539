"""A large step's quick executable in stages: they are compiled at once, on as many threads as there are cores.

XLA's passes over a module run on one core. In stages that several threads compile, all cores have work, and passes that grow
faster than a module see less of it. Which programs are divided, and where, depends on their equations and not on the machine.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax

from ..ir.recomputed import segment
from ..lower.stages import Stage, Stages, divided
from .compile_cache import label, named
from .compiled import Compiled
from .kind import Kind
from .placement import OneDevice

MOST = 8  # stages


class Staged:
    """The executable, called as the jitted function is. Ctrl-C during a call would lose the state that was donated."""

    def __init__(self, functions: Sequence[Any], stages: Stages, tree: Any) -> None:
        """functions: the jitted stages. tree: how the results are nested."""
        self._functions, self._stages, self._tree = functions, stages, tree

    def __call__(self, *args: Any) -> Any:
        values = dict(enumerate([*jax.tree.leaves(args), *self._stages.consts]))
        for stage, function in zip(self._stages.stages, self._functions, strict=True):
            given = [values[n] for n in stage.takes]
            for n in stage.drops:
                del values[n]
            values.update(zip(stage.makes, function(*given), strict=True))
        return jax.tree.unflatten(self._tree, [values[n] for n in self._stages.results])


def in_stages(compiled: Compiled, kind: Kind, traced: Any) -> Stages | None:
    """The stages of a traced call; None where it is compiled whole."""
    stage = compiled.effort.stage
    if stage is None or compiled.memory_optimized or kind is not Kind.ONE or type(compiled.where) is not OneDevice:
        return None
    if any(segment(op) is not None for op in compiled.step.ops):  # what one stage hands to the next would be kept after all
        return None
    count = min(len(traced.jaxpr.jaxpr.eqns) // stage, MOST)
    assert compiled.layouts is not None
    return divided(traced.jaxpr, count, len(compiled.layouts[0].own)) if count > 1 else None


def compile_stages(
    compiled: Compiled, stages: Stages, args: Sequence[Any], tree: Any, compile_lowered: Any, order: Sequence[int] | None = None
) -> Staged:
    """The executable. args: the call's arguments or their types; tree: how its results are nested; order: of compiling."""
    name = label(op.type for op in compiled.step.ops)
    home = compiled.where.sharding(jax.sharding.PartitionSpec())
    homes: dict[int, Any] = {i: _home(v) for i, v in enumerate([*jax.tree.leaves(args), *stages.consts])}
    types = []
    for stage in stages.stages:
        types.append(_types(stage, homes))
        homes.update(dict.fromkeys(stage.makes, home if any(homes[n] is not None for n in stage.takes) else None))
    options = compiled.options
    functions = [jax.jit(named(s.function, name), donate_argnums=s.donates, compiler_options=options) for s in stages.stages]
    waiting = []
    pool = ThreadPoolExecutor(os.cpu_count(), "fluidjax-compile")
    try:
        for at in order or range(len(functions)):
            waiting.append(pool.submit(compile_lowered, functions[at].trace(*types[at]).lower()))
        for each in waiting:
            each.result()
    finally:
        pool.shutdown(cancel_futures=True)
    return Staged(functions, stages, tree)


def _types(stage: Stage, homes: dict[int, Any]) -> list[Any]:
    each = zip(stage.takes, stage.types, strict=True)
    return [jax.ShapeDtypeStruct(t.shape, t.dtype, sharding=homes[n], weak_type=t.weak_type) for n, t in each]


def _home(value: Any) -> Any:
    """Where a value must be, if it must."""
    bound = isinstance(value, jax.ShapeDtypeStruct) or (isinstance(value, jax.Array) and value.committed)
    return value.sharding if bound else None
