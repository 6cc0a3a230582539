"""Writing files so that an old one is whole until the new one is: temporary names first, then renames."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from ..errors import FluidValueError

Pieces = Callable[[], Iterable[bytes | memoryview]]


def safe_name(name: str) -> str:
    """A variable's name as a file's name below a folder.

    Raises FluidValueError for a name that would lead out of the folder ("../x", "/x", "a/../../x"), or that no file can have.
    Slashes within are folders, as in Paddle.
    """
    parts = name.split("/")
    if not name or "\0" in name or "\\" in name or any(p in ("", ".", "..") for p in parts) or ":" in parts[0]:
        raise FluidValueError(f"{name!r} cannot be a file below a folder; rename the variable, or save all in one file (filename=...)")
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise FluidValueError(f"{name!r} is no UTF-8, so it cannot be a file's name; save all in one file (filename=...)") from None
    return name


def write_files(folder: str | Path, files: Mapping[str, Pieces]) -> None:
    """Write files below `folder` (made if it is not there): all or, if anything goes wrong, none.

    Every file is first written whole under a temporary name beside its place and flushed to the disk; only then are they
    renamed, one after another. A full disk, an exception or Ctrl-C before the renames leaves the old files as they were; a
    power cut among the renames leaves each file either old or new, never torn.
    """
    base = Path(folder)
    base.mkdir(parents=True, exist_ok=True)
    mark = f".{secrets.token_hex(4)}.tmp"
    written: list[tuple[Path, Path]] = []
    try:
        for name, pieces in files.items():
            target = base / name
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = target.with_name(f".{target.name[:80]}{mark}")
            written.append((temporary, target))
            with open(temporary, "xb") as out:
                for piece in pieces():
                    out.write(piece)
                out.flush()
                os.fsync(out.fileno())
        for temporary, target in written:
            os.replace(temporary, target)
    finally:
        for temporary, _ in written:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def read_file(path: str | Path) -> bytes:
    """The bytes of a file. Raises FluidValueError naming the path if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise FluidValueError(f"cannot read {str(path)!r}: {getattr(error, 'strerror', None) or error}") from None
