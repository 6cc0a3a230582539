"""Dicts of arrays in the pickle format of ``.pdparams`` and ``.pdopt`` files, with names that the
NumPy of Paddle 1.8.5 knows.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

import numpy as np

from ..errors import ParseError
from . import pickles

NAMES = "StructuredToParameterName@@"  # a table of names that paddle.save of 2.x adds


def read(data: bytes, source: str) -> dict[str, np.ndarray]:
    """The arrays of a pickled dict. Raises ParseError, which names the file, for anything else."""
    found = pickles.loads(data, source)
    if not isinstance(found, dict):
        raise ParseError(f"{source}: the pickle holds no dict but {type(found).__name__}")
    return dict(_arrays(found, source))


def _arrays(found: Mapping[object, object], source: str) -> Iterator[tuple[str, np.ndarray]]:
    for key, value in found.items():
        name = key.decode("latin1") if isinstance(key, bytes) else key  # a string of Python 2
        if name == NAMES:
            continue
        if not isinstance(name, str):
            raise ParseError(f"{source}: a key is not text but {type(key).__name__}")
        if not isinstance(value, np.ndarray):
            raise ParseError(
                f"{source}: {name[:80]!r} holds no array of numbers but {type(value).__name__}"
            )
        yield name, value


def write(arrays: Mapping[str, np.ndarray]) -> Iterator[bytes | memoryview]:
    """The pickle of a dict of arrays, in pieces, which Paddle 1.8.5 and later can load."""
    yield b"\x80\x03}("
    for name, value in arrays.items():
        array = np.ascontiguousarray(value).reshape(value.shape)
        yield (
            _text(name)
            + b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R"
        )
        yield b"(K\x01(" + b"".join(map(_integer, array.shape)) + b"t"
        yield b"cnumpy\ndtype\n" + _text(_code(array)) + b"K\x00K\x01\x87R"
        order = "<" if array.dtype.itemsize > 1 else "|"
        yield b"(K\x03" + _text(order) + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
        size = array.nbytes
        yield b"B" + struct.pack("<I", size) if size < 2**32 else b"\x8e" + struct.pack("<Q", size)
        yield array.tobytes()
        yield b"tb"
    yield b"u."


def _text(text: str) -> bytes:
    encoded = text.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<I", len(encoded)) + encoded


def _integer(value: int) -> bytes:
    if value < 2**31:
        return b"J" + struct.pack("<i", value)
    return b"\x8a\x08" + struct.pack("<q", value)


def _code(array: np.ndarray) -> str:
    """The array's dtype in NumPy's spelling; bfloat16 is stored as uint16, as in Paddle."""
    return "u2" if array.dtype.name == "bfloat16" else array.dtype.str[1:]
