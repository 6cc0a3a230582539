"""Paddle's LoDTensor stream: the format of a tensor in a file of its own, or of several tensors one
after another in a combined file.

    uint32 version 0 | uint64 number of LoD levels | a level: uint64 bytes, uint64 offsets... |
    uint32 version 0 | int32 bytes of a TensorDesc | TensorDesc (protobuf: data_type, dims) | the
    elements, row by row

All numbers are little-endian. Memory is allocated only after the file's length is checked, and
files are streamed: data is read straight into its array.
"""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from google.protobuf.message import DecodeError

from ..base.dtypes import enum_of, name_of, numpy_dtype
from ..errors import FluidError, ParseError
from ..ir import framework_pb2

# its classes are made during import, so type checkers cannot see them
wire: Any = framework_pb2
Lod = tuple[tuple[int, ...], ...]
MOST_BLOCKS = 65536  # blocks of a parameter, each on a pserver of its own
MAX_RANK = 64  # NumPy's limit


@dataclass(frozen=True)
class Tensor:
    """One tensor of a file: its elements, and the offsets of its sequences level by level."""

    array: np.ndarray
    lod: Lod = ()


class Reader:
    """Reads numbers from bytes or an open file; errors name the file and the offset."""

    def __init__(self, data: bytes | BinaryIO, source: str) -> None:
        self.file: BinaryIO = io.BytesIO(data) if isinstance(data, bytes) else data
        self.source, self.at, self.size = source, 0, self.file.seek(0, io.SEEK_END)
        self.file.seek(0)

    @property
    def left(self) -> int:
        return self.size - self.at

    def fail(self, what: str, at: int | None = None) -> ParseError:
        return ParseError(f"{self.source}, offset {self.at if at is None else at}: {what}")

    def need(self, count: int, what: str) -> None:
        if count > self.left:
            raise self.fail(f"{what} needs {count} bytes, but {self.left} are left")

    def take(self, count: int, what: str) -> bytes:
        self.need(count, what)
        data = self.file.read(count)
        self._got(len(data), count)
        return data

    def array(self, count: int, dtype: np.dtype, what: str) -> np.ndarray:
        self.need(count * dtype.itemsize, what)
        array = np.empty(count, dtype)
        if count:
            self._got(self.file.readinto(array.view(np.uint8).data), array.nbytes)  # type: ignore[attr-defined]
        return array

    def _got(self, found: int, count: int) -> None:
        if found != count:
            raise self.fail("the file became shorter while it was read")
        self.at += count

    def number(self, kind: str, what: str) -> int:
        (value,) = struct.unpack("<" + kind, self.take(struct.calcsize("<" + kind), what))
        return value

    def version(self, what: str) -> None:
        found = self.number("I", f"the version of {what}")
        if found != 0:
            raise self.fail(
                f"the version of {what} is {found}; 0 is what Paddle writes", self.at - 4
            )


def read(reader: Reader) -> Tensor:
    """The tensor at the reader's position. Raises ParseError, which names file, offset and
    field.
    """
    reader.version("the LoDTensor")
    lod = _lod(reader)
    reader.version("the tensor")
    dtype, dims = _desc(reader)
    array = reader.array(math.prod(dims), dtype, f"a tensor {list(dims)} of {dtype.name}")
    try:
        array = array.reshape(dims)
    except ValueError as error:  # a size of 0 beside one that no array can have
        raise reader.fail(f"dims {list(dims)}: {error}") from None
    if dtype == np.bool_ and array.size and array.view(np.uint8).max() > 1:
        raise reader.fail("a boolean is neither 0 nor 1", reader.at - array.nbytes)
    if lod and lod[-1][-1] != (dims[0] if dims else 0):
        raise reader.fail(
            f"the LoD ends at row {lod[-1][-1]}, but the tensor has shape {list(dims)}"
        )
    return Tensor(array, lod)


