"""The processes that a launcher starts: their output, line by line with their names, and how they
ended.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ...errors import FluidValueError

LINE = 1 << 16  # a longer line is split
KEPT = 12  # lines of each process in the report
# The message that the library of JAX's CPU collectives prints from C++ whenever processes connect.
# It cannot be turned off, and because it bypasses Python's buffer, it may interrupt a line from
# Python.
BANNER = re.compile(
    rb"\[Gloo\] Rank \d+ is connected to \d+ peer ranks\. Expected number of connected peer ranks"
    rb" is : \d+\r?\n$"
)


@dataclass(frozen=True)
class Spec:
    """A process to start: ``trainer 0``, its command, and its whole environment."""

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str]


class Child:
    """A running process. It has its own session, so that signals also reach its children, and only
    once.

    ended: a queue that receives this child when its process ends.
    """

    def __init__(self, spec: Spec, ended: queue.Queue[Child], out: Printer) -> None:
        self.name = spec.name
        self.code: int | None = None
        self.started = time.monotonic()
        self.seconds = 0.0
        self.tail: deque[str] = deque(maxlen=KEPT)
        self.process = subprocess.Popen(
            spec.command, env=dict(spec.env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        streams = ((self.process.stdout, sys.stdout), (self.process.stderr, sys.stderr))
        self._readers = [
            threading.Thread(target=self._read, args=(*s, out), daemon=True) for s in streams
        ]
        for thread in (
            *self._readers,
            threading.Thread(target=self._wait, args=(ended,), daemon=True),
        ):
            thread.start()

    def _read(self, source: IO[bytes], target: Any, out: Printer) -> None:
        with source:
            for data in lines(source):
                line = data.decode(errors="replace").rstrip("\r\n")
                self.tail.append(line)
                out.line(target, self.name, line)

    def _wait(self, ended: queue.Queue[Child]) -> None:
        self.code = self.process.wait()
        self.seconds = time.monotonic() - self.started
        ended.put(self)

    @property
    def running(self) -> bool:
        return self.code is None

    def signal(self, number: int) -> None:
        """Send a signal to the process and its children."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def end_leftovers(self) -> None:
        """Kill processes that an ended process left behind with its output still open."""
        if not self.running and any(t.is_alive() for t in self._readers):
            self.signal(signal.SIGKILL)

    def drain(self, seconds: float) -> None:
        """Wait for the rest of its output (a remaining child may hold the pipe open)."""
        limit = time.monotonic() + seconds
        for thread in self._readers:
            thread.join(max(0.0, limit - time.monotonic()))

    def how(self) -> str:
        """``was killed by SIGKILL (signal 9)`` or ``ended with exit code 3``."""
        assert self.code is not None
        if self.code >= 0:
            return f"ended with exit code {self.code}"
        try:
            return f"was killed by {signal.Signals(-self.code).name} (signal {-self.code})"
        except ValueError:
            return f"was killed by signal {-self.code}"

    @property
    def exit_code(self) -> int:
        """The exit code in a shell's convention."""
        assert self.code is not None
        return self.code if self.code >= 0 else 128 - self.code


def lines(source: IO[bytes]) -> Iterator[bytes]:
    """The lines of a stream, split after LINE bytes, without Gloo's banners.

    A banner ends at the end of its line, so an interrupted line continues with the next one.
    """
    begun = b""
    while data := source.readline(LINE):
        data = begun + data
        banner = BANNER.search(data)
        if banner is None:
            begun = b""
            yield data
        else:
            begun = data[: banner.start()]
    if begun:
        yield begun


class Printer:
    """Prints whole lines, prefixed by the name of their process, on the stream of their origin.

    folder, names: the lines of each of these processes are also written to a file there, named as
    by Paddle's launchers. Raises FluidValueError for a folder that cannot be written.
    """

    def __init__(self, folder: Path | None = None, names: Sequence[str] = ()) -> None:
        self._lock = threading.Lock()
        self._files: dict[str, Path] = {}
        for name in names:
            if folder is None:
                break
            role, _, number = name.partition(" ")
            self._files[name] = (
                folder / f"{'workerlog' if role == 'trainer' else 'serverlog'}.{number}"
            )
            try:
                folder.mkdir(parents=True, exist_ok=True)
                self._files[name].open("a").close()
            except OSError as error:
                raise FluidValueError(
                    f"--log_dir {str(folder)!r} cannot be written: {error.strerror or error}"
                ) from None

    def line(self, target: Any, name: str, line: str) -> None:
        """``[trainer 0] line``."""
        with self._lock, contextlib.suppress(OSError, ValueError):  # the reader may be gone
            if name in self._files:
                with self._files[name].open("a", encoding="utf-8", errors="replace") as file:
                    file.write(f"{line}\n")
            target.write(f"[{name}] {line}\n")
            target.flush()


def free_ports(count: int, taken: Sequence[int] = ()) -> list[int]:
    """Different ports that are free on the loopback address now."""
    from .wire import listen

    sockets: list[socket.socket] = []
    ports: list[int] = []
    try:
        while len(ports) < count:
            sockets.append(listen("127.0.0.1", 0))
            port = sockets[-1].getsockname()[1]
            if port not in taken:
                ports.append(port)
    finally:
        for sock in sockets:
            sock.close()
    return ports


__all__ = ["Child", "Printer", "Spec", "free_ports", "lines"]
