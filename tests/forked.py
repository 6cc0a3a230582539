"""Processes for tests of jobs, forked from one that has done the imports (tests/zygote.py): a
``subprocess.Popen`` for them.

What such a test is about happens after the imports: the meeting, the collectives, how processes
die. Some tests start real processes all the same, so that nothing of the way there goes untested.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

ROOT = Path(__file__).parents[1]
_asking = threading.Lock()


@cache
def zygote() -> socket.socket:
    """The channel to this process's zygote, which ends when this process does."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    # one thread, so that forking is safe
    environ = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.zygote", str(its.fileno())]
    process = subprocess.Popen(
        command, cwd=ROOT, env=environ, pass_fds=[its.fileno()], start_new_session=True
    )
    its.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


class Popen:
    """As subprocess.Popen, for a command that begins with this Python. The process has a session of
    its own.
    """

    def __init__(
        self, args: Sequence[str], env: Mapping[str, str] | None = None, cwd: Any = None, stdin: int | None = None,
        stdout: int | None = None, stderr: int | None = None, text: bool = False, errors: str = "replace",
        start_new_session: bool = True,
    ) -> None:  # fmt: skip
        assert (
            args[0] == sys.executable
            and stdin in (None, subprocess.DEVNULL)
            and errors == "replace"
        )
        self.args, self.returncode = args, None
        self._text, self._judging = text, threading.Lock()
        self.stdout, out = _stream(stdout, 1, text)
        self.stderr, err = (
            (None, os.dup(out)) if stderr == subprocess.STDOUT else _stream(stderr, 2, text)
        )
        self._end, end = os.pipe()
        asked = {
            "words": list(args[1:]),
            "env": dict(os.environ if env is None else env),
            "cwd": str(cwd or os.getcwd()),
        }
        with _asking:
            socket.send_fds(zygote(), [json.dumps(asked).encode()], [out, err, end])
            self.pid = int(zygote().recv(64))
        for fd in (out, err, end):
            os.close(fd)

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        with self._judging:
            if self.returncode is None:
                if not select.select([self._end], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired(self.args, timeout or 0)
                self.returncode = int(os.read(self._end, 64))
                os.close(self._end)
            return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def communicate(self, timeout: float | None = None) -> tuple[Any, Any]:
        """All that it writes to pipes, once it has ended."""
        streams, found = (self.stdout, self.stderr), {}

        def read(stream: IO[Any]) -> None:
            with stream:
                found[stream] = stream.read()

        threads = [
            threading.Thread(target=read, args=(s,), daemon=True) for s in streams if s is not None
        ]
        for thread in threads:
            thread.start()
        self.wait(timeout)
        for thread in threads:
            thread.join(timeout)
        out, err = (None if s is None else found[s] for s in streams)
        return out, err


def _stream(asked: int | None, standard: int, text: bool) -> tuple[IO[Any] | None, int]:
    """Our end of a stream, if it is a pipe, and the file descriptor for the process."""
    if asked == subprocess.PIPE:
        read, write = os.pipe()
        return (open(read, encoding="utf-8", errors="replace") if text else open(read, "rb")), write
    return None, (
        os.open(os.devnull, os.O_WRONLY) if asked == subprocess.DEVNULL else os.dup(standard)
    )


AS_SUBPROCESS = SimpleNamespace(
    Popen=Popen,
    PIPE=subprocess.PIPE,
    DEVNULL=subprocess.DEVNULL,
    STDOUT=subprocess.STDOUT,
    TimeoutExpired=subprocess.TimeoutExpired,
)


def launcher(args: Sequence[str], **options: Any) -> Popen:
    """As Popen for ``python -m fluidjax launch ...``, a launcher that forks what it starts as well."""
    assert list(args[1:4]) == ["-m", "fluidjax", "launch"]
    return Popen([args[0], "-m", "tests.forked", *args[3:]], **options)


def main() -> int:
    from fluidjax import cli
    from fluidjax.dist.jobs import children

    vars(children)["subprocess"] = AS_SUBPROCESS
    return cli.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
