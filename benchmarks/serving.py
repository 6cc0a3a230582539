"""A model served over HTTP beside a loop of direct runs: requests a second, the memory of the
server, what went wrong.

Clients are threads of another process, each with a connection of its own, that send requests of
mixed sizes one after another (``python -m benchmarks.serving PORT NAME ROWS...`` is that process).
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import fluidjax as fluid
from fluidjax import layers
from fluidjax.core import AnalysisConfig, PaddleTensor, create_paddle_predictor

from . import fluid_models
from .page import Table, shown

CLIENTS, REQUESTS, BEFORE = 8, 10_000, 1_000
ROWS = (1, 2, 3, 5, 8)
SIZES = (1, 2, 4, 8, 16, 32)


def digits() -> Any:
    """A LeNet for images of 28 x 28."""
    h = fluid.data("img", [None, 1, 28, 28])
    for filters in (20, 50):
        h = layers.pool2d(layers.conv2d(h, filters, 5, act="relu"), 2, pool_stride=2)
    return layers.fc(layers.fc(h, 500, act="relu"), 10, act="softmax")


NETS: dict[str, tuple[Callable[[], Any], Callable[[int], np.ndarray]]] = {
    "BERT, 4 layers, 32 words": (
        lambda: fluid_models.bert(length=32, width=128),
        lambda n: np.random.RandomState(n).randint(0, 8000, (n, 32)).astype("int64"),
    ),
    "LeNet": (
        digits,
        lambda n: np.random.RandomState(n).rand(n, 1, 28, 28).astype("float32").round(4),
    ),
}


def saved(folder: Path, net: Callable[[], Any]) -> str:
    """The net as a folder; the name of its input."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    startup.random_seed = 1
    with fluid.scope_guard(scope), fluid.program_guard(main, startup), fluid.unique_name.guard():
        out = net()
        exe = fluid.Executor()
        exe.run(startup)
        (fed,) = (n for n, v in main.desc.blocks[0].vars.items() if v.is_data or v.need_check_feed)
        fluid.io.save_inference_model(str(folder), [fed], [out], exe, main)
    return fed


def body(name: str, array: np.ndarray) -> bytes:
    """A request for inference."""
    datatype = {"float32": "FP32", "int64": "INT64"}[array.dtype.name]
    described = {"name": name, "shape": list(array.shape), "datatype": datatype}
    data = (
        [float(f"{v:.4f}") for v in array.ravel()] if datatype == "FP32" else array.ravel().tolist()
    )
    return json.dumps({"inputs": [{**described, "data": data}]}).encode()


@contextmanager
def server(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The process and its port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "fluidjax", "serve", str(folder), "--port", "0", *words],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r":(\d+)/", line)
        assert found, f"the server does not start: {line}"
        yield process, int(found[1])
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def metric(port: int, name: str) -> float:
    """A figure of the server's own."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    return float(re.search(rf"^{name} (\S+)$", text, re.MULTILINE)[1])  # type: ignore[index]


class Client(threading.Thread):
    """One connection, and the statuses that it got."""

    def __init__(self, port: int, requests: Sequence[bytes]) -> None:
        super().__init__()
        self.port, self.requests = port, requests
        self.statuses: list[int] = []

    def run(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port)) as made:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for request in self.requests:
                made.sendall(request)
                self.statuses.append(self._answer(made))

    @staticmethod
    def _answer(made: socket.socket) -> int:
        got = b""
        while (end := got.find(b"\r\n\r\n")) < 0:
            more = made.recv(1 << 16)
            if not more:
                return 0
            got += more
        length = int(re.search(rb"content-length: (\d+)", got)[1])  # type: ignore[index]
        while len(got) < end + 4 + length:
            got += made.recv(1 << 16)
        return int(got[9:12])


def clients(port: int, path: Path) -> None:
    """Send what is read from the file, by 8 threads; how long it took and which statuses came."""
    whole = path.read_bytes().split(b"\n\0\n")
    shares = [whole[i::CLIENTS] for i in range(CLIENTS)]
    threads = [Client(port, share) for share in shares]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    statuses = [s for t in threads for s in t.statuses]
    print(json.dumps([took, len(statuses), sum(s != 200 for s in statuses)]))


@dataclass(frozen=True)
class Figures:
    """Requests a second of the server and of the loop; bytes of the server after the first
    thousand and at the end; requests that were not answered by 200.
    """

    served: float
    direct: float
    begins: float
    ends: float
    wrong: int


def measured(name: str, count: int = REQUESTS, before: int = BEFORE) -> Figures:
    """Serve a net, and run the same requests in a loop."""
    net, batch = NETS[name]
    rows = [random.Random(0).choice(ROWS) for _ in range(count)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "net"
        fed = saved(folder, net)
        arrays = {n: batch(n) for n in ROWS}
        bodies = {n: _posted("net", body(fed, a)) for n, a in arrays.items()}
        sizes = ",".join(map(str, SIZES))
        with server(folder, "--batch-sizes", sizes) as (_, port):
            first = _sent(port, folder, [bodies[n] for n in rows[:before]])
            begins = metric(port, "process_resident_memory_bytes")
            rest = _sent(port, folder, [bodies[n] for n in rows[before:]])
            ends = metric(port, "process_resident_memory_bytes")
        config = AnalysisConfig(str(folder))
        config.set_batch_sizes(SIZES)
        predictor = create_paddle_predictor(config)
        predictor.warm_up(SIZES)
        some = rows[before : before + max(200, count // 10)]
        start = time.perf_counter()
        for n in some:
            predictor.run([PaddleTensor(arrays[n])])[0].as_ndarray()
        direct = len(some) / (time.perf_counter() - start)
    served = (count - before) / rest[0]
    missing = count - int(first[1] + rest[1])
    return Figures(served, direct, begins, ends, int(first[2] + rest[2]) + missing)


def _posted(name: str, content: bytes) -> bytes:
    head = f"POST /v2/models/{name}/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


def _sent(port: int, folder: Path, requests: Sequence[bytes]) -> list[float]:
    path = folder.parent / "requests"
    path.write_bytes(b"\n\0\n".join(requests))
    words = [sys.executable, "-m", "benchmarks.serving", str(port), str(path)]
    root = str(Path(__file__).parents[1])
    found = subprocess.run(
        words, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": root}
    )
    answer: list[float] = json.loads(found.stdout)
    return answer


def table(count: int = REQUESTS, before: int = BEFORE) -> list[Table]:
    """As the page has it."""

    def row(name: str) -> list[str]:
        f = measured(name, count, before)
        grown = (f.ends - f.begins) / 2**20
        return [name, f"{f.served:.0f}", f"{f.direct:.0f}", f"{f.served / f.direct:.2f}",
                f"{f.begins / 2**20:.0f}", f"{grown:+.1f}", str(f.wrong)]  # fmt: skip

    title = (
        f"Serving: {CLIENTS} clients, {count:,} requests of {min(ROWS)} to {max(ROWS)} rows over HTTP,"
        " and a loop of direct runs"
    )
    heads = ["net", "served, 1/s", "direct, 1/s", "ratio", "MiB", "grown by", "not 200"]
    return [shown("serving", title, heads, map(row, NETS), widths=[26, 14, 14, 8, 8, 12, 10])]


if __name__ == "__main__":
    clients(int(sys.argv[1]), Path(sys.argv[2]))
