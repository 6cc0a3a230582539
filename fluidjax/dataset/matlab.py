"""Tables of numbers in MATLAB's files (level 5). SciPy's reader crashes the process on some damaged
files.
"""

from __future__ import annotations

import itertools
import math
import struct
import zlib
from collections.abc import Iterator

import numpy as np

_ELEMENTS = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
_CLASSES = {
    6: "f8",
    7: "f4",
    8: "i1",
    9: "u1",
    10: "i2",
    11: "u2",
    12: "i4",
    13: "u4",
    14: "i8",
    15: "u8",
}
_MATRIX, _PACKED = 14, 15
_COMPLEX = 0x800
_MOST = 1 << 26  # largest table that is unpacked, in bytes


def table(data: bytes, name: str) -> np.ndarray:
    """The table of this name. Raises ValueError if there is none, or if it is not a table of real
    numbers.
    """
    order = {b"IM": "<", b"MI": ">"}.get(data[126:128])
    if order is None:
        raise ValueError("it does not begin as such a file does")
    for kind, content in _elements(data[128:], order):
        if kind == _PACKED:
            unpacker = zlib.decompressobj()
            content = unpacker.decompress(content, _MOST)
            if unpacker.unconsumed_tail:
                raise ValueError(f"an element has more than {_MOST} bytes")
            kind, content = next(_elements(content, order), (0, b""))
        if kind == _MATRIX and (found := _matrix(content, order, name)) is not None:
            return found
    raise ValueError("there is none of this name")


def _elements(data: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """The data and types of elements, one after another."""
    at = 0
    while at + 8 <= len(data):
        kind, size = struct.unpack_from(order + "II", data, at)
        if kind >> 16:  # four bytes or less are stored beside the type
            kind, size, begin, end = kind & 0xFFFF, kind >> 16, at + 4, at + 8
        else:
            begin = at + 8
            end = begin + size + (-size % 8 if kind != _PACKED else 0)
        if size > end - begin or begin + size > len(data):
            raise ValueError(f"it ends within an element of {size} bytes")
        yield kind, data[begin : begin + size]
        at = end


def _matrix(data: bytes, order: str, name: str) -> np.ndarray | None:
    """A matrix, if it has this name."""
    parts = list(itertools.islice(_elements(data, order), 4))
    if len(parts) < 4 or parts[2][1] != name.encode():
        return None
    (_, head), (_, dims), _, (kind, content) = parts
    flags = struct.unpack_from(order + "I", head)[0] if len(head) >= 4 else 0
    made, shape = _CLASSES.get(flags & 0xFF), np.frombuffer(dims, order + "i4").tolist()
    if made is None or flags & _COMPLEX or kind not in _ELEMENTS:
        raise ValueError("it holds no real numbers")
    values = np.frombuffer(content, order + _ELEMENTS[kind])
    if min(shape, default=-1) < 0 or math.prod(shape) != len(values):
        raise ValueError(f"it has {len(values)} numbers for the shape {shape}")
    with np.errstate(invalid="ignore"):
        return values.astype(made).reshape(shape, order="F")
