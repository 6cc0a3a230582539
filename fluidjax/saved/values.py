"""Values of a scope as arrays to save, and loaded arrays, which are checked by name before any is
stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.dtypes import numpy_dtype
from ..errors import EnforceNotMet, FluidTypeError, FluidValueError, LoadError
from ..graph.program import Program, default_main_program
from ..graph.variable import Parameter, Variable
from ..ir.desc import VarDesc
from ..runtime.runnable import MakesRunnable
from ..state.scope import Scope, chosen

STORED_KINDS = frozenset({"LOD_TENSOR", "SELECTED_ROWS"})
SHOWN = 20  # names that one line of a difference lists


def is_parameter(var: Variable) -> bool:
    """Whether a variable is a Parameter."""
    return isinstance(var, Parameter)


def is_persistable(var: Variable) -> bool:
    """Whether a variable outlives a run and has a value to save."""
    return var.desc.persistable and var.desc.kind in STORED_KINDS


def is_belong_to_optimizer(var: Variable) -> bool:
    """Persistable but neither a Parameter nor data: moments, learning rates, counters, batch_norm's
    statistics.
    """
    return not (is_parameter(var) or var.desc.need_check_feed) and is_persistable(var)


def as_program(program: Any) -> Program:
    """The program, or the one in a CompiledProgram; None: the default main program. Raises
    FluidTypeError for anything else.
    """
    if program is None:
        return default_main_program()
    found = getattr(program, "program", program) if isinstance(program, MakesRunnable) else program
    if not isinstance(found, Program):
        raise FluidTypeError(f"main_program is a Program, not {type(program).__name__}")
    return found


def descs(program: Program, vars: Iterable[Any]) -> dict[str, VarDesc]:
    """Variables (or names of the program's) by name. Raises FluidTypeError for anything else."""
    found: dict[str, VarDesc] = {}
    for var in vars:
        if isinstance(var, str):
            var = program.global_block().var(var)
        if not isinstance(var, Variable):
            raise FluidTypeError(
                f"vars is a list of Variables or names, not of {type(var).__name__}"
            )
        if var.desc.kind in STORED_KINDS:
            found[var.name] = var.desc
    return found


def collect(names: Iterable[str], scope: Scope | None = None) -> dict[str, np.ndarray]:
    """The values of variables as arrays, all between the same two steps. Raises EnforceNotMet,
    which names all variables without a value.
    """
    scope = chosen(scope)
    wanted = list(names)
    vars = {name: scope.find_var(name) for name in wanted}
    missing = [name for name, var in vars.items() if var is None or var.empty]
    if missing:
        raise EnforceNotMet(
            f"nothing to save for {listed(missing)}: not initialised in the scope; run the startup"
            " program first"
        )
    return scope.between_steps(
        wanted, lambda: {n: np.asarray(var.value) for n, var in vars.items() if var is not None}
    )


def listed(names: Iterable[str]) -> str:
    """The first names, quoted, and the number of further ones."""
    names = list(names)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(repr, names[:SHOWN])) + more


@dataclass(frozen=True)
class Difference:
    """The differences between a program and the values loaded for it. shapes, dtypes: name -> (the
    program's, the file's).
    """

    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    shapes: Mapping[str, tuple[Any, Any]] | None = None
    dtypes: Mapping[str, tuple[Any, Any]] | None = None

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected or self.shapes or self.dtypes)

    def __str__(self) -> str:
        lines = []
        for what, names in (
            ("missing in the file", self.missing),
            ("unexpected in the file", self.unexpected),
        ):
            if names:
                lines += [f"  {what} ({len(names)}):", *(f"    {n}" for n in names[:SHOWN])]
                lines += [f"    ... and {len(names) - SHOWN} more"] if len(names) > SHOWN else []
        for what, pairs in (("shape", self.shapes or {}), ("dtype", self.dtypes or {})):
            if pairs:
                width = max(map(len, list(pairs)[:SHOWN]))
                lines.append(f"  {what}, program's and file's ({len(pairs)}):")
                lines += [
                    f"    {n:<{width}}  {a}  {b}" for n, (a, b) in list(pairs.items())[:SHOWN]
                ]
                lines += [f"    ... and {len(pairs) - SHOWN} more"] if len(pairs) > SHOWN else []
        return "\n".join(lines)


def compare(wanted: Mapping[str, VarDesc], found: Mapping[str, np.ndarray]) -> Difference:
    """The differences between loaded arrays and the program's declarations."""
    shapes, dtypes = {}, {}
    for name in wanted:
        if name not in found:
            continue
        var, array = wanted[name], found[name]
        if var.shape is not None and not _fits(var.shape, array.shape):
            shapes[name] = (list(var.shape), list(array.shape))
        if var.dtype is not None and numpy_dtype(var.dtype) != array.dtype:
            dtypes[name] = (var.dtype, array.dtype.name)
    missing = tuple(n for n in wanted if n not in found)
    return Difference(missing, tuple(n for n in found if n not in wanted), shapes, dtypes)


def _fits(declared: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return len(declared) == len(shape) and all(
        d in (-1, n) for d, n in zip(declared, shape, strict=True)
    )


def store(
    wanted: Mapping[str, VarDesc],
    found: Mapping[str, np.ndarray],
    source: str,
    partial: bool = False,
    scope: Scope | None = None,
) -> Difference:
    """Check loaded arrays against the program's declarations, then store them in the scope: all, or
    none.

    partial: store the arrays that fit and return the difference; otherwise any difference raises
    LoadError with its text.
    """
    difference = compare(wanted, found)
    if difference and not partial:
        raise LoadError(
            f"{source} does not fit the program; give partial=True to load what fits:\n{difference}"
        )
    unfit = {*(difference.shapes or {}), *(difference.dtypes or {})}
    put({n: a for n, a in found.items() if n in wanted and n not in unfit}, scope)
    return difference


def put(arrays: Mapping[str, np.ndarray], scope: Scope | None = None) -> None:
    """Store arrays by name: in the scope that has the name, else in this scope."""
    chosen(scope).put(arrays)


def filename(name: Any) -> str:
    """The last part of a file's name, as Paddle takes it. Raises FluidValueError if there is
    none.
    """
    base = str(name).replace("\\", "/").rsplit("/", 1)[-1]
    if not isinstance(name, str) or base in ("", ".", "..") or "\0" in base:
        raise FluidValueError(f"{name!r} is not a file's name")
    return base
