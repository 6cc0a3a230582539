"""Requests that wait, run, and are given up meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the package uvicorn is not installed")

from fluidjax.serving.batching import Batches
from fluidjax.serving.metrics import Metrics
from fluidjax.serving.settings import Settings


class Slow:
    """Stands for a model: a run says that it has begun, and lasts until it is let go."""

    sizes = ()

    def __init__(self) -> None:
        self.began, self.goes, self.ran = threading.Event(), threading.Event(), []

    def kind(self, feed: Mapping[str, Any]) -> None:
        return None

    def rows(self, feed: Mapping[str, Any]) -> int:
        return 1

    def apart(self, kind: None, feed: Mapping[str, Any]) -> bool:
        return False

    def run(self, feeds: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        self.began.set()
        assert self.goes.wait(60)
        self.ran += [f["x"] for f in feeds]
        return list(feeds)


def test_a_request_that_is_given_up_ends_no_thread() -> None:
    """While it waits it is not run; while it runs it runs to its end. Those behind it are answered."""
    model = Slow()
    batches: Any = Batches(model, Settings(batch_sizes=()), Metrics())
    running = batches.submit({"x": 1})
    assert model.began.wait(60)
    waiting, last = batches.submit({"x": 2}), batches.submit({"x": 3})
    assert not running.cancel() and waiting.cancel()
    model.goes.set()
    assert last.result(60) == {"x": 3}
    batches.end()
    assert model.ran == [1, 3]
