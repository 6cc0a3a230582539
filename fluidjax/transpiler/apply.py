"""Passes on Programs and Scopes: the frozen result becomes a program again, and new parameters go
into the scope.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .. import passes
from ..errors import FluidTypeError
from ..graph.fetches import kept_names
from ..graph.program import Program
from ..graph.variable import Variable
from ..ir.desc import FrozenMap, ProgramDesc
from ..passes import MemoryPlan, Pass, PassResult
from ..state.scope import Scope, chosen


class ScopeParams(Mapping[str, Any]):
    """The values of a scope and its ancestors, by name, read on access."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __getitem__(self, name: str) -> Any:
        var = self._scope.find_var(name)
        if var is None or var.value is None:
            raise KeyError(name)
        return var.value

    def __contains__(self, name: object) -> bool:
        """Also true for variables without a value, because their names are taken."""
        return isinstance(name, str) and self._scope.find_var(name) is not None

    def __iter__(self) -> Iterator[str]:
        seen: set[str] = set()
        scope: Scope | None = self._scope
        while scope is not None:
            for name in scope.local_var_names():
                if name not in seen:
                    seen.add(name)
                    yield name
            scope = scope.parent

    def __len__(self) -> int:
        return sum(1 for _ in self)


def apply_passes(
    program: Program,
    pas: Pass | str,
    fetch_list: Sequence[Variable | str] = (),
    scope: Scope | None = None,
) -> tuple[Program, PassResult]:
    """Run passes on a program: a new program, and the result with its notes, certificate and diff.

    The new program has variables of its own, so pass its variables to later calls (minimize,
    fetching by variable): ``new.global_block().var(loss.name)``. Variables of the old program still
    belong to the old one.

    pas: a pass, a pipeline, or its text ("inference,fuse_batch_norm,dce"). fetch_list: variables or
    names that will be fetched; no pass changes their values. scope: the parameters' scope, default
    global_scope(); parameters that a pass makes are added to it under new names, and existing
    variables do not change.

    Raises the errors of passes.run; then the scope does not change.
    """
    result = _run(program, pas, fetch_list, scope)
    copy = program.copy_with(result.desc)
    remember(copy, result, program.desc)
    return copy, result


def apply_in_place(
    program: Program,
    pas: Pass | str,
    fetch_list: Sequence[Variable | str] = (),
    scope: Scope | None = None,
) -> PassResult:
    """As apply_passes, but the program itself becomes the result."""
    result, before = _run(program, pas, fetch_list, scope), program.desc
    if result.changed:
        program.set_desc(result.desc)
    remember(program, result, before)
    return result


def become_fitted(program: Program, desc: ProgramDesc, memory_optimized: bool) -> None:
    """Replace a program by this one, which is within a budget of bytes if it is compiled for
    memory, or restore it.
    """
    if desc is not program.desc:
        program.set_desc(desc)
    program.update_info(
        within_budget=True, memory_optimized=memory_optimized or program.info.memory_optimized
    )
    program.touch()


def remember(program: Program, result: PassResult, before: ProgramDesc) -> None:
    """Record on a program the effects of memory_optimize: the names that share memory, and that it
    is to be compiled for memory.

    before: the program that the passes got. The program without shared names is kept for fetches of
    a shared variable, also if other passes change the ops but not the state.
    """
    plans, known = (
        [plan for plan in result.certificates if isinstance(plan, MemoryPlan)],
        program.info,
    )
    whole = known.whole if known.whole is not None and known.whole[0] == before else None
    for plan in plans:
        now = {old: plan.reused.get(name, name) for old, name in program.info.reused.items()}
        program.update_info(reused=FrozenMap({**now, **plan.reused}), memory_optimized=True)
        program.touch()
    first = whole[1] if whole is not None else before if plans and not known.reused else None
    if first is not None and not result.params and _state(first) == _state(program.desc):
        program.update_info(whole=(program.desc, first))


def _state(desc: ProgramDesc) -> set[str]:
    return {name for block in desc.blocks for name, var in block.vars.items() if var.persistable}


def _run(
    program: Program, pas: Pass | str, fetch_list: Sequence[Variable | str], scope: Scope | None
) -> PassResult:
    if not isinstance(program, Program):
        raise FluidTypeError(f"passes run on a Program, not on {type(program).__name__}")
    scope = chosen(scope)
    names = kept_names(program, fetch_list)
    result = passes.run(pas, program.desc, ScopeParams(scope), names)
    for name, value in result.params.items():
        scope.var(name).set(value)
    return result
