"""A process that parses the files of a pass in parallel to training, so that the steps keep
Python's lock and time.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ...errors import FluidValueError
from ..processes import WorkerDied, WorkerTraceback, how_it_ended
from .blocks import Blocks
from .files import Commands
from .lines import Slot
from .parsing import asked, asking
from .records import Records
from .transfer import DONE, FAILED, FILE, READY, SLOTS, WRONG, receive, send, unpacked

# bytes of files that are worth a process: parsing them takes longer than its start
_WORTH = 1 << 24
# cores that steps use for arithmetic and Python's feeds; on these a thread costs less than another
# process
_BUSY = 2
_PATIENCE = 5.0  # seconds to wait for its end
_ENVIRONMENT = {
    # it multiplies no matrices
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    # makes glibc keep a block's memory for the next: without it the kernel's pages took a third of
    # the time
    "MALLOC_MMAP_THRESHOLD_": str(1 << 25), "MALLOC_TRIM_THRESHOLD_": str(1 << 26),
}  # fmt: skip
_BEGIN = """
import sys, types
package = types.ModuleType("fluidjax")  # without what the package itself imports
package.__path__ = [sys.argv[1]]
sys.modules["fluidjax"] = package
sys.path.append(sys.argv[2])
from fluidjax.loaders.slots.parsing import serve
serve(int(sys.argv[3]))
"""


class Parser:
    """One parsing process. It ends with the pass, by `commands`, and by itself when this process
    ends.
    """

    def __init__(self, slots: Sequence[Slot], commands: Commands) -> None:
        self._control, theirs = socket.socketpair()
        self._lock = threading.Lock()
        self._ready: bool | None = None
        places = [
            str(Path(__file__).parents[2]),
            str(Path(np.__file__).parents[1]),
            str(theirs.fileno()),
        ]
        words = [sys.executable, *["-B"] * sys.dont_write_bytecode, "-SsP", "-c", _BEGIN, *places]
        environment = {n: v for n, v in os.environ.items() if n != "PYTHONPATH"} | _ENVIRONMENT
        try:
            with theirs:
                self._process = commands.launch(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    env=environment,
                )
        except BaseException:
            self._control.close()
            raise
        self._commands, self._slots = commands, slots

    def ready(self) -> bool:
        """Whether it has started; waits until it has. False if it could not start."""
        with self._lock:
            if self._ready is None:
                message = receive(self._control)
                self._ready = message is not None and message[0] == READY
                with contextlib.suppress(OSError):
                    send(self._control, SLOTS, asked(self._slots))
            return self._ready

    def records(
        self, stream: int, blocks: Blocks, shown_name: str, compressed: bool
    ) -> Iterator[Records]:
        """The contents of the rest of a file with the descriptor `stream`, whose beginning `blocks`
        has read.

        shown_name: the file's name in messages. Raises FluidValueError for errors in it, WorkerDied
        if the process ends.
        """
        mine, theirs = socket.socketpair()
        with mine:
            with theirs, self._lock, contextlib.suppress(BrokenPipeError, ConnectionResetError):
                ask = asking(blocks.path, shown_name, compressed, blocks.number, blocks.left)
                send(self._control, FILE, ask, [stream, theirs.fileno()])
            while True:
                message = receive(mine)
                if message is None:
                    raise self._died()
                kind, body, _ = message
                if kind == DONE:
                    return
                if kind in (WRONG, FAILED):
                    self._refuse(kind, bytes(body).decode(errors="surrogatepass"), shown_name)
                yield unpacked(body)

    def _refuse(self, kind: bytes, text: str, shown_name: str) -> None:
        if kind == WRONG:
            raise FluidValueError(text)
        what = text.strip().splitlines()[-1]
        cause = WorkerTraceback(
            f"\n\nin the process that parses (process {self._process.pid}):\n{text}"
        )
        raise WorkerDied(
            f"the process that parses the dataset's files failed at {shown_name}: {what}"
        ) from cause

    def _died(self) -> WorkerDied:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        how = how_it_ended(self._process.returncode)
        return WorkerDied(
            f"the process that parses the dataset's files (process {self._process.pid}) {how}"
            " before it was done"
        )

    def close(self) -> None:
        """End it."""
        self._commands.done(self._process)
        self._control.close()


def parsers(
    files: Sequence[str], threads: int, slots: Sequence[Slot], commands: Commands
) -> list[Parser]:
    """The parsers that are worth starting: none for small files, on one core, or if a Python
    process cannot be started.

    There is one for each thread, but no more than files, or cores that the steps leave free.
    """
    count = min(threads, len(files), _cores() - _BUSY)
    if (
        count < 1
        or not hasattr(socket, "send_fds")
        or not sys.executable
        or getattr(sys, "frozen", False)
        or _bytes(files) < _WORTH
    ):
        return []
    made: list[Parser] = []
    with contextlib.suppress(OSError):  # no further process can be started: use the existing ones
        made.extend(Parser(slots, commands) for _ in range(count))
    return made


def _bytes(files: Sequence[str]) -> int:
    """The bytes of all files together; missing files and pipes count as 0."""
    count = 0
    for path in files:
        with contextlib.suppress(OSError, ValueError):
            count += os.stat(path).st_size
    return count


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


__all__ = ["Parser", "parsers"]
