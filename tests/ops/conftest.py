"""Ops are tested one at a time, so a collective has nobody to talk to: a ring of one rank."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fluidjax.ops import ring


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    with ring.bound(ring.Ring(None, 1)):
        yield
