"""Ops are tested one at a time, so a collective has nobody to talk to: a ring of one rank."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fluidjax.ops import ring


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    with ring.bound(ring.Ring(None, 1)):
        yield


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of a batch of samples in a row, so that one worker runs them and no other compiles
    the batch again.
    """
    places = [
        i
        for i, item in enumerate(items)
        if getattr(item, "module", None) is not None and hasattr(item.module, "batch_of")
    ]
    ordered = sorted((items[i] for i in places), key=lambda item: item.module.batch_of(item))
    for i, item in zip(places, ordered, strict=True):
        items[i] = item
