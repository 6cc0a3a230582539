"""docs/errors-by-op.md has every op of Paddle's that is there: with its error, or with the reason
why no recording has it alone.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from .errors import PATH, distance, unrecorded
from .protos import paddles

pytestmark = pytest.mark.once


def test_every_op_stands_on_the_page() -> None:
    """A new op of Paddle's: make errors (or python -m tests.ops.errors), and read the diff."""
    measured, _, rest = PATH.read_text().partition("## Ops without")
    there = re.findall(r"^\| (\w+) \| [13]\.", measured, re.M)
    without = re.findall(r"`(\w+)`", re.sub(r" \| .* \|$", "", rest, flags=re.M))
    assert len(there) == len(set(there)) and not set(there) & set(without)
    assert paddles() <= {*there, *without}
    assert set(without) <= unrecorded().keys()


def test_the_distance_is_that_of_the_worst_element() -> None:
    want, got = np.array([4.0, 1.0, np.inf, np.nan, 0.0]), np.array([4.0, 1.5, np.inf, np.nan, 0.0])
    assert distance(want, got) == 0.125 and distance(want, got, own=True) == 0.5
    assert distance(want, got, without=frozenset([1])) == 0 and distance(want, want) == 0
    with pytest.raises(AssertionError):
        distance(want, got[:2])
