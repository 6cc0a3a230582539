"""``fluid.io.save_vars`` and related functions: values in Paddle's LoDTensor files, one file each
or all in one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..base.dtypes import enum_of
from ..base.loc import warn
from ..errors import ArgumentError, FluidValueError
from ..graph.program import Program
from ..graph.variable import Parameter, Variable
from ..ir.desc import VarDesc
from . import stream
from .arrays import read_arrays
from .files import Pieces, safe_name, write_files
from .values import Difference, as_program, collect, descs, is_parameter, is_persistable, store
from .values import filename as base_name

Predicate = Callable[[Variable], bool]


def _chosen(
    program: Program, vars: Iterable[Any] | None, predicate: Predicate | None
) -> dict[str, VarDesc]:
    if vars is None:
        if predicate is None:
            raise FluidValueError("give the variables as vars, or a predicate that chooses them")
        vars = [v for v in program.list_vars() if predicate(v)]
    return descs(program, vars)


def save_vars(
    executor: Any, dirname: str | None, main_program: Program | None = None, vars: Sequence[Variable] | None = None,
    predicate: Predicate | None = None, filename: str | None = None,
) -> bytes | None:  # fmt: skip
    """Save variables' values from the global scope.

    dirname: a folder, created if missing. vars: variables; None: those of main_program (default:
    the default main program) that `predicate` accepts. filename: None writes one file for each
    variable, with the variable's name; else all go into this file, in sorted order of their names.
    If both dirname and filename are None, the combined bytes are returned. executor: accepted as in
    Fluid, but not used.

    Raises EnforceNotMet for variables without a value, FluidValueError for names that would leave
    the folder. A save that fails does not change older files.
    """
    return _save(_chosen(as_program(main_program), vars, predicate), dirname, filename)


def _save(wanted: Mapping[str, VarDesc], dirname: str | None, filename: str | None) -> bytes | None:
    if not wanted:
        warn("the program has no such variable, so nothing is saved")
        return None
    arrays = collect(sorted(wanted))
    if dirname is None:
        if filename is not None:
            raise FluidValueError("save_vars with a filename needs a dirname")
        return b"".join(bytes(piece) for piece in _combined(arrays)())
    write_files(os.path.normpath(dirname), files_of(arrays, filename))
    return None


def files_of(arrays: Mapping[str, np.ndarray], filename: str | None) -> dict[str, Pieces]:
    """File name -> a function that makes its bytes: one file for each array, or one for all in
    sorted order.
    """
    if filename is not None:
        return {base_name(filename): _combined(arrays)}
    return {safe_name(name): partial(_single, name, array) for name, array in arrays.items()}


def _single(name: str, array: np.ndarray) -> Iterator[bytes | memoryview]:
    try:
        enum_of(array.dtype.name)
    except ArgumentError as error:
        raise FluidValueError(
            f"variable {name!r} does not fit Paddle's format: {error}; checkpoints hold it"
        ) from None
    return stream.write(stream.Tensor(array))


def _combined(arrays: Mapping[str, np.ndarray]) -> Pieces:
    return lambda: (piece for name in sorted(arrays) for piece in _single(name, arrays[name]))


def save_params(
    executor: Any,
    dirname: str | None,
    main_program: Program | None = None,
    filename: str | None = None,
) -> bytes | None:
    """Save all Parameters of a program: see save_vars."""
    return save_vars(executor, dirname, main_program, None, is_parameter, filename)


def save_persistables(
    executor: Any,
    dirname: str | None,
    main_program: Program | None = None,
    filename: str | None = None,
) -> bytes | None:
    """Save all persistable variables of a program, optimizer state included: see save_vars.

    A trainer of a parameter-server job writes the variables that its program keeps. Trainer 0 also
    writes the pservers' optimizer state and tables, whole and by name.
    """
    from . import jobs

    program = as_program(main_program)
    if jobs.is_trainers(program):
        return _save(jobs.to_save(program), dirname, filename)
    return save_vars(executor, dirname, program, None, is_persistable, filename)


def load_vars(
    executor: Any, dirname: str | None, main_program: Program | None = None, vars: Sequence[Variable] | None = None,
    predicate: Predicate | None = None, filename: str | bytes | None = None, partial: bool = False,
) -> Difference | None:  # fmt: skip
    """Load variables' values into the global scope: see save_vars.

    Raises LoadError listing every variable that is missing or has another shape or dtype,
    ParseError for a file that holds no tensor; then the scope does not change. partial: load what
    fits, and return the Difference.
    """
    return _load(_chosen(as_program(main_program), vars, predicate), dirname, filename, partial)


def _load(
    wanted: Mapping[str, VarDesc], dirname: str | None, filename: str | bytes | None, partial: bool
) -> Difference | None:
    nothing = not wanted and filename is None  # variables of no file need no folder, as in Fluid
    found = {} if nothing else read_arrays(wanted, dirname, filename)
    source = (
        "what is given as bytes"
        if dirname is None
        else repr(str(Path(dirname, filename) if isinstance(filename, str) else dirname))
    )
    difference = store(wanted, found, source, partial)
    return difference if partial else None


def load_params(
    executor: Any,
    dirname: str | None,
    main_program: Program | None = None,
    filename: str | None = None,
    partial: bool = False,
) -> Difference | None:
    """Load all Parameters of a program: see load_vars."""
    return load_vars(executor, dirname, main_program, None, is_parameter, filename, partial)


def load_persistables(
    executor: Any,
    dirname: str | None,
    main_program: Program | None = None,
    filename: str | None = None,
    partial: bool = False,
) -> Difference | None:
    """Load all persistable variables of a program: see load_vars.

    For a pserver's program, load the variables that the pserver owns; the trainers of its job then
    start with them. For a trainer's program in a running job, load everything that
    save_persistables of trainer 0 writes; every trainer must call this.
    """
    from . import jobs

    program = as_program(main_program)
    if jobs.is_trainers(program):
        return _load(jobs.to_load(program), dirname, filename, partial)
    if (
        jobs.is_pservers(program)
        and isinstance(dirname, str)
        and not isinstance(filename, bytes)
        and not partial
    ):
        jobs.load_on_pserver(program, dirname, filename)
        return None
    return load_vars(executor, dirname, program, None, is_persistable, filename, partial)


def get_program_parameter(program: Program) -> list[Parameter]:
    """The Parameters of a program."""
    return [v for v in as_program(program).list_vars() if isinstance(v, Parameter)]


def get_program_persistable_vars(program: Program) -> list[Variable]:
    """The persistable variables of a program, those that have values to save."""
    return [v for v in as_program(program).list_vars() if is_persistable(v)]


def get_parameter_value(para: Variable, executor: Any) -> np.ndarray:
    """The value of a Parameter in the global scope, as a copy. Raises FluidTypeError for another
    variable.
    """
    if not is_parameter(para):
        raise ArgumentError(f"get_parameter_value takes a Parameter, not {para!r}")
    return np.array(collect([para.name])[para.name])


def get_parameter_value_by_name(
    name: str, executor: Any, program: Program | None = None
) -> np.ndarray:
    """The value of a Parameter by its name in a program (default: the default main program)."""
    return get_parameter_value(as_program(program).global_block().var(name), executor)


__all__ = [
    "get_parameter_value", "get_parameter_value_by_name", "get_program_parameter", "get_program_persistable_vars",
    "load_params", "load_persistables", "load_vars", "save_params", "save_persistables", "save_vars",
]  # fmt: skip
