"""IDX files, the format of MNIST: a header of sizes, then the numbers, big-endian; plain or
gzip-compressed.
"""

from __future__ import annotations

import gzip
import io
import math
import os
import zlib
from pathlib import Path
from typing import IO

import numpy as np

from ..errors import FluidValueError
from ..saved.files import reading

DEFLATED = 1032  # bytes that one byte of a gzip file can unpack to, at most
MAX_RANK = 64  # NumPy's limit

# the third byte of the magic number
DTYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}

MNIST = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


def read_idx(path: str | Path) -> np.ndarray:
    """The array in an IDX file, in the machine's byte order.

    The header is read first, so that no more is unpacked than it announces. Raises FluidValueError,
    which names the file, if it is missing, not an IDX file, or too short or too long.
    """
    try:
        with reading(path) as file:
            size = os.fstat(file.fileno()).st_size
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            return _parsed(
                gzip.GzipFile(fileobj=file) if packed else file,
                str(path),
                size * DEFLATED if packed else size,
            )
    except (gzip.BadGzipFile, EOFError, zlib.error) as exc:
        raise FluidValueError(f"{path} is a damaged gzip file: {exc}") from None


def parse_idx(data: bytes, name: str = "data") -> np.ndarray:
    """The array in the bytes of an IDX file; `name` is used in errors (FluidValueError)."""
    return _parsed(io.BytesIO(data), name, len(data))


def _parsed(file: IO[bytes] | gzip.GzipFile, name: str, most: int) -> np.ndarray:
    """most: bytes that the file can hold."""
    head = file.read(4)
    if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in DTYPES:
        raise FluidValueError(
            f"{name} is not an IDX file: it begins with {head.hex(' ') or 'nothing'}"
        )
    rank, dtype = head[3], np.dtype(DTYPES[head[2]])
    sizes = file.read(4 * rank)
    if rank == 0 or len(sizes) < 4 * rank:
        raise FluidValueError(
            f"{name} ends within its header: {4 + len(sizes)} bytes, {rank} dimensions"
        )
    shape = tuple(np.frombuffer(sizes, ">u4").tolist())
    if rank > MAX_RANK:
        raise FluidValueError(
            f"{name} holds an array of {rank} dimensions; at most {MAX_RANK} are read"
        )
    want = math.prod(shape) * dtype.itemsize
    if want > most:
        raise FluidValueError(
            f"{name} should hold {want} bytes for shape {list(shape)}, but holds {most} at most"
        )
    data = file.read(want + 1)
    if len(data) != want:
        holds = len(data) if len(data) < want else "more"
        raise FluidValueError(
            f"{name} should hold {want} bytes for shape {list(shape)}, but holds {holds}"
        )
    try:
        return np.frombuffer(data, dtype).reshape(shape).astype(dtype.newbyteorder("="))
    except ValueError as error:  # a size of 0 beside one that no array can have
        raise FluidValueError(f"{name} has the shape {list(shape)}: {error}") from None


def mnist(folder: str | Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Images [n, 28, 28] and labels [n], both uint8, of MNIST's "train" or "test" part.

    folder: holds the four files under their usual names, plain or with ``.gz``. Raises
    FluidValueError for a missing or malformed file, and for images and labels that do not belong
    together.
    """
    folder = Path(folder)
    if part not in MNIST:
        raise FluidValueError(f"MNIST has the parts {', '.join(map(repr, MNIST))}, not {part!r}")
    image_file, label_file = (_find(folder, name) for name in MNIST[part])
    images, labels = read_idx(image_file), read_idx(label_file)
    if (
        images.dtype != np.uint8
        or images.ndim != 3
        or labels.dtype != np.uint8
        or labels.shape != images.shape[:1]
    ):
        raise FluidValueError(
            f"{image_file} and {label_file} are not images and their labels: "
            f"{images.dtype} {list(images.shape)}, {labels.dtype} {list(labels.shape)}"
        )
    return images, labels


def _find(folder: Path, name: str) -> Path:
    spellings = [name, name.replace("-idx", ".idx")]
    for spelling in [s + end for s in spellings for end in ("", ".gz")]:
        if (folder / spelling).is_file():
            return folder / spelling
    raise FluidValueError(
        f"there is no {name} (or {name}.gz) in {str(folder)!r}; put MNIST's four IDX files there"
    )


__all__ = ["mnist", "parse_idx", "read_idx"]
