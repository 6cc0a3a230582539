"""Every slow test has its turn: the parts of a run have each test once, and keep together what is
compiled together.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .choice import ROW, part_of


def made(counts: list[int]) -> list[SimpleNamespace]:
    """Tests with so many parameters each; the samples of every third are compiled by threes."""
    together = SimpleNamespace(batch_of=lambda item: item.at // 3)
    return [
        SimpleNamespace(
            nodeid=f"t{test}[{at}]", at=at, path=Path(f"t{test}.py"),
            module=None if test % 3 else together,
        )
        for test, count in enumerate(counts)
        for at in range(count)
    ]  # fmt: skip


@given(st.lists(st.integers(0, 2 * ROW), max_size=9), st.integers(1, 8))
def test_each_is_in_one_part(counts: list[int], n: int) -> None:
    items = made(counts)
    parts = [part_of(items, f"{k}/{n}") for k in range(n)]
    assert sorted(i.nodeid for chosen, _ in parts for i in chosen) == sorted(
        i.nodeid for i in items
    )
    for chosen, left_out in parts:
        assert [i for i in items if i in chosen] == chosen
        batches = [{(i.path, i.at // 3) for i in some if i.module} for some in (chosen, left_out)]
        assert batches[0].isdisjoint(batches[1])


@pytest.mark.parametrize("part", ["8/8", "-1/8", "3", "a/b"])
def test_a_part_that_there_is_not(part: str) -> None:
    with pytest.raises(pytest.UsageError, match="is not K/N with K from 0 to N - 1"):
        part_of([], part)
