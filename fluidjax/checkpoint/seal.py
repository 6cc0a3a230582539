"""The file that completes a checkpoint: the record, and the size and checksum of every file of the
arrays.

It is written last, so a folder without it is not a checkpoint, and damage is found before anything
interprets the files. (Orbax also keeps files with times and names of its own, which it continues to
write.)
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import FluidValueError, ParseError
from ..saved.files import read_file, reading, write_files
from .record import Record, from_json, to_json

SEAL = "fluidjax.json"
STATE = "state"  # the folder of the arrays, by orbax's name
_BLOCK = 1 << 20


def seal(folder: Path, record: Record) -> None:
    """Write the seal of a folder whose arrays are complete."""
    files = {name: [size, sum] for name, size, sum in _checksums(folder, sorted(_names(folder)))}
    held = {"record": to_json(record), "files": files}
    data = json.dumps({**held, "checksum": checksum(held)}, allow_nan=False).encode()
    write_files(folder, {SEAL: lambda: [data]})


def checksum(held: dict[str, Any]) -> int:
    """CRC-32 of the seal's own contents."""
    return zlib.crc32(json.dumps(held, sort_keys=True).encode())


def is_sealed(folder: Path) -> bool:
    return (folder / SEAL).is_file()


def opened(folder: Path) -> Record:
    """The record, after the checksum of every file was compared. Raises ParseError for the first
    file that has changed.
    """
    try:
        data = json.loads(read_file(folder / SEAL))
    except (ValueError, RecursionError) as error:
        raise ParseError(f"{SEAL} is not JSON: {error}") from None
    if (
        type(data) is not dict
        or set(data) != {"record", "files", "checksum"}
        or type(data["files"]) is not dict
    ):
        raise ParseError(f"{SEAL} does not hold a record, files and a checksum")
    if data.pop("checksum") != checksum(data):
        raise ParseError(f"{SEAL} is not as it was written")
    record = from_json(data["record"])
    there = _names(folder)
    for name in data["files"]:
        if name not in there:
            raise ParseError(f"the file {name!r} is missing")
    for name, size, sum in _checksums(folder, data["files"]):
        if data["files"][name] != [size, sum]:
            raise ParseError(f"the file {name!r} is not as it was written")
    return record


def _names(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in (folder / STATE).rglob("*") if p.is_file()}


def _checksums(folder: Path, names: Any) -> Iterator[tuple[str, int, int]]:
    """(name, bytes, CRC-32) of files."""
    for name in names:
        size = crc = 0
        try:
            with reading(folder / name) as file:
                while block := file.read(_BLOCK):
                    size, crc = size + len(block), zlib.crc32(block, crc)
        except FluidValueError as error:
            raise ParseError(str(error)) from None
        yield name, size, crc