def _lod(reader: Reader) -> Lod:
    levels = reader.number("Q", "the number of LoD levels")
    if levels > reader.left // 8:
        raise reader.fail(
            f"there are {levels} LoD levels, more than the file has room for", reader.at - 8
        )
    found: list[tuple[int, ...]] = []
    for level in range(levels):
        size = reader.number("Q", f"the size of LoD level {level}")
        raw = reader.take(size, f"LoD level {level}")
        if size % 8 or size < 8:
            raise reader.fail(
                f"LoD level {level} has {size} bytes; offsets have 8 each", reader.at - size
            )
        offsets = np.frombuffer(raw, "<u8")
        if offsets[0] != 0 or (offsets[1:] < offsets[:-1]).any():
            raise reader.fail(
                f"the offsets of LoD level {level} do not rise from 0", reader.at - size
            )
        if found and found[-1][-1] != len(offsets) - 1:
            above = f"the level above it ends at {found[-1][-1]}"
            raise reader.fail(
                f"LoD level {level} has {len(offsets) - 1} sequences; {above}", reader.at - size
            )
        found.append(tuple(offsets.tolist()))
    return tuple(found)


def _desc(reader: Reader) -> tuple[np.dtype, tuple[int, ...]]:
    size = reader.number("i", "the size of the TensorDesc")
    if size < 0:
        raise reader.fail(f"the size of the TensorDesc is {size}", reader.at - 4)
    start = reader.at
    desc = wire.VarType.TensorDesc()
    try:
        desc.ParseFromString(reader.take(size, "the TensorDesc"))
        name = name_of(desc.data_type)
        dtype = numpy_dtype(name)
    except DecodeError as error:
        raise reader.fail(f"these bytes are not a TensorDesc: {error}", start) from None
    except FluidError as error:
        raise reader.fail(f"data_type: {error}", start) from None
    dims = tuple(desc.dims)
    if any(d < 0 for d in dims) or len(dims) > MAX_RANK:
        raise reader.fail(f"dims: {list(dims[:MAX_RANK])} is not a shape", start)
    return dtype, dims


def read_one(data: bytes | BinaryIO, source: str) -> Tensor:
    """The one tensor of a file. Raises ParseError, also for bytes behind it.

    A single number may be repeated for each further block: in this form a job of 1.8.5 saves the
    powers of beta of a parameter that is cut into blocks, with the shape of one number.
    """
    reader = Reader(data, source)
    tensor = read(reader)
    if (left := reader.left) and not (
        left <= MOST_BLOCKS * tensor.array.nbytes and _again(tensor.array, reader)
    ):
        raise reader.fail(
            f"{left} bytes follow the tensor; several tensors in one file are loaded by"
            " params_filename"
        )
    return tensor


def _again(array: np.ndarray, reader: Reader) -> bool:
    """Whether the array is one number, and the rest of the file repeats it."""
    if array.size != 1 or reader.left % array.nbytes:
        return False
    count = reader.left // array.nbytes
    return bytes(reader.take(reader.left, "the number again")) == array.tobytes() * count


def read_many(data: bytes | BinaryIO, names: Sequence[str], source: str) -> dict[str, Tensor]:
    """The tensors of a combined file. The file has no names, so the caller gives them in the file's
    order.

    Raises ParseError for a file with another number of tensors.
    """
    reader = Reader(data, source)
    found: dict[str, Tensor] = {}
    for name in names:
        if not reader.left:
            raise reader.fail(
                f"the file ends after {len(found)} tensors; {name!r} and"
                f" {len(names) - len(found) - 1} more should follow"
            )
        try:
            found[name] = read(reader)
        except ParseError as error:
            raise ParseError(
                f"{error} (parameter {name!r}, number {len(found)} of {len(names)})"
            ) from None
    if reader.left:
        raise reader.fail(
            f"{reader.left} bytes follow the last of {len(names)} tensors; the program expects"
            " fewer than the file holds"
        )
    return found


def write(tensor: Tensor) -> Iterator[bytes | memoryview]:
    """The bytes of a tensor, in pieces (large arrays are not copied)."""
    # ascontiguousarray turns a scalar into [1]
    array = np.ascontiguousarray(tensor.array).reshape(tensor.array.shape)
    yield struct.pack("<IQ", 0, len(tensor.lod))
    for level in tensor.lod:
        offsets = np.asarray(level, "<u8").tobytes()
        yield struct.pack("<Q", len(offsets)) + offsets
    desc = wire.VarType.TensorDesc(data_type=int(enum_of(array.dtype.name)), dims=array.shape)
    encoded = desc.SerializeToString()
    yield struct.pack("<Ii", 0, len(encoded)) + encoded
    yield array.view(np.uint8).reshape(-1).data if array.size and array.ndim else array.tobytes()
