"""paddle.static.serialize_program and related functions: the contents of save_inference_model's
files, as bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...errors import FluidTypeError, FluidValueError
from ...graph.program import Program
from ...graph.variable import Variable
from ...saved import model, vars
from ...saved.files import read_file, write_files
from ...saved.values import as_program, is_persistable


def _listed(given: Any, what: str) -> list[Variable]:
    found = list(given) if isinstance(given, list | tuple) else [given]
    if not found or not all(isinstance(v, Variable) for v in found):
        raise FluidTypeError(f"{what} is a variable or a list of them, not {given!r}")
    return found


def _pruned(feed_vars: Any, fetch_vars: Any, program: Any) -> Program:
    feeds, fetches = _listed(feed_vars, "feed_vars"), _listed(fetch_vars, "fetch_vars")
    return model.deployed(as_program(program), [v.name for v in feeds], fetches)[0]


def normalize_program(
    program: Program, feed_vars: Variable | Sequence[Variable], fetch_vars: Variable | Sequence[Variable], *,
    skip_prune_program: bool = False,
) -> Program:  # fmt: skip
    """The program that serialize_program writes, except that it fetches `fetch_vars` themselves: in
    test mode, with only the ops that compute them from `feed_vars`. skip_prune_program: all ops.

    Raises FluidTypeError unless given a program and variables, FluidValueError for a program
    without ops and an unneeded feed.
    """
    feeds, fetches = _listed(feed_vars, "feed_vars"), _listed(fetch_vars, "fetch_vars")
    if not isinstance(program, Program):
        raise FluidTypeError(f"normalize_program takes a Program, not {program!r}")
    if not program.global_block().ops:
        raise FluidValueError("the program to normalize has no ops; build it first")
    desc = model.normalized(
        program.desc,
        [v.name for v in feeds],
        [v.name for v in fetches],
        prune=not skip_prune_program,
    )
    return program.clone().copy_with(desc)


def serialize_program(
    feed_vars: Variable | Sequence[Variable],
    fetch_vars: Variable | Sequence[Variable],
    *,
    program: Program | None = None,
    **kwargs: Any,
) -> bytes:
    """The part of a program (default: the default main program) that computes `fetch_vars` from
    `feed_vars`, in the format of .pdmodel.

    Raises FluidTypeError unless given variables, FluidValueError for an unneeded feed.
    """
    return _pruned(feed_vars, fetch_vars, program).serialize_to_string()


def serialize_persistables(
    feed_vars: Variable | Sequence[Variable], fetch_vars: Variable | Sequence[Variable], executor: Any, *, program: Program | None = None,
    **kwargs: Any,
) -> bytes | None:  # fmt: skip
    """The persistable values of this part of a program, from the global scope, in the format of
    .pdiparams.

    None, with a warning, if there are none. Raises the errors of serialize_program, and
    EnforceNotMet for missing values.
    """
    return vars.save_persistables(executor, None, _pruned(feed_vars, fetch_vars, program))


def deserialize_program(data: bytes) -> Program:
    """The program that serialize_program wrote. Raises ParseError for other bytes."""
    return model.read_program(data, "the given bytes")[0]


def deserialize_persistables(program: Program, data: bytes, executor: Any) -> None:
    """Put the values that serialize_persistables wrote into the global scope.

    Raises FluidTypeError unless given a program, FluidValueError if it has no persistable values,
    ParseError for other bytes, LoadError for values that do not fit the program; then the scope
    does not change.
    """
    if not any(is_persistable(v) for v in as_program(program).list_vars()):
        raise FluidValueError(
            "the program keeps no values between runs, so there is nothing to put into the scope"
        )
    vars.load_persistables(executor, None, program, data)  # type: ignore[arg-type]


def save_to_file(path: str, content: bytes) -> None:
    """Write bytes to a file; a missing folder is made. Raises FluidTypeError unless they are bytes."""
    if not isinstance(content, bytes):
        raise FluidTypeError(f"save_to_file writes bytes, not {type(content).__name__}")
    where = Path(path)
    write_files(where.parent, {where.name: lambda: [content]})


def load_from_file(path: str) -> bytes:
    """The bytes of a file. Raises FluidValueError if there is none."""
    return read_file(path)


__all__ = [
    "deserialize_persistables", "deserialize_program", "load_from_file", "normalize_program", "save_to_file",
    "serialize_persistables", "serialize_program",
]  # fmt: skip
