"""The server as an ASGI application: addresses, limits, and responses."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from ..errors import FluidError, FluidTypeError
from ..predictors import AnalysisConfig
from .batching import Batches
from .metrics import Metrics, resident_bytes
from .model import Model
from .protocol import read, write
from .refused import Refused
from .settings import Settings

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
JSON, TEXT = b"application/json", b"text/plain; version=0.0.4"
_logger = logging.getLogger(__name__)


class Application:
    """A saved model under Open Inference Protocol v2, for any ASGI server.

    model: a folder that a model was saved in, or an AnalysisConfig. shapes: sizes for the warm-up,
    of inputs that leave more than the batch open. The model is loaded, and run once for each batch
    size, when the ASGI server starts up (or by `load`), so a forked worker loads it after the fork.
    Raises FluidTypeError for anything but a model.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | AnalysisConfig,
        settings: Settings | None = None,
        shapes: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        if not isinstance(model, str | os.PathLike | AnalysisConfig):
            raise FluidTypeError(
                f"a model is served from its folder or an AnalysisConfig, not {type(model).__name__}"
            )
        self._config = model if isinstance(model, AnalysisConfig) else AnalysisConfig(str(model))
        self.settings = settings or Settings()
        where = self._config.model_dir() or self._config.prog_file()
        self.name = self.settings.name or Path(where or "model").resolve().name
        self._shapes = shapes or {}
        self._metrics = Metrics()
        self._model: Model | None = None
        self._batches: Batches | None = None
        self.running = 0  # requests for inference without a response yet
        self.draining = False

    def load(self) -> None:
        """Load the model, and compile for its batch sizes. Raises the errors of loading and
        running.
        """
        if self._model is None:
            model = Model(self._config, self.settings.batch_sizes, self.settings.executables)
            if self._shapes or all(-1 not in t.shape[1:] for t in model.inputs):
                model.warm_up(self._shapes)
            self._batches = Batches(model, self.settings, self._metrics)
            self._model = model

    def drain(self) -> None:
        """Refuse new requests; running requests are answered."""
        self.draining = True

    def end(self) -> None:
        """Run waiting requests, and end the threads."""
        self.drain()
        if self._batches is not None:
            self._batches.end()

    @property
    def model(self) -> Model:
        """The loaded model. Raises Refused before it is loaded."""
        if self._model is None:
            raise Refused(503, "the model is not loaded yet")
        return self._model

    # -- ASGI

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await send({"type": "websocket.close"})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await asyncio.to_thread(self.load)
                except Exception as error:
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.startup.complete"})
            else:
                await asyncio.to_thread(self.end)
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _http(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        began, infers = time.perf_counter(), scope["path"].endswith("/infer")
        status, kind, whole = 200, JSON, True
        self.running += infers
        try:
            try:
                if scope["path"] == "/metrics":
                    _only(scope, "GET")
                    kind, body = TEXT, self._metrics_text().encode()
                elif infers:
                    whole = False
                    body = await self._infer(scope, receive)
                    whole = True
                else:
                    body = orjson.dumps(self._answer(scope))
            except Refused as error:
                status, body = error.status, orjson.dumps({"error": error.said})
            except FluidError as error:
                status, body = 400, orjson.dumps({"error": str(error)})
            except Exception:
                _logger.exception("a request failed")
                status, body = 500, orjson.dumps({"error": "the server failed; its log tells why"})
            headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
            if not whole or self.draining:  # the rest of the body is not awaited
                headers.append((b"connection", b"close"))
            if status == 503:
                headers.append((b"retry-after", b"1"))
            if infers:
                self._metrics.answers[status] += 1
                self._metrics.seconds.add(time.perf_counter() - began)
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body})
        finally:
            self.running -= infers

    # -- endpoints

    def _answer(self, scope: Mapping[str, Any]) -> Any:
        match scope["path"].rstrip("/").split("/")[1:]:
            case ["v2"]:
                _only(scope, "GET")
                version = sys.modules["fluidjax"].__version__  # the package is of a higher level
                return {"name": "fluidjax", "version": version, "extensions": []}
            case ["v2", "health", "live"]:
                _only(scope, "GET")
                return {"live": True}
            case ["v2", "health", "ready"]:
                _only(scope, "GET")
                return {"ready": self._ready()}
            case ["v2", "models", name, *rest]:
                self._named(name)
                if rest == ["ready"]:
                    _only(scope, "GET")
                    return {"name": name, "ready": self._ready()}
                if not rest:
                    _only(scope, "GET")
                    return {
                        "name": name,
                        "versions": [],
                        "platform": "fluidjax",
                        "inputs": [t.metadata() for t in self.model.inputs],
                        "outputs": [t.metadata() for t in self.model.outputs],
                    }
        raise Refused(404, "there is /v2, /v2/health/live, /v2/health/ready, /metrics, and under"
                      f" /v2/models/{self.name} nothing, /ready or /infer")  # fmt: skip

    def _named(self, name: str) -> None:
        if name != self.name:
            raise Refused(404, f"there is one model here, {self.name!r}")

    def _ready(self) -> bool:
        if self.draining:
            raise Refused(503, "the server is ending")
        return self.model is not None

    async def _infer(self, scope: Mapping[str, Any], receive: Receive) -> bytes:
        match scope["path"].split("/")[1:]:
            case ["v2", "models", name, "infer"]:
                self._named(name)
            case _:
                self._answer(scope)
        _only(scope, "POST")
        self._ready()
        model, batches = self.model, self._batches
        assert batches is not None
        request = read(
            await self._body(scope, receive), model.inputs, model.outputs, self.settings.elements
        )
        values = await asyncio.wrap_future(batches.submit(request.feed))
        return write(self.name, request.id, request.wanted, values)

    async def _body(self, scope: Mapping[str, Any], receive: Receive) -> bytes:
        most, seconds = self.settings.body, self.settings.seconds
        large = Refused(413, f"a body is of {most} bytes at most")
        headers = dict(scope["headers"])
        if b"inference-header-content-length" in headers:
            raise Refused(400, "requests are JSON; tensors in binary are not spoken")
        if headers.get(b"content-encoding", b"identity") != b"identity":
            raise Refused(415, "bodies are not compressed")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit():
            raise Refused(400, "content-length is a number")
        if len(length) > 18 or int(length) > most:
            raise large
        if b"content-length" in headers and b"transfer-encoding" in headers:
            # a proxy may find the end of the body by the other header
            raise Refused(400, "a body has a content-length or comes in chunks, not both")
        found = bytearray()
        try:
            async with asyncio.timeout(seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refused(400, "the body was cut short")
                    found += message.get("body", b"")
                    if len(found) > most:
                        raise large
                    if not message.get("more_body", False):
                        return bytes(found)
        except TimeoutError:
            raise Refused(408, f"the body did not come within {seconds:g} seconds") from None

    def _metrics_text(self) -> str:
        model, batches = self._model, self._batches
        compiled = model.compiled if model else 0
        return self._metrics.text({
            "fluidjax_running_requests": ("Requests for inference not answered yet.", self.running),
            "fluidjax_waiting_requests": ("Those that no run has taken.", batches.waiting if batches else 0),
            "fluidjax_compilations_total": ("Executables compiled.", compiled),
            "fluidjax_ready": ("Whether it takes requests.", int(model is not None and not self.draining)),
            "process_resident_memory_bytes": ("Memory of the process.", resident_bytes()),
        })  # fmt: skip


def _only(scope: Mapping[str, Any], method: str) -> None:
    if scope["method"] != method:
        raise Refused(405, f"this address takes {method}, not {scope['method']}")
