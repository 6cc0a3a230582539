"""The code of a process that parses lines of slots. It does not import JAX, and ends when the
process that started it ends.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import signal
import socket
import threading
import traceback
from collections.abc import Sequence
from typing import IO, Any

from ...errors import FluidValueError
from .blocks import Blocks
from .lines import Slot, parse
from .transfer import DONE, FAILED, FILE, READY, RECORDS, SLOTS, WRONG, packed, receive, send


def serve(descriptor: int) -> None:
    """Parse the files requested on this socket, each in a thread, until its other end is closed.
    Does not return.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the requesting process
    control = socket.socket(fileno=descriptor)
    send(control, READY)
    slots: list[Slot] = []
    while (message := receive(control, 2)) is not None:
        kind, body, handles = message
        if kind == SLOTS:
            slots = [
                Slot(n, k, None if shape is None else tuple(shape), used)
                for n, k, shape, used in json.loads(bytes(body))
            ]
        elif kind == FILE:
            threading.Thread(
                target=_file, args=(body.tobytes(), slots, *handles), daemon=True
            ).start()
    os._exit(0)


def asked(slots: Sequence[Slot]) -> bytes:
    """The message of the slots."""
    return json.dumps([[s.name, s.kind, s.shape, s.used] for s in slots]).encode()


def asking(path: str, shown_name: str, compressed: bool, number: int, left: bytes) -> bytes:
    """The message for a file, from line `number` on. shown_name: the file's name in messages. left:
    as in Blocks.
    """
    return json.dumps([path, shown_name, compressed, number]).encode() + b"\0" + left


def _file(body: bytes, slots: Sequence[Slot], stream: int, answers: int) -> None:
    about, _, left = body.partition(b"\0")
    path, shown_name, compressed, number = json.loads(about)
    with open(stream, "rb", buffering=0) as file, socket.socket(fileno=answers) as to:
        try:
            source: IO[Any] | Any = gzip.GzipFile(fileobj=file) if compressed else file
            for content, at in Blocks(source, path, number, left):
                send(to, RECORDS, packed(parse(content, slots, shown_name, at)))
            send(to, DONE)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the requesting process does not listen any more
        except FluidValueError as error:
            _tell(to, WRONG, str(error))
        except BaseException as error:
            _tell(to, FAILED, "".join(traceback.format_exception(error)))


def _tell(to: socket.socket, kind: bytes, text: str) -> None:
    with contextlib.suppress(OSError):
        send(to, kind, text.encode(errors="surrogatepass"))


__all__ = ["asked", "asking", "serve"]
