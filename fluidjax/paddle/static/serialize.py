"""paddle.static.serialize_program and its kin: what save_inference_model writes, as bytes."""

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
    """A program as serialize_program writes it, but that it fetches `fetch_vars` themselves: in
    test mode, and of the ops only those that compute them from `feed_vars`. skip_prune_program: all
    ops.

    Raises FluidTypeError for other than a program and variables, FluidValueError for a program
    without ops and a feed not needed.
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
    `feed_vars`, as .pdmodel holds it.

    Raises FluidTypeError for other than variables, FluidValueError for a feed that is not needed.
    """
    return _pruned(feed_vars, fetch_vars, program).serialize_to_string()


def serialize_persistables(
    feed_vars: Variable | Sequence[Variable], fetch_vars: Variable | Sequence[Variable], executor: Any, *, program: Program | None = None,
    **kwargs: Any,
) -> bytes | None:  # fmt: skip
    """The values that this part of a program keeps between runs, from the global scope, as
    .pdiparams holds them.

    None, with a warning, where it keeps none. Raises as serialize_program does, and EnforceNotMet
    for values that are not there.
    """
    return vars.save_persistables(executor, None, _pruned(feed_vars, fetch_vars, program))


def deserialize_program(data: bytes) -> Program:
    """The program that serialize_program wrote. Raises ParseError for other bytes."""
    return model.read_program(data, "the given bytes")[0]


def deserialize_persistables(program: Program, data: bytes, executor: Any) -> None:
    """Put the values that serialize_persistables wrote into the global scope.

    Raises FluidTypeError for a program that is none, FluidValueError where it keeps no values,
    ParseError for other bytes, LoadError for values that do not fit the program; then the scope is
    as it was.
    """
    if not any(is_persistable(v) for v in as_program(program).list_vars()):
        raise FluidValueError(
            "the program keeps no values between runs, so there is nothing to put into the scope"
        )
    vars.load_persistables(executor, None, program, data)  # type: ignore[arg-type]


def save_to_file(path: str, content: bytes) -> None:
    """Write bytes to a file, whose folder is made if it is not there. Raises FluidTypeError for
    other than bytes.
    """
    if not isinstance(content, bytes):
        raise FluidTypeError(f"save_to_file writes bytes, not {type(content).__name__}")
    where = Path(path)
    write_files(where.parent, {where.name: lambda: [content]})


def load_from_file(path: str) -> bytes:
    """The bytes of a file. Raises FluidValueError where there is none."""
    return read_file(path)


__all__ = [
    "deserialize_persistables", "deserialize_program", "load_from_file", "normalize_program", "save_to_file",
    "serialize_persistables", "serialize_program",
]  # fmt: skip
