"""Keeps what XLA compiled in a folder of the user, so that the next process does not compile it
again (docs/compile-cache.md).

JAX has such a cache, which is off by default. This module turns it on before the first compilation,
unless the user configured it already. It also checks the folder: its owner, its size, and damaged
entries. A problem with the folder makes runs slower, never wrong, and is reported once.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import math
import os
import platform
import sys
import threading
import time
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import jax
import jaxlib

from ..base.flags import flag
from ..base.loc import warn

WORTH_KEEPING = 0.1  # seconds: shorter compilations are not worth a file
PROBE = 1 << 20  # bytes that must fit, so that a full disk shows before an entry is cut off
KEPT = 0.8  # share of the bound left after a removal, so that few processes remove
SMALL = 1 << 16  # bytes: larger entries are not checked when a process starts
SUFFIX = "-cache"  # JAX's names are jit_<function>-<digest>-cache
MINIMUM = "jax_persistent_cache_min_compile_time_secs"
JAX_MINIMUM = 1.0  # JAX's default


class CompileCache:
    """The state of the cache in this process. config: JAX's configuration."""

    def __init__(self, config: Any = jax.config) -> None:
        self.folder: Path | None = None  # the folder, if this module turned the cache on
        self.writes = False  # whether anything can be added to it
        self._config = config
        self._asked = False
        self._reported = False  # whether a damaged entry has been reported
        self._lock = threading.Lock()

    def turn_on(self) -> Path | None:
        """Make JAX keep what it compiles, unless the user decided otherwise; returns the folder, or
        None.

        Called before the first compilation of an executor; only the first call has an effect. A
        cache that the user configured in JAX is not changed.
        """
        with self._lock:
            if not self._asked:
                self._asked = True
                self.folder = self._chosen_folder()
            return self.folder

    def _chosen_folder(self) -> Path | None:
        config, chosen = self._config, flag("FLAGS_compilation_cache_dir")
        if (
            not flag("FLAGS_compilation_cache")
            or not config.jax_enable_compilation_cache
            or config.jax_compilation_cache_dir is not None
        ):
            return None
        try:
            root = Path(chosen).expanduser() if chosen else user_folder() / "fluidjax" / "xla"
            folder = root / version()
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not chosen:
                _refuse_others(root)
        except (OSError, RuntimeError) as reason:
            _say(f"nothing that is compiled is kept for the next process: {reason}")
            return None
        if not _writes(folder):
            config.update(MINIMUM, math.inf)  # JAX reads there in any case
        else:
            self.writes = True
            bound(root, flag("FLAGS_compilation_cache_mb") << 20)
            self._mend(_small(folder))
            if MINIMUM.upper() not in os.environ and getattr(config, MINIMUM) == JAX_MINIMUM:
                config.update(MINIMUM, WORTH_KEEPING)
        config.update("jax_compilation_cache_dir", str(folder))
        return folder

    @contextlib.contextmanager
    def keeping_all(self) -> Iterator[None]:
        """Within the block, keep all compilations, even short ones: the few functions that every
        process needs for a startup program.
        """
        ours = self.writes and getattr(self._config, MINIMUM) == WORTH_KEEPING
        if ours:
            self._config.update(MINIMUM, 0.0)
        try:
            yield
        finally:
            if ours:
                self._config.update(MINIMUM, WORTH_KEEPING)

    def mend(self, name: str) -> None:
        """Remove damaged entries of the function called `name`, so that it is compiled anew and
        they are written again.

        JAX writes an entry in place, so a killed process or a full disk leaves a part of one.
        Without this repair the part would stay, because JAX ignores an entry that it cannot read
        and never overwrites one.
        """
        if self.folder is not None:
            self._mend(self.folder.glob(f"jit_{name}-*{SUFFIX}"))

    def _mend(self, paths: Iterable[Path]) -> None:
        for path in paths:
            try:
                if sound(path.read_bytes()):
                    used(path)
                    continue
            except OSError:
                continue  # removed by another process
            self.damaged(path)

    def damaged(self, path: Path) -> None:
        """Remove an entry that cannot be read; the first one is reported."""
        try:
            path.unlink(missing_ok=True)
        except OSError:
            return  # this process may not remove it; JAX ignores it
        if not self._reported:
            self._reported = True
            _say(
                "a damaged entry of the compilation cache was removed, and is compiled anew:"
                f" {str(path)!r}"
            )


def used(path: Path) -> None:
    """Mark an entry as used now, even if the disk does not record access times. Raises OSError."""
    os.utime(path, (time.time(), path.stat().st_mtime))


def user_folder() -> Path:
    """The folder of this user's caches. Raises RuntimeError if the system knows no home folder."""
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"])
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"])
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")


