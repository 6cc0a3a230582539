"""Which tests run where (docs/testing.md): `make test` leaves out the slow ones, and CI runs a part
of those beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import pytest

ROW = 24  # parameters of a test that stay together in a part: what they share is made once


def mark_slow(items: Iterable[pytest.Item]) -> None:
    """Parameters count as slow behind the first n of a test marked first(n); in a module that names
    LEADS, all but these do.
    """
    seen: Counter[str] = Counter()
    for item in items:
        if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
            continue
        if item.get_closest_marker("thorough") is not None:
            continue
        first = item.get_closest_marker("first")
        leads, name = getattr(item.module, "LEADS", None), item.callspec.params.get("name")
        test = item.nodeid.partition("[")[0]
        if leads and name:
            slow = name not in leads
        else:
            slow = first is not None and seen[test] >= first.args[0]
        if slow:
            item.add_marker(pytest.mark.slow)
        seen[test] += 1


def part_of(items: Sequence[Any], part: str) -> tuple[list[Any], list[Any]]:
    """The tests of part "k/n" and those of the other n - 1 parts.

    Tests whose samples are compiled together (`batch_of` of their module) are in one part.
    """
    k, _, n = part.partition("/")
    if not (k.isdecimal() and n.isdecimal() and int(k) < int(n)):
        raise pytest.UsageError(f"--part {part} is not K/N with K from 0 to N - 1, like 3/8")
    seen: Counter[str] = Counter()
    rows: dict[Hashable, int] = {}
    parts: tuple[list[Any], list[Any]] = [], []
    for item in items:
        test = item.nodeid.partition("[")[0]
        batch_of = getattr(getattr(item, "module", None), "batch_of", None)
        row = (test, seen[test] // ROW) if batch_of is None else (item.path, batch_of(item))
        seen[test] += 1
        parts[rows.setdefault(row, len(rows)) % int(n) != int(k)].append(item)
    return parts
