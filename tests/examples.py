"""How many examples a property test runs (conftest.py has the profiles)."""

from __future__ import annotations

from hypothesis import settings

BASE = 60  # the max_examples of a profile under which a test runs as many examples as it names


def examples(number: int) -> settings:
    """The settings of a test that names a number of examples: it runs them in proportion to the
    max_examples of the profile.
    """
    return settings(max_examples=max(1, number * settings.default.max_examples // BASE))
