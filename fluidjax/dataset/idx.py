"""IDX files, the format of MNIST: a header of sizes, then the numbers, big-endian; plain or gzip-compressed."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np

from ..errors import FluidValueError

# the third byte of the magic number
DTYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}

MNIST = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


def read_idx(path: str | Path) -> np.ndarray:
    """The array in an IDX file, in the machine's byte order.

    Raises FluidValueError, naming the file, if it is not there, is no IDX file, or is cut short or too long.
    """
    return parse_idx(_content(Path(path)), str(path))


def parse_idx(data: bytes, name: str = "data") -> np.ndarray:
    """The array in the bytes of an IDX file; `name` stands in the errors (FluidValueError)."""
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in DTYPES:
        raise FluidValueError(f"{name} is no IDX file: it begins with {data[:4].hex(' ') or 'nothing'}")
    rank, dtype = data[3], np.dtype(DTYPES[data[2]])
    start = 4 + 4 * rank
    if rank == 0 or len(data) < start:
        raise FluidValueError(f"{name} ends within its header: {len(data)} bytes, {rank} dimensions")
    shape = tuple(int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(rank))
    want = dtype.itemsize
    for n in shape:
        want *= n
    if len(data) - start != want:
        raise FluidValueError(f"{name} should hold {want} bytes for shape {list(shape)}, but holds {len(data) - start}")
    return np.frombuffer(data, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))


def _content(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as exc:
        raise FluidValueError(f"cannot read {path}: {exc.strerror or exc}") from None
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as exc:
        raise FluidValueError(f"{path} is a damaged gzip file: {exc}") from None


def mnist(folder: str | Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Images [n, 28, 28] and labels [n], both uint8, of MNIST's "train" or "test" part.

    folder: holds the four files under their usual names, plain or with ``.gz``. Raises FluidValueError for a missing or
    malformed file, and for images and labels that do not belong together.
    """
    folder = Path(folder)
    if part not in MNIST:
        raise FluidValueError(f"MNIST has the parts {', '.join(map(repr, MNIST))}, not {part!r}")
    image_file, label_file = (_find(folder, name) for name in MNIST[part])
    images, labels = read_idx(image_file), read_idx(label_file)
    if images.dtype != np.uint8 or images.ndim != 3 or labels.dtype != np.uint8 or labels.shape != images.shape[:1]:
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
    raise FluidValueError(f"there is no {name} (or {name}.gz) in {str(folder)!r}; put MNIST's four IDX files there")


__all__ = ["mnist", "parse_idx", "read_idx"]
