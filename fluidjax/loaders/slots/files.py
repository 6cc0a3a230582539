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
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from ...errors import FluidValueError

AS_IT_IS = "cat"
_BLOCK = 1 << 20  # bytes that are read, and parsed, at once


def blocks(path: str, command: str = AS_IT_IS) -> Iterator[tuple[bytes, int]]:
    """Whole lines of a file, as many as a block has, and the number of the first.

    command: a shell command that reads the file on its standard input and writes lines; "cat" runs nothing. A name that ends in .gz
    is a compressed file. Raises FluidValueError for a file that cannot be read, or that the command fails on.
    """
    with contextlib.ExitStack() as stack:
        stream = stack.enter_context(_plain(path) if command.strip() == AS_IT_IS else _piped(path, command))
        number, left = 1, []
        while block := _read(stream, path):
            end = block.rfind(b"\n") + 1
            left.append(block[:end] if end else block)
            if end:
                lines = b"".join(left)
                yield lines, number
                number += lines.count(b"\n")
                left = [block[end:]]
        if lines := b"".join(left):
            yield lines, number


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
def _piped(path: str, command: str) -> Iterator[IO[bytes]]:
    """What the command writes. When it is left, the command and all that it started are ended."""
    shell = shutil.which("bash") or "/bin/sh"
    with _open(path) as file, contextlib.ExitStack() as stack:
        if path.endswith(".gz"):
            file = _launched(stack, ["gzip", "-dc"], file).stdout  # type: ignore[assignment]
        process = _launched(stack, [shell, "-c", command], file)
        if path.endswith(".gz"):
            file.close()  # the command alone holds that end
        assert process.stdout is not None
        yield process.stdout
        status = process.wait()
    if status:
        how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        raise FluidValueError(f"the pipe command {command!r} {how} on the file {path}; what it wrote to stderr says why")


def _launched(stack: contextlib.ExitStack, words: list[str], source: Any) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(words, stdin=source, stdout=subprocess.PIPE, start_new_session=True, env=_environment())
    stack.callback(_end, process)
    return process


def _environment() -> dict[str, str]:
    """This process's; Python programs find a ``paddle`` with a data_generator, unless Paddle itself is there."""
    with contextlib.suppress(ValueError):
        found = importlib.util.find_spec("paddle")
        if found is not None and found.origin is not None:
            return dict(os.environ)
    path = [str(Path(__file__).parent / "alone"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(path)}


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and its group, if it is still there."""
    assert process.stdout is not None
    process.stdout.close()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def show(command: str, files: int) -> None:
    """Say on stderr which command of the user's is about to run."""
    if command.strip() != AS_IT_IS:
        print(f"fluid.dataset: for each of {files} files this shell command runs: {command}", file=sys.stderr, flush=True)


__all__ = ["AS_IT_IS", "blocks", "show"]
