"""How many examples a property test runs: a number for the fixed profile, more in a search (see
conftest.py).
"""

from __future__ import annotations

from hypothesis import settings

FIXED = 60  # examples of a test that names no number, in the fixed profile


def examples(number: int) -> settings:
    """The settings of a test that runs so many examples; under another profile, in proportion to
    its max_examples.
    """
    return settings(max_examples=max(1, number * settings.default.max_examples // FIXED))
