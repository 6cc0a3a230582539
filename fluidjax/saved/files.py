"""Writes files so that an old file is complete until the new one is: temporary names first, then
renames.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from ..base.interrupts import uninterrupted
from ..base.progress import size, waiting
from ..errors import FluidError, FluidValueError, MissingFileError

Pieces = Callable[[], Iterable[bytes | memoryview]]


def safe_name(name: str) -> str:
    """A variable's name as a file's name below a folder.

    Raises FluidValueError for a name that would lead out of the folder ("../x", "/x", "a/../../x"),
    or that no file can have. Slashes in it are folders, as in Paddle.
    """
    parts = name.split("/")
    if (
        not name
        or "\0" in name
        or "\\" in name
        or any(p in ("", ".", "..") for p in parts)
        or name[1:2] == ":"
    ):
        raise FluidValueError(
            f"{name!r} cannot be a file below a folder; rename the variable, or save all in one"
            " file (filename=...)"
        )
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise FluidValueError(
            f"{name!r} is not UTF-8, so it cannot be a file's name; save all in one file"
            " (filename=...)"
        ) from None
    return name


def write_files(folder: str | Path, files: Mapping[str, Pieces]) -> None:
    """Write files below `folder` (created if missing): all of them or, if anything fails, none.

    Every file is first written under a temporary name in its folder and flushed to the disk. Then
    the files are renamed one after another, with Ctrl-C held back. So a full disk, an exception or
    Ctrl-C does not change the old files. A power cut (or a kill) between the renames leaves each
    file either old or new, never partial.

    Raises FluidValueError if a folder has a file's name, OSError for errors of the disk.
    """
    base = Path(folder)
    base.mkdir(parents=True, exist_ok=True)
    mark = f".{secrets.token_hex(4)}.tmp"
    written: list[tuple[Path, Path]] = []
    try:
        with waiting(lambda: f"writing file {len(written):,} of {len(files):,} into {str(base)!r}"):
            for name, pieces in files.items():
                target = base / name
                if target.is_dir():
                    raise FluidValueError(f"cannot save {str(target)!r}: a folder has this name")
                target.parent.mkdir(parents=True, exist_ok=True)
                temporary = target.with_name(f".{target.name[:80]}{mark}")
                written.append((temporary, target))
                with _naming(target), open(temporary, "xb") as out:
                    for piece in pieces():
                        out.write(piece)
                    out.flush()
                    os.fsync(out.fileno())
        with uninterrupted():
            for temporary, target in written:
                os.replace(temporary, target)
    finally:
        for temporary, _ in written:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def _naming(target: Path) -> Iterator[None]:
    """An OSError that names the file to be written, and says that the old files have not
    changed.
    """
    try:
        yield
    except OSError as error:
        said = (
            f"{error.strerror or error}; nothing was written, and what was there before is as"
            " it was"
        )
        raise OSError(error.errno, said, str(target)) from None


def write_text(path: str | Path, text: str) -> None:
    """Write one file as UTF-8; the old file is complete until the new one is. Raises
    FluidValueError, which names the path, if it cannot be written.
    """
    where = Path(path)
    if not where.parent.is_dir():
        raise FluidValueError(
            f"cannot write {str(where)!r}: there is no folder {str(where.parent)!r}"
        )
    try:
        write_files(where.parent, {where.name: lambda: [text.encode("utf-8")]})
    except OSError as error:
        raise FluidValueError(f"cannot write {str(where)!r}: {error.strerror or error}") from None


def read_file(path: str | Path) -> bytes:
    """The bytes of a file. Raises FluidValueError, which names the path, if it cannot be read."""
    with reading(path) as file:
        return file.read()


@contextlib.contextmanager
def reading(path: str | Path) -> Iterator[BinaryIO]:
    """A file, open for reading. Raises FluidValueError, which names the path, if it cannot be read,
    or is a device or a pipe.
    """
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            raise FluidValueError(f"cannot read {str(path)!r}: it is not a regular file")
        with (
            open(path, "rb") as file,
            waiting(lambda: f"reading {str(path)!r}, {size(os.fstat(file.fileno()).st_size)}"),
        ):
            yield file
    except (OSError, ValueError) as error:
        if isinstance(error, FluidError):
            raise
        kind = MissingFileError if isinstance(error, FileNotFoundError) else FluidValueError
        raise kind(
            f"cannot read {str(path)!r}: {getattr(error, 'strerror', None) or error}"
        ) from None
