"""The plan of memory_optimize: the shared names, and the distance from the least possible memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..ir.desc import ProgramDesc, VarDesc
from .lifetimes import Life, live_bytes, size


@dataclass(frozen=True, slots=True)
class Placed:
    """A variable of the old program: its name in the new one, its bytes, and its first and last op."""

    var: str
    name: str
    bytes: int
    first: int
    last: int


@dataclass(frozen=True)
class MemoryPlan:
    """The certificate of memory_optimize; all figures are bytes, with unknown dimensions as
    `batch_size`.

    placed: the variables that could share memory, in order of their first op. lower_bound: the
    largest memory alive at one op, a lower bound of every plan. pool: the remaining names, each as
    large as its largest variable (a name cannot be divided, so this may exceed the bound).
    unshared: all variables, each with separate memory. log: one line for every shared name, as
    printed by Fluid.
    """

    title: str
    batch_size: int
    placed: tuple[Placed, ...]
    lower_bound: int
    pool: int
    unshared: int
    log: tuple[str, ...] = ()

    @cached_property
    def reused(self) -> Mapping[str, str]:
        """Variables that share a name -> that name: none of them can be fetched."""
        users: dict[str, list[str]] = {}
        for p in self.placed:
            users.setdefault(p.name, []).append(p.var)
        return {
            var: name for name, names in users.items() if names != [name] for var in {name, *names}
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        rows = [
            {"var": p.var, "name": p.name, "bytes": p.bytes, "first": p.first, "last": p.last}
            for p in self.placed
        ]
        figures = {k: getattr(self, k) for k in ("batch_size", "lower_bound", "pool", "unshared")}
        return {"pass": self.title, **figures, "placed": rows}

    def __str__(self) -> str:
        rows = [
            ("without sharing", self.unshared),
            ("names", self.pool),
            ("least possible", self.lower_bound),
        ]
        merged = sum(p.var != p.name for p in self.placed)
        head = (
            f"{self.title}: {merged} of {len(self.placed)} variables took the name of another;"
            f" bytes at batch size {self.batch_size}:"
        )
        return "\n".join(
            [head, *(f"  {what:<16}{n:>16,}{_ratio(n, self.lower_bound)}" for what, n in rows)]
        )


def _ratio(n: int, least: int) -> str:
    return f"{n / least:8.3f}" if least else ""


def make_plan(
    title: str,
    desc: ProgramDesc,
    lives: Sequence[Life],
    names: Mapping[str, str],
    batch_size: int,
    log: Iterable[str],
) -> MemoryPlan:
    """The plan in which variable `life.name` is called `names[life.name]` (default: its own name)."""
    sizes = {life.name: size(life.var, batch_size) for life in lives}
    placed = tuple(
        Placed(life.name, names.get(life.name, life.name), sizes[life.name], life.first, life.last)
        for life in lives
    )
    largest: dict[str, int] = {}
    for p in placed:
        largest[p.name] = max(largest.get(p.name, 0), p.bytes)
    least = max(live_bytes(desc, sizes, batch_size), default=0)
    return MemoryPlan(
        title, batch_size, placed, least, sum(largest.values()), sum(sizes.values()), tuple(log)
    )


def log_line(index: int, var: VarDesc, host: VarDesc) -> str:
    """The line of Fluid 0.15's print_log for one shared name; the shape is that of the memory."""
    return (
        f"Hit Cache !!!! cache pool index is {index}, var name is {var.name}, cached var name is"
        f" {host.name}, var shape is {list(host.shape or ())} "
    )
