"""``fluidjax serve`` as a process: where it listens, and how it ends."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("uvicorn", reason="serving needs fluidjax[serve]")
pytest.importorskip("orjson", reason="serving needs fluidjax[serve]")

from benchmarks import serving as benchmark
from fluidjax.cli import main

from . import nets

GOOD = {"x": np.ones((1, 4), "float32")}


@pytest.mark.slow
def test_it_ends_when_what_runs_is_answered(tmp_path: Path) -> None:
    folder = nets.saved(tmp_path / "net", lambda: ([x := nets.fluid.data("x", [None, 4])], [nets.layers.fc(x, 2)]))  # fmt: skip
    with nets.process(str(folder), "--wait", "3000", "--batch-sizes", "4") as (made, caller, line):
        assert line.startswith("serving net on http://127.0.0.1:")
        found: list[tuple[int, Any]] = []
        thread = threading.Thread(target=lambda: found.append(caller.post(nets.told(GOOD))))
        thread.start()  # it waits for others for three seconds
        while not caller.metric("fluidjax_running_requests"):
            time.sleep(0.02)
        made.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        status, answer = caller.post(nets.told(GOOD))
        assert (status, answer) == (503, {"error": "the server is ending"})
        assert caller.get("/v2/health/ready")[0] == 503
        assert caller.get("/v2/health/live")[0] == 200
        thread.join(30)
        assert found[0][0] == 200
        assert made.wait(30) == 0
        assert made.stderr is not None and made.stderr.read() == ""
        with pytest.raises(ConnectionError):
            caller.get("/v2")


@pytest.mark.slow
def test_another_host_is_told_of(tmp_path: Path) -> None:
    folder = nets.saved(tmp_path / "net", nets.centred)
    with nets.process(str(folder), "--host", "0.0.0.0", "--name", "mine") as (made, caller, _):
        assert caller.get("/v2/models/mine/ready")[0] == 200
        made.send_signal(signal.SIGINT)
        assert made.wait(30) == 0
        assert made.stderr is not None
        assert "0.0.0.0 is reachable from other machines" in made.stderr.read()


def test_wrong_usage_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(nets.saved(tmp_path / "net", nets.open_sizes))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for words, says in (
            ([folder, "--port", port], f"cannot listen on 127.0.0.1:{port}"),
            ([folder, "--port", "70000"], "a port is a number"),
            ([folder, "--batch-sizes", "0"], "should look like 1,2,4,8"),
            ([folder, "--port", "0", "--shape", "x=1,3,4"], "give all its sizes"),
            ([folder, "--threads", "0"], "threads is a positive number"),
            ([str(tmp_path / "none")], "none"),
        ):
            assert main(["serve", *words]) == 1
            said = capsys.readouterr().err
            assert says in said and said.count("\n") == 1, said


@pytest.mark.slow
def test_without_the_packages_a_sentence() -> None:
    code = "import sys; sys.modules['orjson'] = None\nfrom fluidjax.cli import main\nmain(['serve', 'x'])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "Traceback" not in found.stderr and "fluidjax[serve]" in found.stderr, found.stderr


@pytest.mark.slow
def test_a_short_benchmark(tmp_path: Path) -> None:
    found = benchmark.measured("LeNet", 1_200, 400)
    assert found.wrong == 0
    assert found.ends - found.begins < 32 << 20
