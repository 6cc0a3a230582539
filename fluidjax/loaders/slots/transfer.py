"""Messages between the process that requests parsed lines and the one that parses them; records are
sent as the bytes of their arrays.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from .records import Records

# kinds of messages
READY, SLOTS, FILE, RECORDS, WRONG, FAILED, DONE = (bytes([c]) for c in b"rsflwxd")
_HEAD = struct.Struct("<cq")  # the kind, and the number of bytes that follow


def send(to: socket.socket, kind: bytes, body: Any = b"", handles: Sequence[int] = ()) -> None:
    """Send a message, with file descriptors of this process. Raises OSError if the other end is
    closed.
    """
    head = _HEAD.pack(kind, len(body))
    if handles:
        socket.send_fds(to, [head], list(handles))
    else:
        to.sendall(head)
    to.sendall(body)


def receive(at: socket.socket, handles: int = 0) -> tuple[bytes, np.ndarray, list[int]] | None:
    """The next message: its kind, its bytes, and up to `files` file descriptors; None if the other
    end is closed.
    """
    given: list[int] = []
    begin: np.ndarray | None
    try:
        if handles:
            head, given, *_ = socket.recv_fds(at, _HEAD.size, handles)
            begin = np.frombuffer(head, np.uint8)
        else:
            begin = _exactly(at, _HEAD.size)
        if begin is None or len(begin) < _HEAD.size:
            return None
        kind, length = _HEAD.unpack(begin)
        body = _exactly(at, length)
    except ConnectionResetError:
        return None
    return None if body is None else (kind, body, given)


def _exactly(at: socket.socket, length: int) -> np.ndarray | None:
    """Exactly `size` bytes; None if fewer come."""
    body = np.empty(length, np.uint8)
    with memoryview(body) as free:
        count = 0
        while count < length:
            more = at.recv_into(free[count:], length - count, socket.MSG_WAITALL)
            if not more:
                return None
            count += more
    return body


def packed(records: Records) -> np.ndarray:
    """Records as bytes: the numbers of slots and samples, the number of values of each slot
    (negative for float32), then the int64 values, the offsets as int32, and the float32 values.
    """
    wide = [v for v in records.values if v.dtype == np.int64]
    narrow = [v for v in records.values if v.dtype == np.float32]
    head = [
        len(records.values),
        len(records),
        *(len(v) if v.dtype == np.int64 else ~len(v) for v in records.values),
    ]
    parts = [np.array(head, np.int64), *wide, records.offsets.astype(np.int32), *narrow]
    return np.concatenate([p.reshape(-1).view(np.uint8) for p in parts])


def unpacked(body: np.ndarray) -> Records:
    """The records in these bytes, without a copy."""
    whole = body[: len(body) // 8 * 8].view(np.int64)
    columns, lines = whole[:2].tolist()
    counts = whole[2 : 2 + columns].tolist()
    wide, at = sum(n for n in counts if n >= 0), 2 + columns
    integers = whole[at : at + wide]
    rest = body[(at + wide) * 8 :]
    size = columns * (lines + 1) * 4
    offsets, floats = (
        rest[:size].view(np.int32).reshape(columns, lines + 1),
        rest[size:].view(np.float32),
    )
    values: list[np.ndarray] = []
    first = second = 0
    for n in counts:
        if n >= 0:
            values.append(integers[first : first + n])
            first += n
        else:
            values.append(floats[second : second + ~n])
            second += ~n
    return Records(tuple(values), offsets)


__all__ = [
    "DONE",
    "FAILED",
    "FILE",
    "READY",
    "RECORDS",
    "SLOTS",
    "WRONG",
    "packed",
    "receive",
    "send",
    "unpacked",
]
