"""Reads the fetches of a program in the forms in which callers give them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import ArgumentError, FetchError, FluidTypeError, near
from ..ir.edit import OPTIMIZE, role
from .operator import Operator
from .program import Program
from .variable import names_of


def fetch_targets(fetch_list: Any) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The names of a fetch list as Executor.run takes it, and the uids of the optimize ops in it.

    Nested lists count as their elements. A tuple is the result of minimize, of which the ops count
    and not the gradients.

    Raises FluidTypeError for anything else, also for an op that updates nothing.
    """
    if fetch_list is None:
        return (), ()
    if isinstance(fetch_list, set | frozenset):
        raise ArgumentError(
            "fetch_list takes variables or their names in an order, and a set has none; give a list"
        )
    try:
        return names_of(fetch_list, "fetch_list"), ()
    except FluidTypeError:
        if not isinstance(fetch_list, list | tuple):
            raise
    names: list[str] = []
    ops: list[int] = []
    for item in _flat(fetch_list):
        if not isinstance(item, Operator):
            names += names_of(item, "fetch_list")
        elif role(item.desc) & OPTIMIZE:
            ops.append(item.desc.uid)
        else:
            raise FluidTypeError(
                "fetch_list takes variables, their names, and optimize ops such as minimize"
                f" returns, not op '{item.type}'; fetch the variable that it writes"
            )
    return tuple(names), tuple(ops)


def _is_result(item: Any) -> bool:
    """Whether a value looks like the result of minimize: ops, and pairs of parameters and
    gradients.
    """
    return isinstance(item, tuple) and bool(item) and isinstance(item[0], list | tuple)


def _flat(fetch_list: Any) -> Iterator[Any]:
    for item in [fetch_list] if _is_result(fetch_list) else fetch_list:
        if _is_result(item):
            yield from item[0]
        elif isinstance(item, list | tuple):
            yield from item
        else:
            yield item


def fetch_names(fetch_list: Any) -> tuple[str, ...]:
    """The names of a fetch list: a variable or a name, several of them, or None. Raises
    FluidTypeError for anything else.
    """
    return () if fetch_list is None else names_of(fetch_list, "fetch_list")


def kept_names(program: Program, targets: Any, what: str = "fetch_list") -> tuple[str, ...]:
    """As fetch_names. Raises FetchError for a variable whose memory was reused (see
    memory_optimize).
    """
    names = () if targets is None else names_of(targets, what)
    program.info.refuse_lost(names)
    return names


def found_names(program: Program, fetch_list: Any) -> tuple[str, ...]:
    """As kept_names. Also raises FetchError for a name that the program does not have."""
    names = kept_names(program, fetch_list)
    for name in names:
        if program.desc.find_var(name) is None:
            raise FetchError(
                f"fetch target {name!r} is not in the"
                f" program{near(name, program.desc.blocks[0].vars)}"
            )
    return names
