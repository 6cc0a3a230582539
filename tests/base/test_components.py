"""Connected components, beside merging sets until none meet."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fluidjax.base.components import components


@given(st.lists(st.sets(st.integers(0, 12), max_size=4), max_size=12))
def test_sets_that_meet_are_in_one_group(found: list[set[int]]) -> None:
    groups = [({i}, set(elements)) for i, elements in enumerate(found)]
    while pair := next(((a, b) for a in groups for b in groups if a is not b and a[1] & b[1]), ()):
        a, b = pair
        groups = [g for g in groups if g is not a and g is not b] + [(a[0] | b[0], a[1] | b[1])]
    assert components(found) == sorted(sorted(members) for members, _ in groups)


def test_the_number_of_sets_may_be_large() -> None:
    assert components([[i, i + 1] for i in range(100_000)]) == [list(range(100_000))]
    assert components([]) == []
