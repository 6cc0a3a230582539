"""What will be fetched from a program, in the forms in which it is asked for."""

from __future__ import annotations

from typing import Any

from ..errors import FetchError, near
from .program import Program
from .variable import names_of


def fetch_names(fetch_list: Any) -> tuple[str, ...]:
    """The names of a fetch list: a variable or a name, several of them, or None. Raises FluidTypeError for anything else."""
    return () if fetch_list is None else names_of(fetch_list, "fetch_list")


def kept_names(program: Program, targets: Any, what: str = "fetch_list") -> tuple[str, ...]:
    """As fetch_names. Raises FetchError for a variable that lost its memory to others (see memory_optimize)."""
    names = () if targets is None else names_of(targets, what)
    program.info.refuse_lost(names)
    return names


def found_names(program: Program, fetch_list: Any) -> tuple[str, ...]:
    """As kept_names. Raises FetchError for a name that the program does not have, too."""
    names = kept_names(program, fetch_list)
    for name in names:
        if program.desc.find_var(name) is None:
            raise FetchError(f"fetch target {name!r} is not in the program{near(name, program.desc.blocks[0].vars)}")
    return names
