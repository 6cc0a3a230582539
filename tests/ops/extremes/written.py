"""What docs/extremes.md says now, and which cases need not run each time because of that."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from . import cases_of
from .recorded import recorded

PATH = Path(__file__).parents[3] / "docs" / "extremes.md"


@cache
def written() -> dict[str, set[tuple[str, str]]]:
    """{case name: (title, row of the page)}"""
    table: dict[str, set[tuple[str, str]]] = {}
    title = ""
    for line in PATH.read_text().splitlines():
        title = line[3:] if line.startswith("## ") else title
        if line.startswith("| ") and not line.startswith(
            ("| case |", "| op types |", "| --- ", "| `")
        ):
            table.setdefault(line[2:].split(" | ")[0], set()).add((title, line))
    return table


@cache
def repeated(family: str) -> set[str]:
    """Names of cases in float64 that repeat one in float32, and of which the page says nothing; of
    each op the first runs.
    """
    cases = [case for case in cases_of(family) if not recorded(family, case).refused]
    names = {case.name for case in cases}
    twins = [
        c for c in cases if "float64" in c.label and c.name.replace("float64", "float32") in names
    ]
    first = {case.op: case.name for case in reversed(twins)}
    programs = {
        c.program() for c in cases if c not in twins or c.name in written() or first[c.op] == c.name
    }
    return {case.name for case in twins if case.program() not in programs}