def version() -> str:
    """The name of a folder for entries of this software and machine. Its parts decide whether an
    executable runs here, and runs as fast as a new one.

    JAX's own keys contain its version and the compiler's options. They lack the CPU's instructions
    (an executable that uses others crashes the process), the number of cores among which XLA
    divides the work, and the compression that this Python uses.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    facts = (
        jax.__version__,
        jaxlib.__version__,
        sys.version_info[:2],
        platform.machine(),
        platform.processor(),
        _instructions(),
        cores,
    )
    return f"jax-{jax.__version__}-{hashlib.sha256(repr(facts).encode()).hexdigest()[:12]}"


def _instructions() -> list[str]:
    """On Linux, the lines of /proc/cpuinfo that name the first CPU and its instructions; none on
    other systems.
    """
    try:
        with open("/proc/cpuinfo", errors="replace") as file:
            first = itertools.takewhile(str.strip, file)  # up to the empty line before the next CPU
            return [
                line
                for line in first
                if line.startswith(("flags", "Features", "model name", "CPU part"))
            ]
    except OSError:
        return []


def _refuse_others(root: Path) -> None:
    """Raises PermissionError for a folder that other users may write to, because they could run
    code in this process.
    """
    found = root.stat()
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        raise PermissionError(
            f"{str(root)!r} belongs to another user; set FLAGS_compilation_cache_dir to a folder of"
            " yours"
        )
    if os.name == "posix" and found.st_mode & 0o022:
        raise PermissionError(
            f"others may write to {str(root)!r}; chmod go-w it, or set FLAGS_compilation_cache_dir"
        )


def _writes(folder: Path) -> bool:
    """Whether an entry can be written. If not, a warning is given, and entries that exist are still
    used.
    """
    probe = folder / f".probe-{uuid.uuid4().hex}"
    try:
        probe.write_bytes(bytes(PROBE))
    except OSError as reason:
        _say(
            f"what is compiled now is not kept in {str(folder)!r} for the next process:"
            f" {reason.strerror or reason}"
        )
        return False
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)
    return True


def _small(folder: Path) -> Iterator[Path]:
    """Small entries of functions other than steps, such as samplers. Entries of steps are repaired
    when they are needed.
    """
    for path in folder.glob(f"*{SUFFIX}"):
        with contextlib.suppress(OSError):  # another process removed it
            if not path.name.startswith("jit_step_") and path.stat().st_size <= SMALL:
                yield path


def _say(sentence: str) -> None:
    warn(f"{sentence} (FLAGS_compilation_cache=0 does without)", RuntimeWarning)


# -- size ------------------------------------------------------------------------------------------


def bound(root: Path, most: int) -> None:
    """Remove the least recently used entries below `root`, of all versions, if all entries together
    have more than `most` bytes.
    """
    found: list[tuple[float, int, str]] = []
    for path in _files(root):
        with contextlib.suppress(OSError):  # another process removed it
            facts = path.stat()
            found.append((max(facts.st_atime, facts.st_mtime), facts.st_size, str(path)))
    total = sum(size for _, size, _ in found)
    if total <= most:
        return
    for _, size, oldest in sorted(found):
        with contextlib.suppress(OSError):
            os.unlink(oldest)
        total -= size
        if total <= KEPT * most:
            break
    for folder in root.iterdir():
        with contextlib.suppress(OSError):
            folder.rmdir()  # fails unless the folder is empty


def _files(root: Path) -> Iterable[Path]:
    return [Path(at) / name for at, _, names in os.walk(root) for name in names]


# -- entries ---------------------------------------------------------------------------------------


def label(kinds: Iterable[str]) -> str:
    """The name of the jitted function for ops of these types. JAX's files carry it, so the entries
    of a program can be found.
    """
    return f"step_{zlib.crc32(' '.join(kinds).encode()):08x}"


def named(fn: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The function with another name."""

    def call(*args: Any) -> Any:
        return fn(*args)

    call.__name__ = call.__qualname__ = name
    return call


def sound(entry: bytes) -> bool:
    """Whether the whole entry can be decompressed."""
    expand, error = (
        (zlib.decompress, zlib.error) if not entry.startswith(b"\x28\xb5\x2f\xfd") else _zstandard()
    )
    try:
        return len(expand(entry)) > 0
    except error:
        return False


def _zstandard() -> tuple[Callable[[bytes], bytes], Any]:
    """The function with which JAX decompresses zstandard; None if it is not installed, and then
    this process reads no such entry.
    """
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]  # of Python 3.14

        return zstd.decompress, zstd.ZstdError
    except ImportError:
        pass
    try:
        import zstandard  # type: ignore[import-not-found,unused-ignore]

        return zstandard.ZstdDecompressor().decompress, zstandard.ZstdError
    except ImportError:
        return (lambda entry: entry), ValueError


CACHE = CompileCache()  # the cache of this process
