"""What a stranger may send: answered by 4xx and a sentence, and the server goes on."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("uvicorn", reason="serving needs fluidjax[serve]")
pytest.importorskip("orjson", reason="serving needs fluidjax[serve]")

from fluidjax.serving import Settings

from . import nets

GOOD = {"ids": np.ones((1, 6), "int64"), "scale": np.ones((1, 4), "float32")}
LIMITS = Settings(body=100_000, elements=1_000, seconds=0.5)


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nets.Caller]:
    folder = nets.saved(tmp_path_factory.mktemp("served") / "words", nets.words)
    with nets.serving(folder, LIMITS) as caller:
        yield caller


def changed(**changes: Any) -> bytes:
    """A request whose first input is otherwise; a change to ... leaves that out."""
    request = nets.told(GOOD)
    request["inputs"][0] |= changes
    request["inputs"][0] = {k: v for k, v in request["inputs"][0].items() if v is not ...}
    return json.dumps(request).encode()


def scaled(text: str) -> bytes:
    """The second input with this first number."""
    return json.dumps(nets.told(GOOD)).encode().replace(b"[1.0,", f"[{text},".encode())


WRONG: dict[str, tuple[bytes, int, str]] = {
    "nothing": (b"", 400, "not JSON"),
    "garbage": (b"\x00\xff\xfe garbage", 400, "not JSON"),
    "cut": (changed()[:-20], 400, "not JSON"),
    "deep": (b"[" * 50_000, 400, "not JSON"),
    "deep objects": (b'{"inputs":' * 9_000, 400, "not JSON"),
    "deep data": (changed(data=eval("[" * 90 + "1" + "]" * 90)), 400, "not of shape"),
    "list": (b"[]", 400, "an object with a list 'inputs'"),
    "null": (b"null", 400, "an object with a list 'inputs'"),
    "no inputs": (b"{}", 400, "an object with a list 'inputs'"),
    "inputs of text": (b'{"inputs": "ids"}', 400, "an object with a list 'inputs'"),
    "none given": (b'{"inputs": []}', 400, "input 'ids' is missing"),
    "input of text": (b'{"inputs": ["ids"]}', 400, "an input is an object"),
    "unknown": (changed(name="idz"), 400, "no input 'idz' (did you mean 'ids'?)"),
    "long name": (changed(name="x" * 90_000), 400, "no input 'xxx"),
    "name of numbers": (changed(name=[1]), 400, "an input is an object"),
    "twice": (changed(name="scale", datatype="FP32", shape=[1, 4], data=[1.0] * 4), 400, "twice"),
    "datatype": (changed(datatype="FP32"), 400, "'ids' is of datatype INT64, not 'FP32'"),
    "no datatype": (changed(datatype=...), 400, "datatype INT64, not None"),
    "datatype of lists": (changed(datatype=[[]]), 400, "datatype INT64"),
    "no shape": (changed(shape=...), 400, "list of sizes"),
    "shape": (changed(shape=[1, 7], data=[1] * 7), 400, "of shape [-1, 6], not [1, 7]"),
    "rank": (changed(shape=[6]), 400, "of shape [-1, 6], not [6]"),
    "negative": (changed(shape=[-1, 6]), 400, "list of sizes"),
    "size of text": (changed(shape=["1", 6]), 400, "list of sizes"),
    "size true": (changed(shape=[True, 6]), 400, "list of sizes"),
    "size 1.0": (changed(shape=[1.0, 6]), 400, "list of sizes"),
    "huge": (changed(shape=[2**62, 6], data=[]), 413, "elements; 1000 are taken at most"),
    "many": (changed(shape=[200, 6], data=[1] * 1200), 413, "1200 elements"),
    "too few": (changed(data=[1] * 5), 400, "5 numbers; shape [1, 6] has 6"),
    "too many": (changed(data=[1] * 7), 400, "7 numbers"),
    "no data": (changed(data=...), 400, "in a list 'data'"),
    "data of text": (changed(data="111111"), 400, "in a list 'data'"),
    "data object": (changed(data={"0": 1}), 400, "in a list 'data'"),
    "ragged lists": (changed(data=[[1, 1, 1], [1, 1, 1, 1]]), 400, "not of shape"),
    "lists among numbers": (changed(data=[1, 1, 1, 1, 1, [1]]), 400, "element 5"),
    "text": (changed(data=[1, 1, 1, 1, 1, "1"]), 400, "element 5 is '1'"),
    "true": (changed(data=[1, True, 1, 1, 1, 1]), 400, "element 1 is True"),
    "null number": (changed(data=[1, None, 1, 1, 1, 1]), 400, "element 1 is None"),
    "fractions": (changed(data=[1, 1.5, 1, 1, 1, 1]), 400, "element 1 is 1.5"),
    "large integer": (changed(data=[2**63, 1, 1, 1, 1, 1]), 400, "INT64 does not hold"),
    "larger integer": (changed(data=[2**70, 1, 1, 1, 1, 1]), 400, "element 0"),
    "out of range": (changed(data=[50, 1, 1, 1, 1, 1]), 400, "50"),
    "below range": (changed(data=[-1, 1, 1, 1, 1, 1]), 400, "-1"),
    "NaN": (scaled("NaN"), 400, "not JSON"),
    "Infinity": (scaled("-Infinity"), 400, "not JSON"),
    "1e999": (scaled("1e999"), 400, "not JSON"),
    "1e39": (scaled("1e39"), 400, "FP32 does not hold"),
    "many digits": (scaled("9" * 5_000), 400, "not JSON"),
    "lengths": (changed(parameters={"lengths": [1]}), 400, "no sequences"),
    "parameters": (changed(parameters=[1]), 400, "parameters is an object"),
    "id": (json.dumps(nets.told(GOOD, id=7)).encode(), 400, "an id is text"),
    "output": (json.dumps(nets.told(GOOD, outputs=[{"name": "y"}])).encode(), 400, "no output 'y'"),
    "outputs": (json.dumps(nets.told(GOOD, outputs={"y": 1})).encode(), 400, "outputs is a list"),
    "large": (b" " * 100_001, 413, "100000 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_request_is_told_why(words: nets.Caller, name: str) -> None:
    body, wanted, says = WRONG[name]
    status, answer = words.post(body)
    assert status == wanted and list(answer) == ["error"], answer
    assert says in answer["error"] and len(answer["error"]) < 500 and "\n" not in answer["error"]
    assert words.post(nets.told(GOOD))[0] == 200


def test_damaged_requests_are_answered(words: nets.Caller) -> None:
    """Bytes of a request exchanged, dropped and doubled at random."""
    drawn, good = np.random.RandomState(0), bytearray(json.dumps(nets.told(GOOD)).encode())
    statuses = set()
    for _ in range(300):
        body = bytearray(good)
        for at in drawn.randint(0, len(body) - 1, drawn.randint(1, 5)):
            what = drawn.randint(4)
            if what == 0:
                body[at] = drawn.randint(256)
            elif what == 1:
                del body[at]
            elif what == 2:
                body[at:at] = body[at : at + 30]
            else:
                body[at : at + 1] = bytes([drawn.choice([*b'[]{}",:0-1e.n'])])
        status, answer = words.post(bytes(body))
        assert status in (200, 400, 413), (status, bytes(body), answer)
        statuses.add(status)
    assert statuses >= {200, 400}
    assert words.metric('fluidjax_answers_total{code="500"}') == 0


HEAD = b"POST /v2/models/words/infer HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 garbage\r\n\r\n", b"400"),
        (b"GET / HTTP/9.9\r\n\r\n", b"404"),
        (b"POST /v2/\xff HTTP/1.1\r\nHost: localhost\r\n\r\n", b"400"),
        (HEAD + b"X y\r\n\r\n", b"400"),
        (HEAD + b"Content-Length: many\r\n\r\n", b"400"),
        (HEAD + b"Content-Length: " + b"9" * 5_000 + b"\r\n\r\n", b"400"),
        (HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", b"400"),
        (
            HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
            b"400",
        ),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n", b"400"),
        (HEAD + b"Content-Length: -1\r\n\r\n", b"400"),
        (HEAD + b"Content-Length: 99999999999999\r\n\r\n", b"413"),
        (HEAD + b"Content-Length: 2\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b", b"415"),
        (HEAD + b"Content-Length: 2\r\nInference-Header-Content-Length: 2\r\n\r\n{}", b"400"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", b"400"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", b"400"),
    ],
)
def test_what_is_no_request(words: nets.Caller, sent: bytes, status: bytes) -> None:
    head, _, body = words.raw(sent).partition(b"\r\n\r\n")
    assert head.split(b" ")[1] == status
    assert list(json.loads(body)) == ["error"]
    assert words.post(nets.told(GOOD))[0] == 200


def test_numbers_of_rows_that_do_not_fit(words: nets.Caller) -> None:
    feed = {"ids": np.ones((3, 6), "int64"), "scale": np.ones((2, 4), "float32")}
    status, answer = words.post(nets.told(feed))
    assert status == 400 and "'ids' has 3, 'scale' has 2" in answer["error"]


def test_headers_have_an_end(words: nets.Caller) -> None:
    """The connection is closed, mostly before the client has sent them all."""
    with pytest.raises(OSError), socket.create_connection(("127.0.0.1", words.port)) as made:
        made.settimeout(30)
        made.sendall(b"GET /v2 HTTP/1.1\r\nHost: localhost\r\nX: ")
        for _ in range(10_000):
            made.sendall(b"x" * 10_000)
    assert words.post(nets.told(GOOD))[0] == 200


def test_a_body_that_is_cut_short_ends(words: nets.Caller) -> None:
    """By a client that goes away, and by one that sends no more."""
    words.raw(HEAD + b'Content-Length: 100\r\n\r\n{"inputs"')
    answer = words.raw(HEAD + b'Content-Length: 100\r\n\r\n{"inputs"', end=False)
    assert answer.split(b" ")[1] == b"408" and b"within 0.5 seconds" in answer
    until = time.monotonic() + 10
    while words.metric("fluidjax_running_requests") and time.monotonic() < until:
        time.sleep(0.05)
    assert words.metric("fluidjax_running_requests") == 0


def test_too_many_wait(tmp_path: Path) -> None:
    folder = nets.saved(tmp_path / "net", nets.centred)
    release, entered = threading.Event(), threading.Event()
    with nets.serving(folder, Settings(waiting=2)) as caller:
        from fluidjax.serving.model import Model

        run = Model.run

        def slow(self: Model, feeds: Any) -> Any:
            entered.set()
            release.wait(30)
            return run(self, feeds)

        request = nets.told({"x": np.ones((1, 4), "float32")})
        with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(8) as pool:
            patch.setattr(Model, "run", slow)
            first = pool.submit(caller.post, request)
            assert entered.wait(30)
            others = [pool.submit(caller.post, request) for _ in range(5)]
            until = time.monotonic() + 30
            while sum(f.done() for f in others) < 3 and time.monotonic() < until:
                time.sleep(0.02)
            assert caller.get("/v2/health/live")[0] == 200  # health is told meanwhile
            release.set()
            statuses = sorted(f.result()[0] for f in others)
        assert first.result()[0] == 200
        assert statuses == [200, 200, 503, 503, 503]
        said = [f.result()[1]["error"] for f in others if f.result()[0] == 503]
        assert set(said) == {"2 requests wait already; come again"}
