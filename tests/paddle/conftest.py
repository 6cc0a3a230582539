"""What the tests of Paddle 2's names share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import fluidjax as fluid


@pytest.fixture
def fresh_programs() -> Iterator[None]:
    """Empty main and startup programs, scope and names."""
    with (
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.scope_guard(fluid.Scope()),
        fluid.unique_name.guard(),
    ):
        yield
