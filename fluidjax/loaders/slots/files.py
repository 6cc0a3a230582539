"""The lines of files, directly or through the user's shell command."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from ...errors import FluidValueError

AS_IT_IS = "cat"


class Commands:
    """The processes that run for one pass; another thread than the reading one may end them."""

    def __init__(self) -> None:
        self._lock, self._running, self._over = (
            threading.Lock(),
            set[subprocess.Popen[bytes]](),
            False,
        )

    def launch(self, words: list[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start one, in a process group of its own. options: as for subprocess.Popen. Raises
        FluidValueError after end.
        """
        with self._lock:
            if self._over:
                raise FluidValueError("the pass over the dataset was ended")
            process = subprocess.Popen(words, start_new_session=True, **options)
            self._running.add(process)
            return process

    def done(self, process: subprocess.Popen[bytes]) -> None:
        """End one and its group, if it still runs."""
        with self._lock:
            self._running.discard(process)
            _kill(process)
        if process.stdout is not None:
            process.stdout.close()
        process.wait()

    def end(self) -> None:
        """End all processes, and let no other start. A thread that waits for their output reaches
        its end.
        """
        with self._lock:
            self._over = True
            for process in self._running:
                _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def opened(
    path: str, command: str = AS_IT_IS, commands: Commands | None = None
) -> Iterator[IO[bytes]]:
    """A file, unbuffered, or the output of a shell command that reads it on its standard input.

    command: "cat" runs nothing; for any other command a file whose name ends in .gz is unpacked
    first. commands: keeps track of running processes. Raises FluidValueError for a file that cannot
    be read or that changes while it is read, and if the command fails.
    """
    with _open(path) as file:
        before = _state(file)
        with (
            _as_it_is(file)
            if command.strip() == AS_IT_IS
            else _piped(file, path, command, commands or Commands())
        ) as stream:
            try:
                yield stream
            except FluidValueError as error:
                if _state(file) != before:
                    raise FluidValueError(f"{error}; the file changed while it was read") from None
                raise
        if _state(file) != before:
            raise FluidValueError(
                f"{path} changed while it was read, so its contents are inconsistent; read it when "
                "it is complete"
            )


def _state(file: IO[bytes]) -> tuple[int, int] | None:
    """The size and modification time; None for anything but a regular file."""
    found = os.fstat(file.fileno())
    return (found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None


def _open(path: str) -> IO[bytes]:
    if path.startswith(("hdfs:", "afs:")):
        raise FluidValueError(
            f"{path} is on a file system that is not supported; copy it to a local file first"
        )
    try:
        return open(path, "rb", buffering=0)
    except OSError as error:
        raise FluidValueError(
            f"the dataset's file {path!r} cannot be read: {error.strerror or error}"
        ) from None


@contextlib.contextmanager
def _as_it_is(file: IO[bytes]) -> Iterator[IO[bytes]]:
    yield file


@contextlib.contextmanager
def _piped(file: IO[bytes], path: str, command: str, commands: Commands) -> Iterator[IO[bytes]]:
    """The command's output. On exit, the command and all processes that it started are ended."""
    shell = shutil.which("bash") or "/bin/sh"
    with contextlib.ExitStack() as stack:
        if path.endswith(".gz"):
            unpacked = _launched(stack, commands, ["gzip", "-dc"], file).stdout
            process = _launched(stack, commands, [shell, "-c", command], unpacked)
            assert unpacked is not None
            unpacked.close()  # only the command holds that end
        else:
            process = _launched(stack, commands, [shell, "-c", command], file)
        assert process.stdout is not None
        yield process.stdout
        status = process.wait()
    if status:
        how = (
            f"was ended by {signal.Signals(-status).name}"
            if status < 0
            else f"ended with status {status}"
        )
        raise FluidValueError(
            f"the pipe command {command!r} {how} on the file {path}; what it wrote to stderr"
            " says why"
        )


def _launched(
    stack: contextlib.ExitStack, commands: Commands, words: list[str], source: Any
) -> subprocess.Popen[bytes]:
    process = commands.launch(
        words, stdin=source, stdout=subprocess.PIPE, bufsize=0, env=_environment()
    )
    stack.callback(commands.done, process)
    return process


def _environment() -> dict[str, str]:
    """This process's environment, in which Python programs find a ``paddle`` with a data_generator,
    unless Paddle itself is installed.
    """
    with contextlib.suppress(ValueError):
        found = importlib.util.find_spec("paddle")
        if found is not None and found.origin is not None:
            return dict(os.environ)
    path = [str(Path(__file__).parent / "alone"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(path)}


def show(command: str, files: int) -> None:
    """Print to stderr the user's command that is about to run."""
    if command.strip() != AS_IT_IS:
        print(
            f"fluid.dataset: for each of {files} files this shell command runs: {command}",
            file=sys.stderr,
            flush=True,
        )


__all__ = ["AS_IT_IS", "Commands", "opened", "show"]
