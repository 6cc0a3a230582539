"""A bounded queue between a producing and a consuming thread; either end may stop the other."""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any
from weakref import WeakSet

_LOOK = 1.0  # seconds between a waiting consumer's checks for Ctrl-C
_PATIENCE = 5.0  # seconds that a consumer waits for the producing thread to end


class Channel:
    """Items in order, at most `capacity` at a time (0: any number).

    The producer calls put, then finish; the consumer calls get until there is no more item, and
    close to stop early.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._items: deque[Any] = deque()
        self._changed = threading.Condition()
        self._done = False
        self._closed = False
        self._error: BaseException | None = None

    def put(self, item: Any) -> bool:
        """Wait for room and add the item; False if the consumer wants no more."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or not self._capacity or len(self._items) < self._capacity
            )
            if self._closed:
                return False
            self._items.append(item)
            self._changed.notify_all()
            return True

    def finish(self, error: BaseException | None = None) -> None:
        """Announce the end; `error` is raised in the consumer after the waiting items."""
        with self._changed:
            self._done, self._error = True, error
            self._changed.notify_all()

    def get(self) -> tuple[Any, bool]:
        """The next item and True, or None and False at the end. Raises the producer's error."""
        with self._changed:
            while not self._changed.wait_for(
                lambda: self._items or self._done or self._closed, _LOOK
            ):
                # a Ctrl-C that came in another thread, or just before the wait, does not end this
                # wait
                pass
            if self._items:
                item = self._items.popleft()
                self._changed.notify_all()
                return item, True
            if self._error is not None and not self._closed:
                raise self._error
            return None, False

    def close(self) -> None:
        """Stop the consumer: waiting items are dropped, and the producer's next put returns
        False.
        """
        with self._changed:
            self._closed = True
            self._items.clear()
            self._changed.notify_all()


class Background:
    """Iterates over ``source()`` in a thread, ahead of the consumer by at most `capacity` items.

    Iterating yields the items; an exception of the source is raised after them, with its traceback.
    close, or the end of the iteration, stops the thread and closes the source. interrupt: called at
    that time, to end a wait of the source.
    """

    def __init__(
        self,
        source: Callable[[], Iterable[Any]],
        capacity: int,
        name: str,
        interrupt: Callable[[], None] | None = None,
    ) -> None:
        self._channel, self._interrupt = Channel(capacity), interrupt
        self._closed = False
        # the thread reads in the context of its consumer
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=context.run, args=(_produce, source, self._channel), name=name, daemon=True
        )
        self._thread.start()
        _running.add(self)

    def next(self) -> tuple[Any, bool]:
        """The next item and True, or None and False at the end (again and again)."""
        return self._channel.get()

    def __iter__(self) -> Iterator[Any]:
        try:
            while True:
                item, more = self.next()
                if not more:
                    return
                yield item
        finally:
            self.close()

    def close(self) -> None:
        """Stop the thread. This waits a few seconds for a busy source, which then ends by
        itself.
        """
        if self._closed:
            return  # also at interpreter shutdown with an open loop
        self._closed = True
        self._channel.close()
        if self._interrupt is not None:
            self._interrupt()
        if self._thread is not threading.current_thread():
            self._thread.join(_PATIENCE)


def _produce(source: Callable[[], Iterable[Any]], channel: Channel) -> None:
    error: BaseException | None = None
    try:
        items = iter(source())
        with contextlib.ExitStack() as stack:
            if isinstance(items, Generator):
                stack.callback(items.close)
            for item in items:
                if not channel.put(item):
                    break
    except BaseException as exc:  # the consumer's thread raises it
        error = exc
    channel.finish(error)


_running: WeakSet[Background] = WeakSet()


@atexit.register
def _stop_all() -> None:
    """Stop all threads, because none may call into JAX during interpreter shutdown."""
    for background in list(_running):
        background.close()


__all__ = ["Background", "Channel"]
