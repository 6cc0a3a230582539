"""Lines of JSON over a socket: the control messages of a job's processes. Their size is bounded,
and no pickle is used.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Callable
from typing import Any

from ...errors import ParseError

FIRST = 16 << 10  # bytes of the first message, whose sender is unknown
LINE = 64 << 10  # bytes of an ordinary message
TEXT = 16 << 20  # bytes of a message with a program's text
# seconds idle, seconds between probes, probes: a silent host is detected after 20 s
KEEPALIVE = 5, 5, 3


def encode(message: dict[str, Any]) -> bytes:
    """One line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


class Lines:
    """Parses bytes into messages. A line that is too long, or not a JSON object, raises ParseError."""

    def __init__(self, limit: int = LINE) -> None:
        self.limit = limit
        self._bytes = bytearray()

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """The messages that are complete now."""
        self._bytes += data
        found = []
        while (end := self._bytes.find(b"\n")) >= 0:
            line = bytes(self._bytes[:end])
            del self._bytes[: end + 1]
            if len(line) > self.limit:
                break
            found.append(_decode(line))
        if len(self._bytes) > self.limit or (end >= 0):
            raise ParseError(f"a message is longer than {self.limit} bytes")
        return found


def _decode(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise ParseError(f"not a message of fluidjax: {line[:60]!r}")
    return message


def patient(sock: socket.socket) -> None:
    """Let the kernel detect a silent host (the end of a process is always detected at once)."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in zip(
        ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT"), KEEPALIVE, strict=True
    ):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 20_000)


def listen(
    host: str, port: int, first: Callable[[int], object] = lambda port: None
) -> socket.socket:
    """A listening socket; port 0: any. Raises OSError, also if another process listens with
    SO_REUSEPORT.

    first: called with the bound port, before connections are possible.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        # a port that the previous job has just closed is free
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        first(sock.getsockname()[1])
        sock.listen(1024)
    except OSError:
        sock.close()
        raise
    return sock


def own_address(toward: str = "") -> str:
    """This host's address for others: that of the route to a host, else of the default route, else
    its name.
    """
    for there in (*([toward] if toward else []), "192.0.2.1"):
        family = socket.AF_INET6 if ":" in there else socket.AF_INET
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.connect((there, 9))  # sends nothing: the kernel only chooses a route
            address: str = sock.getsockname()[0]
            if not address.startswith("127."):
                return address
    return socket.gethostname()


def free_port(host: str = "127.0.0.1") -> int:
    """A port that is free now."""
    with listen(host, 0) as sock:
        port: int = sock.getsockname()[1]
        return port


__all__ = [
    "FIRST",
    "LINE",
    "TEXT",
    "Lines",
    "encode",
    "free_port",
    "listen",
    "own_address",
    "patient",
]
