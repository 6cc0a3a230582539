"""Compares a checkpoint with a program, and determines what orbax has to load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, Sharding

from ..dist.jobs import compare_programs
from ..dist.spmd import geo
from ..errors import FluidValueError, LoadError
from ..graph.program import Program
from ..ir.desc import ProgramDesc, VarDesc
from ..loaders.position import Position
from ..saved.values import STORED_KINDS, Difference, compare
from ..state.scope import Scope
from .record import Record, lines

LONGEST = 300  # characters of an op that a message shows


@dataclass(frozen=True)
class Restored:
    """The result of a restore: the step; the reader's position (None if none was saved); the saved
    trainer_args.

    difference: the values that do not fit, by name; empty unless strict=False. program: how the
    programs differ, in words, or "".
    """

    step: int
    position: Position | None = None
    trainer_args: Mapping[str, Any] = field(default_factory=dict)
    difference: Difference = Difference()
    program: str = ""


def meant(program: Program) -> ProgramDesc:
    """The program that a checkpoint describes. For a parameter-server job this is the program
    before transpile, for any size of the job.
    """
    plan = program.info.pserver_plan
    return program.desc if plan is None else plan.main


def wanted(program: Program) -> dict[str, VarDesc]:
    """The variables of a program that a checkpoint holds: all persistable ones, by name."""
    vars = (v for block in meant(program).blocks for v in block.vars.values())
    return {v.name: v for v in vars if v.persistable and v.kind in STORED_KINDS}


def besides(program: Program) -> dict[str, VarDesc]:
    """Further values of a geo job. They are saved if they exist, and loaded if they were saved."""
    plan = program.info.pserver_plan
    return geo.remembered(plan) if plan is not None and plan.mode == "geo" else {}


def concerned(
    program: Program, stored: Mapping[str, Any]
) -> tuple[dict[str, VarDesc], dict[str, Any]]:
    """The values that a program wants from a checkpoint, and those that the checkpoint has. Values
    of a geo job do not matter to other programs.
    """
    names = wanted(program)
    extra = {geo.COUNTER, *(n + geo.SNAPSHOT for n in names)} - names.keys()
    names |= {n: v for n, v in besides(program).items() if n in stored}
    return names, {n: v for n, v in stored.items() if n in names or n not in extra}


def program_difference(record: Record, desc: ProgramDesc, seed: int) -> str:
    """The first difference between the checkpoint's program and this one, in a sentence; "" if they
    agree.
    """
    at, theirs, ours = compare_programs.first_difference(record.program, lines(desc))
    if at >= 0:
        start = next(
            (i for i, (a, b) in enumerate(zip(theirs, ours, strict=False)) if a != b),
            min(len(theirs), len(ours)),
        )
        there, here = _around(theirs, start), _around(ours, start)
        return (
            f"the first difference between the programs: the checkpoint's has {there}, this one has"
            f" {here}"
        )
    if record.random.program_seed != seed:
        return (
            f"the checkpoint's program has random_seed {record.random.program_seed}, this one"
            f" {seed}"
        )
    return ""


def _around(line: str, at: int) -> str:
    """A line, quoted; of a long line the beginning, and the surroundings of the place."""
    if line == "nothing" or len(line) <= LONGEST:
        return line if line == "nothing" else f"`{line}`"
    left, right = max(at - LONGEST // 3, LONGEST // 3), at + LONGEST // 3
    head = f"{line[: LONGEST // 3]}{'...' if left > LONGEST // 3 else ''}"
    return f"`{head}{line[left:right]}{'...' if right < len(line) else ''}`"


def check(source: str, difference: Difference, program: str) -> None:
    """Raises LoadError for a checkpoint that does not fit, with all differences."""
    if difference:
        more = f"\n{program}" if program else ""
        raise LoadError(
            f"{source} does not fit the program; give strict=False to load what"
            f" fits:\n{difference}{more}"
        )
    if program:
        raise LoadError(
            f"{source} was made of another program; give strict=False to load it all the same:"
            f" {program}"
        )


def fitting(
    names: Mapping[str, VarDesc], stored: Mapping[str, Any]
) -> tuple[Difference, list[str]]:
    """The differences between stored values (with shapes and dtypes) and wanted ones, and the names
    that can be loaded.
    """
    difference = compare(names, stored)
    unfit = {*(difference.shapes or {}), *(difference.dtypes or {})}
    return difference, [n for n in stored if n in names and n not in unfit]


def shardings_of(
    names: list[str], stored: Mapping[str, Any], scope: Scope, asked: Mapping[str, Any] | None
) -> dict[str, Sharding]:
    """The sharding to load each variable onto: the requested one, else that of the scope's array,
    else the host.

    Raises FluidValueError for anything but a sharding, or for a variable that the checkpoint does
    not hold.
    """
    for name, sharding in (asked or {}).items():
        if name not in stored:
            raise FluidValueError(
                f"shardings names {name!r}, which the checkpoint does not hold as one array"
            )
        if not isinstance(sharding, Sharding):
            raise FluidValueError(
                f"shardings holds a {type(sharding).__name__} for {name!r}; it should be a"
                " jax.sharding.Sharding"
            )
    present = {
        n: (asked or {}).get(n) or _present(n, stored[n], scope) for n in names if n in stored
    }
    return {n: sharding for n, sharding in present.items() if sharding is not None}


def _present(name: str, stored: Any, scope: Scope) -> Sharding | None:
    var = scope.find_var(name)
    value = None if var is None or var.storage.shards() is not None else var.storage.read()
    if (
        not isinstance(value, jax.Array)
        or value.is_fully_replicated
        or tuple(value.shape) != tuple(stored.shape)
    ):
        return None
    return value.sharding if isinstance(value.sharding, NamedSharding) else None


def same_kind(name: str, array: Any, stored: Any) -> Any:
    """A loaded array, which must match its metadata. Raises LoadError."""
    if tuple(array.shape) != tuple(stored.shape) or np.dtype(array.dtype) != np.dtype(stored.dtype):
        raise LoadError(
            f"the checkpoint's {name!r} is not of the shape and dtype that its metadata tells; it"
            " is damaged"
        )
    return array
