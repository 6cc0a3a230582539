"""A process that serves until it gets SIGTERM or SIGINT."""

from __future__ import annotations

import ipaddress
import signal
import socket
import threading
import time
from collections.abc import Callable
from types import FrameType

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..errors import FluidValueError
from .application import Application


def is_loopback(host: str) -> bool:
    """Whether the address is reachable only from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(
    app: Application,
    host: str = "127.0.0.1",
    port: int = 8000,
    grace: float = 30.0,
    say: Callable[[str], None] = print,
) -> int:
    """Serve until SIGTERM or Ctrl-C; only in the main thread. Returns the exit code.

    After the signal new requests are refused with 503, running requests are answered for up to
    `grace` seconds, and the server ends; a second signal ends it at once. port 0: any free port.
    Raises FluidValueError for an address that cannot be used, and the errors of Application.load.
    """
    listening = _listen(host, port)
    with listening:
        ending = threading.Event()
        signals = {s: signal.signal(s, _ends(ending)) for s in (signal.SIGTERM, signal.SIGINT)}
        try:
            app.load()
            server = uvicorn.Server(config_of(app))
            thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
            if not ending.is_set():
                thread.start()
                at = listening.getsockname()
                say(f"serving {app.name} on http://{_host(at[0])}:{at[1]}/v2/models/{app.name}")
                while not ending.wait(1.0) and thread.is_alive():
                    pass
                app.drain()
                until = time.monotonic() + grace
                while app.running and time.monotonic() < until and thread.is_alive():
                    time.sleep(0.02)
                server.should_exit = True
                thread.join(5.0)
            return 0 if ending.is_set() else 1
        finally:
            for number, before in signals.items():
                signal.signal(number, before)


_NO_HTTP = b'{"error":"this is not a request of HTTP/1.1: a line, a header or the size of a chunk is not understood"}'


class _Protocol(H11Protocol):
    """Answers in JSON even if the input is not HTTP."""

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            head = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close"
            self.transport.write(
                f"{head}\r\ncontent-length: {len(_NO_HTTP)}\r\n\r\n".encode() + _NO_HTTP
            )
        self.transport.close()


def config_of(app: Application) -> uvicorn.Config:
    """The settings of uvicorn: it uses h11, which bounds the memory for headers (httptools does
    not).
    """
    return uvicorn.Config(
        app, http=_Protocol, ws="none", log_level="warning", access_log=False, timeout_keep_alive=30
    )


def _ends(ending: threading.Event) -> Callable[[int, FrameType | None], None]:
    def handle(number: int, frame: FrameType | None) -> None:
        if ending.is_set():
            raise SystemExit(128 + number)
        ending.set()

    return handle


def _host(name: str) -> str:
    return f"[{name}]" if ":" in name else name


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port < 1 << 16:
        raise FluidValueError(f"a port is a number from 0 to 65535, not {port}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(1024)
    except OSError as error:
        found.close()
        raise FluidValueError(f"cannot listen on {_host(host)}:{port}: {error.strerror}") from None
    return found
