"""The lines of files, as they are or as the user's own shell command makes them of each file."""

from __future__ import annotations

import contextlib
import gzip
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from ...errors import FluidValueError

AS_IT_IS = "cat"
_BLOCK = 1 << 19  # bytes that are read, and parsed, at once: what is made of them stays in the caches
_OTHER = {  # how files begin that hold no plain text, and what to do with them
    b"\x1f\x8b": "compressed by gzip; let its name end in .gz",
    b"BZh": "compressed by bzip2; read it by set_pipe_command('bunzip2')",
    b"\xfd7zXZ": "compressed by xz; read it by set_pipe_command('xz -d')",
    b"\x28\xb5\x2f\xfd": "compressed by zstd; read it by set_pipe_command('zstd -d')",
    b"PK\x03\x04": "a zip archive; unpack it first",
    b"\xff\xfe": "text in UTF-16; read it by set_pipe_command('iconv -f UTF-16 -t ASCII')",
    b"\xfe\xff": "text in UTF-16; read it by set_pipe_command('iconv -f UTF-16 -t ASCII')",
    b"\xef\xbb\xbf": "text that begins with a byte order mark; write it as UTF-8 without one",
}


class Commands:
    """The pipe commands that run for one pass; another thread than the one that reads may end them."""

    def __init__(self) -> None:
        self._lock, self._running, self._over = threading.Lock(), set[subprocess.Popen[bytes]](), False

    def launch(self, words: list[str], source: Any) -> subprocess.Popen[bytes]:
        """Start one, whose output is a pipe, in a process group of its own. Raises FluidValueError after end."""
        with self._lock:
            if self._over:
                raise FluidValueError("the pass over the dataset was ended")
            process = subprocess.Popen(words, stdin=source, stdout=subprocess.PIPE, start_new_session=True, env=_environment())
            self._running.add(process)
            return process

    def done(self, process: subprocess.Popen[bytes]) -> None:
        """End one and its group, if it is still there."""
        with self._lock:
            self._running.discard(process)
            _kill(process)
        assert process.stdout is not None
        process.stdout.close()
        process.wait()

    def end(self) -> None:
        """End all that run, and let no other one start: who waits for their output finds its end."""
        with self._lock:
            self._over = True
            for process in self._running:
                _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def blocks(path: str, command: str = AS_IT_IS, commands: Commands | None = None) -> Iterator[tuple[bytes, int]]:
    """Whole lines of a file, as many as a block has, and the number of the first.

    command: a shell command that reads the file on its standard input and writes lines; "cat" runs nothing. A name that ends in .gz
    is a compressed file. commands: knows what runs. Raises FluidValueError for a file that cannot be read, or that the command
    fails on.
    """
    with contextlib.ExitStack() as stack:
        stream = stack.enter_context(_plain(path) if command.strip() == AS_IT_IS else _piped(path, command, commands or Commands()))
        number, left = 1, []
        while block := _read(stream, path):
            end = block.rfind(b"\n") + 1
            left.append(block[:end] if end else block)
            if end:
                lines = b"".join(left)
                _refuse_other(lines, path, number)
                yield lines, number
                number += lines.count(b"\n")
                left = [block[end:]]
        if lines := b"".join(left):
            _refuse_other(lines, path, number)
            yield lines, number


def _refuse_other(lines: bytes, path: str, number: int) -> None:
    """Raises FluidValueError for a file that begins as one of another format or encoding does."""
    if number > 1:
        return
    for begins, what in _OTHER.items():
        if lines.startswith(begins):
            raise FluidValueError(f"{path}:1: lines of slots are plain text, and this is {what}")


def _read(stream: IO[bytes], path: str) -> bytes:
    try:
        return stream.read(_BLOCK)
    except (OSError, EOFError, zlib.error) as error:
        raise FluidValueError(f"{path} cannot be read to its end: {error}") from None


def _open(path: str) -> IO[bytes]:
    if path.startswith(("hdfs:", "afs:")):
        raise FluidValueError(f"{path} is on a file system that is not there; copy it to a local file first")
    try:
        return open(path, "rb")
    except OSError as error:
        raise FluidValueError(f"the dataset's file {path!r} cannot be read: {error.strerror or error}") from None


@contextlib.contextmanager
def _plain(path: str) -> Iterator[IO[bytes]]:
    with _open(path) as file:
        yield gzip.GzipFile(fileobj=file) if path.endswith(".gz") else file  # type: ignore[misc]


@contextlib.contextmanager
def _piped(path: str, command: str, commands: Commands) -> Iterator[IO[bytes]]:
    """What the command writes. When it is left, the command and all that it started are ended."""
    shell = shutil.which("bash") or "/bin/sh"
    with _open(path) as file, contextlib.ExitStack() as stack:
        if path.endswith(".gz"):
            file = _launched(stack, commands, ["gzip", "-dc"], file).stdout  # type: ignore[assignment]
        process = _launched(stack, commands, [shell, "-c", command], file)
        if path.endswith(".gz"):
            file.close()  # the command alone holds that end
        assert process.stdout is not None
        yield process.stdout
        status = process.wait()
    if status:
        how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        raise FluidValueError(f"the pipe command {command!r} {how} on the file {path}; what it wrote to stderr says why")


def _launched(stack: contextlib.ExitStack, commands: Commands, words: list[str], source: Any) -> subprocess.Popen[bytes]:
    process = commands.launch(words, source)
    stack.callback(commands.done, process)
    return process


def _environment() -> dict[str, str]:
    """This process's; Python programs find a ``paddle`` with a data_generator, unless Paddle itself is there."""
    with contextlib.suppress(ValueError):
        found = importlib.util.find_spec("paddle")
        if found is not None and found.origin is not None:
            return dict(os.environ)
    path = [str(Path(__file__).parent / "alone"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(path)}


def show(command: str, files: int) -> None:
    """Say on stderr which command of the user's is about to run."""
    if command.strip() != AS_IT_IS:
        print(f"fluid.dataset: for each of {files} files this shell command runs: {command}", file=sys.stderr, flush=True)


__all__ = ["AS_IT_IS", "Commands", "blocks", "show"]
