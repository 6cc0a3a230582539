"""``fluid.save`` and ``fluid.load``: parameters, optimizer state and program under one prefix."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ..base.loc import warn
from ..errors import (
    ArgumentError,
    EnforceNotMet,
    FluidTypeError,
    FluidValueError,
    LoadError,
    MissingFileError,
)
from ..graph.program import Program
from ..graph.variable import Variable
from ..state.scope import global_scope
from . import pickled
from .arrays import read_array, read_arrays
from .files import read_file, write_files
from .values import (
    Difference,
    as_program,
    collect,
    compare,
    descs,
    is_belong_to_optimizer,
    is_parameter,
    is_persistable,
    put,
    store,
)
from .vars import load_vars

PARAMS, OPTIMIZER, MODEL = ".pdparams", ".pdopt", ".pdmodel"


def _prefix(model_path: str) -> Path:
    for ending in (PARAMS, OPTIMIZER, MODEL):
        model_path = model_path.removesuffix(ending)
    return Path(model_path)


def save(program: Program, model_path: str, protocol: int = 4) -> None:
    """Write PREFIX.pdparams (Parameters), PREFIX.pdopt (the other persistable variables) and
    PREFIX.pdmodel.

    The first two are pickled dicts of NumPy arrays, as Paddle 1.8.5 reads them, in opcodes that
    pickle protocols 2 to 4 have (one of which `protocol` names, as in Paddle 2). All three files
    are replaced, or none. Raises FluidValueError for a prefix without a file's name, EnforceNotMet
    for variables without a value.
    """
    if protocol not in (2, 3, 4):
        raise FluidValueError(f"save's protocol is 2, 3 or 4, not {protocol!r}")
    program = as_program(program)
    if os.path.basename(model_path) in ("", ".", ".."):
        raise ArgumentError(f"model_path is dirname/file_prefix, not {model_path!r}")
    params = collect(descs(program, filter(is_parameter, program.list_vars())))
    state = collect(descs(program, filter(is_belong_to_optimizer, program.list_vars())))
    data = program.serialize_to_string()
    base = Path(model_path)
    write_files(
        base.parent,
        {
            base.name + PARAMS: lambda: pickled.write(params),
            base.name + OPTIMIZER: lambda: pickled.write(state),
            base.name + MODEL: lambda: [data],
        },
    )


def load(
    program: Program,
    model_path: str,
    executor: Any = None,
    var_list: Sequence[Variable] | None = None,
    partial: bool = False,
) -> Difference | None:
    """Load into the global scope the files of `save` (or of save_params, save_persistables,
    save_vars).

    model_path: the prefix, a folder of files, or a combined file (then var_list says which
    variables it holds). partial: load what fits, and return the Difference. A program without
    optimizer state (a test program) does not read PREFIX.pdopt.

    Raises LoadError listing all values that are missing, unexpected, or of another shape or dtype;
    ParseError for damaged files; FluidValueError for missing files. Then the scope does not change.
    """
    program = as_program(program)
    prefix = _prefix(model_path)
    if not prefix.with_name(prefix.name + PARAMS).is_file():
        return _load_files(program, model_path, executor, var_list, partial)
    wanted = descs(program, filter(is_parameter, program.list_vars()))
    state = descs(program, filter(is_belong_to_optimizer, program.list_vars()))
    found = read_pickles(prefix, (PARAMS, OPTIMIZER) if state else (PARAMS,), partial)
    difference = store({**wanted, **state}, found, repr(str(prefix)), partial)
    return difference if partial else None


def read_pickles(
    prefix: Path, endings: Sequence[str] = (PARAMS, OPTIMIZER), partial: bool = False
) -> dict[str, np.ndarray]:
    """The arrays of PREFIX.pdparams and PREFIX.pdopt. Raises FluidValueError for a missing file,
    unless `partial`.
    """
    found: dict[str, np.ndarray] = {}
    for ending in endings:
        path = prefix.with_name(prefix.name + ending)
        if not partial or path.is_file():
            found.update(pickled.read(read_file(path), str(path)))
    return found


def _load_files(
    program: Program, model_path: str, executor: Any, var_list: Any, partial: bool
) -> Difference | None:
    """The files of Fluid's other save functions: a folder, or one file."""
    if os.path.isdir(model_path):
        vars = [
            v
            for v in program.list_vars()
            if is_persistable(v) and os.path.isfile(os.path.join(model_path, v.name))
        ]
        return load_vars(executor, model_path, program, vars, None, None, partial)
    if not os.path.isfile(model_path):
        raise MissingFileError(f"there is neither {model_path + PARAMS!r} nor {model_path!r}")
    if var_list is None:
        raise FluidValueError(
            f"{model_path!r} does not say which variables it holds; name them in var_list"
        )
    known = {v.name for v in program.list_vars()}
    for var in var_list:
        if var.name not in known:
            raise FluidValueError(f"loaded var [{var.name}] is not in program variable list")
    folder, name = os.path.split(model_path)
    return load_vars(executor, folder or ".", program, var_list, None, name, partial)


