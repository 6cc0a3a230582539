"""A data set's archive: finds and opens it, and reads it member by member; nothing is unpacked onto
the disk.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import unquote

from ..errors import FluidValueError
from .common import find, md5file

WHOLE = 1 << 28  # largest file that is read at once; cifar-100 has 155 million bytes
LINE = 1 << 20  # bytes of a line


class Bounded(io.BufferedIOBase):
    """A file of an archive that is read in bounded pieces, because a few packed bytes may unpack to
    any number.
    """

    def __init__(self, file: IO[bytes] | gzip.GzipFile, where: str) -> None:
        self._file, self._where = file, where

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        if size is not None and size >= 0:
            return self._file.read(size)
        data = self._file.read(WHOLE + 1)
        if len(data) > WHOLE:
            raise FluidValueError(f"{self._where} has more than {WHOLE} bytes")
        return data

    def readline(self, size: int | None = -1) -> bytes:
        line = self._file.readline(LINE + 1)
        if len(line) > LINE:
            raise FluidValueError(f"{self._where} has a line of more than {LINE} bytes")
        return line


@dataclass(frozen=True)
class Archive:
    """A published file: the folder of its data set, its name as downloaded, and the MD5 sum that
    Paddle 1.8.5 gives.
    """

    folder: str
    name: str
    md5: str

    def path(self) -> Path:
        """Its path, also under the last part of its name. Raises MissingFileError."""
        short = unquote(self.name).split("/")[-1]
        return find(self.folder, *dict.fromkeys((self.name, short)), md5=self.md5)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Path]:
        """The path; an error of the file within the block becomes a FluidValueError with its name
        and both MD5 sums.
        """
        path = self.path()
        try:
            yield path
        except (
            tarfile.TarError,
            zipfile.BadZipFile,
            EOFError,
            zlib.error,
            OSError,
            UnicodeDecodeError,
            NotImplementedError,
        ) as error:
            found = md5file(path)
            also = f"; its md5 is {found}, not {self.md5} as published" if found != self.md5 else ""
            raise FluidValueError(
                f"{path} cannot be read: {str(error) or type(error).__name__}{also}"
            ) from None

    @contextlib.contextmanager
    def tar(self) -> Iterator[tarfile.TarFile]:
        """The archive, open."""
        with self.reading() as path, tarfile.open(path) as archive:
            yield archive

    @contextlib.contextmanager
    def zip(self) -> Iterator[zipfile.ZipFile]:
        """The archive, open."""
        # A ZipFile keeps its file open while a member is open, so every path closes the member.
        with self.reading() as path, open(path, "rb") as file, zipfile.ZipFile(file) as archive:
            yield archive

    def lacks(self, what: str) -> FluidValueError:
        return FluidValueError(f"{self.path()} holds no {what}")

    def member(self, archive: tarfile.TarFile, name: str) -> Bounded:
        """A file of the archive. Raises FluidValueError if there is none of this name, with or
        without "./" before it.
        """
        for spelling in (name, name.removeprefix("./"), f"./{name}"):
            with contextlib.suppress(KeyError):
                return self.content(archive, archive.getmember(spelling))
        raise self.lacks(f"file {name!r}")

    def content(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> Bounded:
        """The content of a member. Raises FluidValueError for anything but a file, and for a link
        to something outside of the archive.
        """
        with contextlib.suppress(KeyError):
            file = archive.extractfile(member)
            if file is not None:
                return Bounded(file, f"{self.path()}: {member.name!r}")
        raise FluidValueError(f"{self.path()}: {member.name!r} is not a file")

    def matching(
        self, archive: tarfile.TarFile, pattern: re.Pattern[str]
    ) -> Iterator[tuple[str, Bounded]]:
        """The files whose names match a pattern from the beginning, in the order of the archive."""
        for member in archive:
            if pattern.match(member.name):
                yield member.name, self.content(archive, member)

    def text(self, line: bytes, where: str, encoding: str = "utf-8") -> str:
        """A line as text. Raises FluidValueError, which names file and position, for bytes of
        another encoding.
        """
        try:
            return line.decode(encoding)
        except UnicodeDecodeError as error:
            raise FluidValueError(f"{self.path()}, {where}: no {encoding} text: {error}") from None

    @contextlib.contextmanager
    def open_text(self, path: Path) -> Iterator[IO[str]]:
        """A file of the unpacked archive. Raises FluidValueError for bytes that are not UTF-8."""
        with open(path, encoding="utf-8") as file:
            try:
                yield file
            except UnicodeDecodeError as error:
                raise FluidValueError(f"{path} holds no utf-8 text: {error}") from None

    def unzipped(self, file: Bounded) -> Bounded:
        """The content of a gzip file in the archive."""
        return Bounded(gzip.GzipFile(fileobj=file), f"{self.path()}: a file within")

    def packed(self, package: zipfile.ZipFile, name: str) -> Bounded:
        """A file of the archive. Raises zipfile's errors for files that are not zip archives."""
        try:
            return Bounded(package.open(name), f"{self.path()}: {name!r}")
        except RuntimeError as error:
            # a damaged flag may mark it as encrypted, or packed in a way that Python lacks
            raise zipfile.BadZipFile(str(error)) from None


def whole_number(text: str, where: str) -> int:
    """A whole number. Raises FluidValueError, which names the position of anything else."""
    try:
        return int(text)
    except ValueError:
        raise FluidValueError(f"{where}: {text[:40]!r} is not a whole number") from None


__all__ = ["Archive", "whole_number"]
