"""Waiting requests, and the threads that run them; requests of one kind run together."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Hashable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from ..errors import FluidError
from .metrics import Metrics
from .model import Model, Values
from .refused import Refused
from .settings import Settings


@dataclass(eq=False)
class Waiting:
    """A request's feed, and the future of its outputs. kind: requests of equal kind may run
    together.
    """

    feed: Mapping[str, Any]
    kind: Hashable | None
    rows: int
    came: float = field(default_factory=time.monotonic)
    future: Future[Values] = field(default_factory=Future)


class Batches:
    """Threads that take requests in order: the first one, and later ones that can run with it."""

    def __init__(self, model: Model, settings: Settings, metrics: Metrics) -> None:
        self._model, self._settings, self._metrics = model, settings, metrics
        self._queue: deque[Waiting] = deque()
        self._changed = threading.Condition()
        self._ended = False
        self._threads = [
            threading.Thread(target=self._work, name=f"fluidjax-serve-{i}", daemon=True)
            for i in range(settings.threads)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def submit(self, feed: Mapping[str, Any]) -> Future[Values]:
        """A future of the outputs for a feed. Raises Refused if too many requests wait."""
        one = Waiting(feed, self._model.kind(feed), self._model.rows(feed))
        with self._changed:
            if self._ended:
                raise Refused(503, "the server is ending")
            if len(self._queue) >= self._settings.waiting:
                raise Refused(503, f"{self._settings.waiting} requests wait already; come again")
            self._queue.append(one)
            self._changed.notify()
        return one.future

    def end(self) -> None:
        """Let the threads run waiting requests, and end."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (taken := self._take()) is not None:
            # cancelled requests are not run; a running request cannot be cancelled
            going = [one for one in taken if one.future.set_running_or_notify_cancel()]
            if going:
                self._run(going)

    def _take(self) -> list[Waiting] | None:
        with self._changed:
            while not self._queue:
                if self._ended:
                    return None
                self._changed.wait()
            first = self._queue.popleft()
        if not self._model.apart(first.kind, first.feed):
            return [first]
        taken, free = [first], self._model.sizes[-1] - first.rows
        until = first.came + self._settings.wait
        with self._changed:
            while True:
                for one in list(self._queue):
                    if one.kind == first.kind and one.rows <= free:
                        self._queue.remove(one)
                        taken.append(one)
                        free -= one.rows
                left = until - time.monotonic()
                if free <= 0 or left <= 0 or self._ended:
                    return taken
                self._changed.wait(left)

    def _run(self, taken: list[Waiting]) -> None:
        began = time.perf_counter()
        try:
            found = self._model.run([t.feed for t in taken])
        except (FluidError, Refused) as error:
            if len(taken) == 1:
                taken[0].future.set_exception(error)
                return
            for one in taken:  # the other requests are not affected
                self._run([one])
            return
        except BaseException as error:
            for one in taken:
                one.future.set_exception(error)
            return
        self._metrics.runs.add(time.perf_counter() - began)
        self._metrics.rows.add(sum(t.rows for t in taken))
        for one, values in zip(taken, found, strict=True):
            one.future.set_result(values)
