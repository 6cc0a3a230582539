"""Jobs whose processes a shell starts, each role by itself: `fluidjax run` is all that is new, and
nobody from outside disturbs them.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluidjax.dist.jobs.children import free_ports
from tests import forked

SCRIPT = Path(__file__).parent / "classic_script.py"
STEPS = 3
STRANGERS = [
    b"",
    b"GET / HTTP/1.1\r\n\r\n",
    b'{"failed": "all is over"}\n',
    b'{"proof": "',
    b"\xff" * 200_000,
    b"\x00\x00\x00\x7f" * 9,
]


def started(
    envs: Sequence[Mapping[str, str]], words: Sequence[Sequence[str]] = ()
) -> list[forked.Popen]:
    """A process for each of these environments (and arguments of the script)."""
    clean = {k: v for k, v in os.environ.items() if "PADDLE" not in k} | {
        "JAX_PLATFORMS": "cpu",
        "STEPS": str(STEPS),
    }
    command = [sys.executable, "-m", "fluidjax", "run", str(SCRIPT)]
    pipe = {"text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return [
        forked.Popen([*command, *w], env=clean | e, **pipe)
        for e, w in zip(envs, words or [()] * len(envs), strict=True)
    ]


def ended(running: Sequence[forked.Popen]) -> list[str]:
    """The last line of each, which all must have come to their end."""
    try:
        results = [(*p.communicate(timeout=120), p.returncode) for p in running]
    finally:
        for p in running:
            p.kill()
    assert [code for _, _, code in results] == [0] * len(results), results
    return [out.splitlines()[-1] for out, _, _ in results]


def by_arguments(mode: str, ports: Sequence[int], steps: int = STEPS) -> list[list[str]]:
    """Two trainers, then two pservers on two addresses of this machine."""
    endpoints = [f"127.0.0.{k + 1}:{ports[0]}" for k in range(2)]
    common = [
        "--endpoints",
        ",".join(endpoints),
        "--trainers",
        "2",
        "--mode",
        mode,
        "--steps",
        str(steps),
    ]
    trainers = [[*common, "--role", "trainer", "--trainer_id", str(k)] for k in range(2)]
    return [
        *trainers,
        *([*common, "--role", "pserver", "--current_endpoint", e] for e in endpoints),
    ]


def expected(steps: int = STEPS) -> str:
    """What both trainers have when gradients are averaged, by NumPy."""
    w, velocity = np.full((4, 1), 0.5), np.zeros((4, 1))
    draws = [np.random.RandomState(k) for k in range(2)]
    for _ in range(steps):
        xs = [d.rand(8, 4).astype("float32").astype("float64") for d in draws]
        grad = sum(2 * x.T @ (x @ w - x.sum(1, keepdims=True)) / 8 for x in xs) / 2
        velocity = 0.9 * velocity + grad
        w = w - 0.05 * velocity
    return "trained " + " ".join(f"{v:.5f}" for v in w.ravel())


def assert_trained(lines: Sequence[str]) -> None:
    values = [np.array([float(v) for v in line.split()[1:]]) for line in lines]
    want = np.array([float(v) for v in expected().split()[1:]])
    for got in values:
        np.testing.assert_allclose(got, want, atol=2e-5)


@pytest.mark.parametrize("mode", ["sync", "async", "geo"])
def test_roles_by_arguments(mode: str) -> None:
    words = by_arguments(mode, free_ports(1))
    *trained, one, two = ended(started([{}] * 4, words))
    assert [one.split(":")[0], two.split(":")[0]] == ["served 127.0.0.1", "served 127.0.0.2"]
    if mode == "sync":
        assert_trained(trained)
    assert all(
        line.startswith("trained ") and "nan" not in line and "0.50000" not in line
        for line in trained
    )


def test_roles_by_variables() -> None:
    (port,) = free_ports(1)
    servers = [f"127.0.0.1:{port}"]
    common = {
        "KIND": "by_variables",
        "PADDLE_PSERVER_ENDPOINTS": ",".join(servers),
        "PADDLE_TRAINERS_NUM": "2",
    }
    trainers = [
        common | {"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": str(k)} for k in range(2)
    ]
    *trained, served = ended(
        started(
            [
                *trainers,
                common | {"TRAINING_ROLE": "PSERVER", "PADDLE_CURRENT_ENDPOINT": servers[0]},
            ]
        )
    )
    assert served == f"served {servers[0]}"
    assert_trained(trained)


@pytest.mark.parametrize("kind", ["by_nccl2", "by_collective"])
def test_trainers_alone(kind: str) -> None:
    listed = [f"127.0.0.1:{port}" for port in free_ports(2)]
    common = {
        "KIND": kind,
        "PADDLE_TRAINER_ENDPOINTS": ",".join(listed),
        "PADDLE_TRAINERS_NUM": "2",
    }
    trained = ended(
        started(
            [
                common | {"PADDLE_TRAINER_ID": str(k), "PADDLE_CURRENT_ENDPOINT": listed[k]}
                for k in range(2)
            ]
        )
    )
    assert_trained(trained)


def test_a_fleet_whose_roles_the_user_tells() -> None:
    servers = ",".join(f"127.0.0.1:{port}" for port in free_ports(2))
    roles = [("worker", 0), ("worker", 1), ("server", 0), ("server", 1)]
    *trained, one, two = ended(
        started(
            [
                {"KIND": "by_fleet", "SERVERS": servers, "ROLE": r, "NUMBER": str(k)}
                for r, k in roles
            ]
        )
    )
    assert (one, two) == ("served 0", "served 1")
    assert_trained(trained)


def listening(pid: int) -> set[str]:
    """The addresses on which a process listens, as /proc has them."""
    sockets = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            sockets.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
    rows = [
        line.split()
        for kind in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()[1:]
    ]
    return {_address(row[1]) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets}


def _address(text: str) -> str:
    host = bytes.fromhex(text.partition(":")[0])
    words = b"".join(host[i : i + 4][::-1] for i in range(0, len(host), 4))
    if words[:-4] in (b"", bytes(10) + b"\xff" * 2):
        return socket.inet_ntop(socket.AF_INET, words[-4:])
    return socket.inet_ntop(socket.AF_INET6, words)


def test_strangers_while_a_job_runs() -> None:
    """They come by the hundred, say nothing, half a message or rubbish, and the job ends as if
    nobody had come. All of its ports are on the loopback, but for Gloo's, which is on the address
    that this machine's name has."""
    (port,) = free_ports(1)
    running = started([{}] * 4, by_arguments("sync", [port], steps=400))
    pids = [p.pid for p in running]
    came: list[Any] = []
    found: set[str] = set()
    deadline = time.monotonic() + 100
    while all(p.poll() is None for p in running[:2]) and time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            for _ in range(10):
                came.append(socket.create_connection(("127.0.0.1", port), timeout=5))
                came[-1].sendall(STRANGERS[len(came) % len(STRANGERS)])
        for pid in pids:
            with contextlib.suppress(OSError):
                found |= listening(pid)
        for sock in came[:-200]:
            sock.close()
    lines = ended(running)
    for sock in came:
        sock.close()
    assert len(came) > 20 and lines[0] == lines[1]
    np.testing.assert_allclose(
        [float(v) for v in lines[0].split()[1:]],
        [float(v) for v in expected(400).split()[1:]],
        atol=1e-3,
    )
    assert found and {a for a in found if not a.startswith("127.")} <= {
        socket.gethostbyname(socket.gethostname())
    }, found


def test_a_script_that_fails_ends_the_others() -> None:
    """`fluidjax run` tells them why."""
    running = started([{}, {"FAIL": "1"}, {}, {}], by_arguments("sync", free_ports(1)))
    results = [(*p.communicate(timeout=120), p.returncode) for p in running]
    # a step that is cut off may raise, too
    assert results[1][2] == 1 and all(code for _, _, code in results), results
    why = "because trainer 1 failed: ValueError: out of data"
    assert all(f"ends {why}" in results[k][1] for k in (0, 2, 3)), results
