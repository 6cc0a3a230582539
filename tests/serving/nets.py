"""Saved nets, and a server of one of them in a thread or in a process of its own."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np

import fluidjax as fluid
from fluidjax import layers
from fluidjax.serving import Application, Settings
from fluidjax.serving.server import config_of

Net = Callable[[], tuple[list[Any], list[Any]]]
DATATYPES = {
    "float32": "FP32",
    "int64": "INT64",
    "bool": "BOOL",
    "uint8": "UINT8",
    "float64": "FP64",
}


def image() -> tuple[list[Any], list[Any]]:
    x = fluid.data("x", [None, 3, 8, 8])
    h = layers.batch_norm(layers.conv2d(x, 4, 3, padding=1, act="relu"), is_test=True)
    return [x], [layers.fc(layers.pool2d(h, 2, "avg", 2), 5, act="softmax")]


def words() -> tuple[list[Any], list[Any]]:
    """Two inputs, two outputs, ids that may be out of range."""
    ids, scale = fluid.data("ids", [None, 6], "int64"), fluid.data("scale", [None, 4])
    h = layers.reduce_sum(fluid.embedding(ids, [50, 4]), dim=1)
    h = layers.elementwise_mul(h, scale)
    return [ids, scale], [h, layers.topk(layers.fc(h, 7), 2)[1]]


def centred() -> tuple[list[Any], list[Any]]:
    """Rows are mixed."""
    x = fluid.data("x", [None, 4])
    return [x], [layers.elementwise_sub(x, layers.reduce_mean(x, dim=[0], keep_dim=True))]


def sequences() -> tuple[list[Any], list[Any]]:
    x = fluid.data("x", [None, 3], lod_level=1)
    return [x], [layers.sequence_pool(x, "sum"), layers.sequence_softmax(layers.fc(x, 1))]


def logarithm() -> tuple[list[Any], list[Any]]:
    x = fluid.data("x", [None, 2])
    return [x], [layers.log(x)]


def open_sizes() -> tuple[list[Any], list[Any]]:
    x = fluid.data("x", [None, 3, -1, -1])
    return [x], [layers.reduce_mean(layers.conv2d(x, 2, 3, padding=1), dim=[2, 3])]


def flags() -> tuple[list[Any], list[Any]]:
    x, y = fluid.data("x", [None, 3], "uint8"), fluid.data("y", [None, 3], "bool")
    both = layers.logical_and(layers.cast(x, "bool"), y)
    return [x, y], [layers.cast(both, "uint8"), layers.cast(x, "float64")]


def saved(folder: Path, net: Net) -> Path:
    """The folder of a net."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    startup.random_seed = 1
    with fluid.scope_guard(scope), fluid.program_guard(main, startup), fluid.unique_name.guard():
        feeds, targets = net()
        exe = fluid.Executor()
        exe.run(startup)
        fluid.io.save_inference_model(str(folder), [v.name for v in feeds], targets, exe, main)
    return folder


class Direct:
    """The same model by Executor.run."""

    def __init__(self, folder: Path) -> None:
        self.exe, self.scope = fluid.Executor(), fluid.Scope()
        with fluid.scope_guard(self.scope):
            self.program, self.feeds, self.targets = fluid.io.load_inference_model(
                str(folder), self.exe
            )

    def __call__(self, feed: Mapping[str, Any]) -> list[Any]:
        return self.exe.run(
            self.program, dict(feed), self.targets, scope=self.scope, return_numpy=False
        )


def told(feed: Mapping[str, np.ndarray], lengths: Any = None, **more: Any) -> dict[str, Any]:
    """A request for inference."""
    inputs: list[dict[str, Any]] = [
        {"name": n, "shape": list(v.shape), "datatype": DATATYPES[v.dtype.name], "data": v.ravel().tolist()}
        for n, v in feed.items()
    ]  # fmt: skip
    if lengths is not None:
        inputs[0]["parameters"] = {"lengths": lengths}
    return {"inputs": inputs, **more}


class Caller:
    """Requests to a server."""

    def __init__(self, port: int, name: str) -> None:
        self.port, self.name = port, name

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        made = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            made.request(method, path, body)
            answer = made.getresponse()
            return answer.status, answer.read()
        finally:
            made.close()

    def get(self, path: str) -> tuple[int, Any]:
        status, body = self.ask("GET", path)
        return status, json.loads(body)

    def post(self, request: Any) -> tuple[int, Any]:
        body = request if isinstance(request, bytes) else json.dumps(request).encode()
        status, answer = self.ask("POST", f"/v2/models/{self.name}/infer", body)
        return status, json.loads(answer)

    def infer(self, feed: Mapping[str, np.ndarray], **more: Any) -> list[np.ndarray]:
        status, answer = self.post(told(feed, **more))
        assert status == 200, answer
        names = {v: k for k, v in DATATYPES.items()}
        return [
            np.array(o["data"], names[o["datatype"]]).reshape(o["shape"]) for o in answer["outputs"]
        ]

    def metric(self, name: str) -> float:
        text = self.ask("GET", "/metrics")[1].decode()
        found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    def raw(self, sent: bytes, end: bool = True) -> bytes:
        """What comes back for these bytes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as made:
            made.sendall(sent)
            if end:
                made.shutdown(socket.SHUT_WR)
            found = b""
            while more := made.recv(1 << 16):
                found += more
            return found


@contextmanager
def serving(
    folder: Path,
    settings: Settings | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> Iterator[Caller]:
    """A server in a thread of this process."""
    import uvicorn

    app = Application(str(folder), settings, shapes)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(config_of(app))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    assert server.started, "the model cannot be served"
    try:
        yield Caller(listening.getsockname()[1], app.name)
    finally:
        server.should_exit = True
        thread.join(30)
        listening.close()
        assert not thread.is_alive()


@contextmanager
def process(*words: str) -> Iterator[tuple[subprocess.Popen[str], Caller, str]]:
    """A server by the command, and the line that it says."""
    made = subprocess.Popen(
        [sys.executable, "-m", "fluidjax", "serve", *words, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert made.stdout is not None and made.stderr is not None
        line = made.stdout.readline()
        found = re.search(r":(\d+)/v2/models/(\S+)", line)
        assert found, line + made.stderr.read()
        yield made, Caller(int(found[1]), found[2]), line
    finally:
        if made.poll() is None:
            made.send_signal(signal.SIGKILL)
        made.communicate()