def load_program_state(
    model_path: str, var_list: Sequence[Variable] | None = None
) -> dict[str, np.ndarray]:
    """The saved values by name, without a program: from PREFIX.pdparams and .pdopt, a folder, or a
    combined file with var_list.

    Raises FluidValueError for missing files, ParseError for damaged ones.
    """
    prefix = _prefix(model_path)
    if prefix.with_name(prefix.name + PARAMS).is_file():
        return read_pickles(prefix, partial=True)
    if os.path.isfile(model_path):
        if var_list is None:
            raise FluidValueError("var_list can not be None when model_path is a file type")
        folder, name = os.path.split(model_path)
        return read_arrays({v.name: v.desc for v in var_list}, folder or ".", name)
    if not os.path.isdir(model_path):
        raise MissingFileError(f"there is neither {str(prefix) + PARAMS!r} nor {model_path!r}")
    if var_list is not None:
        wanted = {v.name: v.desc for v in var_list}
        found = read_arrays(wanted, model_path, None)
        if len(found) < len(wanted):
            raise LoadError(f"{model_path!r} does not fit var_list:\n{compare(wanted, found)}")
        return found
    paths = {
        p.relative_to(model_path).as_posix(): p
        for p in sorted(Path(model_path).rglob("*"))
        if p.is_file()
    }
    return {n: read_array(p) for n, p in paths.items()}


def set_program_state(program: Program, state_dict: Mapping[str, np.ndarray]) -> None:
    """Store values by name (NumPy or JAX arrays) in the global scope, in which the startup program
    has created the variables.

    Variables that `state_dict` lacks do not change; names that the program lacks cause a warning.
    Raises EnforceNotMet before the startup program has run, FluidTypeError for values that are not
    arrays, LoadError for other shapes or dtypes; then nothing is set.
    """
    program = as_program(program)
    wanted = descs(program, filter(is_persistable, program.list_vars()))
    scope = global_scope()
    for name in wanted:
        var = scope.find_var(name)
        if var is None or var.empty:
            raise EnforceNotMet(
                f"Variable [ {name} ] Not found, Please make sure run startup program"
            )
    for name, value in state_dict.items():
        if not isinstance(value, np.ndarray | jax.Array):
            raise FluidTypeError(
                f"the value of {name!r} is a NumPy or JAX array, not {type(value).__name__}"
            )
    given = {n: np.array(a) for n, a in state_dict.items() if n in wanted}
    difference = compare({n: wanted[n] for n in given}, given)
    if difference:
        raise LoadError(f"state_dict does not fit the program:\n{difference}")
    put(given, scope)
    unused = [n for n in state_dict if n not in wanted]
    if unused:
        names = ", ".join(unused)
        warn(
            f"state_dict has values of which the program has no variable, and which are left out: {names}"
        )
