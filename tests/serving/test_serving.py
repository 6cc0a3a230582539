"""A served model beside Executor.run: any sizes, many clients, requests that run together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("uvicorn", reason="serving needs fluidjax[serve]")
pytest.importorskip("orjson", reason="serving needs fluidjax[serve]")

import fluidjax as fluid
from fluidjax.errors import FluidValueError
from fluidjax.serving import Application, Settings

from . import nets

DRAWN = np.random.RandomState(5)


def drawn(net: Any, n: int) -> dict[str, np.ndarray]:
    if net is nets.words:
        ids = DRAWN.randint(0, 50, (n, 6)).astype("int64")
        return {"ids": ids, "scale": DRAWN.rand(n, 4).astype("float32")}
    if net is nets.flags:
        return {"x": DRAWN.randint(0, 3, (n, 3)).astype("uint8"), "y": DRAWN.rand(n, 3) > 0.5}
    shape = {nets.image: (3, 8, 8), nets.centred: (4,), nets.open_sizes: (3, 6, 5)}[net]
    return {"x": DRAWN.uniform(-1, 1, (n, *shape)).astype("float32")}


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nets.Caller]:
    folder = nets.saved(tmp_path_factory.mktemp("served") / "image", nets.image)
    with nets.serving(folder) as caller:
        yield caller


@pytest.mark.first(2)
@pytest.mark.parametrize(
    "net", [nets.image, nets.words, nets.centred, nets.flags, nets.open_sizes],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_many_clients_get_what_a_run_gives(tmp_path: Path, net: Any) -> None:
    """Of 8 clients, with batches of sizes that are compiled, that are padded, and that are larger
    than all.
    """
    folder = nets.saved(tmp_path / "net", net)
    direct = nets.Direct(folder)
    feeds = [drawn(net, n) for n in (1, 3, 2, 8, 5, 4, 1, 7, 9, 20, 6, 2) * 2]
    with nets.serving(folder, Settings(wait=0.005)) as caller:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(caller.infer, feeds))
        apart = net is not nets.centred
        runs = caller.metric("fluidjax_run_seconds_count")
        assert runs < len(feeds) if apart else runs == len(feeds)
        assert caller.metric("fluidjax_batch_rows_sum") == sum(
            next(iter(f.values())).shape[0] for f in feeds
        )
        if apart and net is not nets.open_sizes:  # one for each batch size
            assert caller.metric("fluidjax_compilations_total") == 4
    for feed, got in zip(feeds, found, strict=True):
        want = [np.asarray(v) for v in direct(feed)]
        for one, expected in zip(got, want, strict=True):
            assert one.shape == expected.shape and one.dtype == expected.dtype
            np.testing.assert_allclose(one, expected, rtol=1e-5, atol=1e-6)


def test_sizes_may_be_off(tmp_path: Path) -> None:
    folder = nets.saved(tmp_path / "net", nets.image)
    with nets.serving(folder, Settings(batch_sizes=(), wait=0.05)) as caller:
        feeds = [drawn(nets.image, 2) for _ in range(4)]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(caller.infer, feeds))
        assert caller.metric("fluidjax_run_seconds_count") == 4


def test_one_clients_fault_is_its_own(tmp_path: Path) -> None:
    """Ids that are out of range, in a batch with others."""
    folder = nets.saved(tmp_path / "net", nets.words)
    feeds = [drawn(nets.words, 1) for _ in range(4)]
    feeds[2]["ids"][0, 3] = 50
    with nets.serving(folder, Settings(wait=0.2)) as caller, ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda f: caller.post(nets.told(f)), feeds))
    assert [status for status, _ in found] == [200, 200, 400, 200]
    assert "50" in found[2][1]["error"]


def test_sequences_have_lengths(tmp_path: Path) -> None:
    folder = nets.saved(tmp_path / "net", nets.sequences)
    rows = DRAWN.rand(6, 3).astype("float32")
    tensor = fluid.create_lod_tensor(rows, [[1, 3, 2]])
    sums, weights = nets.Direct(folder)({"x": tensor})
    with nets.serving(folder) as caller:
        for lengths in ([1, 3, 2], [[1, 3, 2]]):
            status, answer = caller.post(nets.told({"x": rows}, lengths))
            assert status == 200, answer
            got, softmax = answer["outputs"]
            np.testing.assert_allclose(
                np.reshape(got["data"], got["shape"]), np.asarray(sums), rtol=1e-5
            )
            np.testing.assert_allclose(softmax["data"], np.asarray(weights).ravel(), rtol=1e-5)
            assert softmax["parameters"] == {"lengths": [[1, 3, 2]]}
        for wrong in (None, [], [1, 3], [[1, 3, 3]], [[1], [1]], "1,3,2", [[1, -1, 6]], [[True]]):
            status, answer = caller.post(nets.told({"x": rows}, wrong))
            assert status == 400 and "'lengths' is 1 list(s)" in answer["error"], wrong


def test_what_is_no_number_is_null(tmp_path: Path) -> None:
    folder = nets.saved(tmp_path / "net", nets.logarithm)
    with nets.serving(folder) as caller:
        status, answer = caller.post(nets.told({"x": np.array([[1.0, -1.0]], "float32")}))
        assert status == 200 and answer["outputs"][0]["data"] == [0.0, None]


def test_addresses(images: nets.Caller) -> None:
    assert images.get("/v2")[1]["name"] == "fluidjax"
    assert images.get("/v2/health/live") == (200, {"live": True})
    assert images.get("/v2/health/ready") == (200, {"ready": True})
    assert images.get("/v2/models/image/ready") == (200, {"name": "image", "ready": True})
    status, found = images.get("/v2/models/image")
    assert status == 200
    assert found["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 3, 8, 8]}]
    assert [(o["datatype"], o["shape"]) for o in found["outputs"]] == [("FP32", [-1, 5])]
    for path in (
        "/",
        "/v3",
        "/v2/models/other",
        "/v2/models/image/other",
        "/v2/models/other/infer",
    ):
        assert images.get(path)[0] == 404, path
    assert images.get("/v2/models/image/infer")[0] == 405
    for path in ("/v2", "/metrics", "/v2/health/live", "/v2/models/image"):
        assert images.ask("POST", path, b"{}")[0] == 405, path


def test_ids_and_outputs_are_the_clients(images: nets.Caller) -> None:
    status, found = images.get("/v2/models/image")
    name = found["outputs"][0]["name"]
    request = nets.told(drawn(nets.image, 1), id="seven", outputs=[{"name": name}])
    status, answer = images.post(request)
    assert (status, answer["id"], answer["model_name"]) == (200, "seven", "image")
    assert [o["name"] for o in answer["outputs"]] == [name]


def test_nested_lists_are_taken(images: nets.Caller) -> None:
    feed = drawn(nets.image, 2)
    request = nets.told(feed)
    flat = images.post(request)[1]["outputs"]
    request["inputs"][0]["data"] = feed["x"].tolist()
    assert images.post(request)[1]["outputs"] == flat


LINE = re.compile(
    r"# (HELP|TYPE) \w+ .+|\w+(\{\w+=\"[^\"]+\"\})? [-+0-9.e]+|\w+_bucket\{le=\"\+Inf\"\} \d+"
)


def test_metrics_are_prometheus_text(images: nets.Caller) -> None:
    images.infer(drawn(nets.image, 1))
    text = images.ask("GET", "/metrics")[1].decode()
    assert all(LINE.fullmatch(line) for line in text.splitlines()) and text.endswith("\n")
    assert images.metric('fluidjax_answers_total{code="200"}') >= 1
    assert images.metric("process_resident_memory_bytes") > 1e7
    parser = pytest.importorskip("prometheus_client.parser", reason="Prometheus's own reader")
    families = {f.name: f for f in parser.text_string_to_metric_families(text)}
    assert families["fluidjax_request_seconds"].type == "histogram"
    assert families["fluidjax_answers"].type == "counter"


def test_executables_are_bounded(tmp_path: Path) -> None:
    """Inputs in ever other sizes: what was not used for longest is dropped, and comes again."""
    folder = nets.saved(tmp_path / "net", nets.open_sizes)
    direct = nets.Direct(folder)
    settings = Settings(batch_sizes=(2,), executables=3)
    app = Application(str(folder), settings, {"x": [1, 3, 4, 4]})
    app.load()
    try:
        for side in (4, 5, 6, 7, 8, 4, 9):
            x = DRAWN.rand(2, 3, side, side).astype("float32")
            (got,) = app.model.run([{"x": x}])
            np.testing.assert_allclose(
                *(np.asarray(v) for v in (*got.values(), *direct({"x": x}))), rtol=1e-5
            )
        assert app.model.compiled == 7  # 4 comes twice
    finally:
        app.end()


@pytest.mark.parametrize(
    "wrong", [{"threads": 0}, {"wait": -1.0}, {"body": 0}, {"executables": 0}, {"name": "a/b"}]
)
def test_settings_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(FluidValueError):
        Settings(**wrong)
