"""Every test here is marked gpu. Where run.sh started them each outcome is written as a line of
JSON, as it comes.

run.sh leaves the conftest.py of all tests out, which would have everything run on the CPU, compiled
with little effort.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

from fluidjax.ops import ring

RESULTS = os.environ.get("GPU_RESULTS")
REHEARSED = 40  # of so many samples of ops one is taken in a rehearsal


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "gpu: needs a GPU that JAX sees; skipped where there is none"
    )


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.gpu)


@pytest.fixture(autouse=True)
def exact() -> Iterator[None]:
    """Products and convolutions in float32, not in the TF32 that JAX takes on a GPU by default; and
    a ring of one rank for collectives.
    """
    with jax.default_matmul_precision("highest"), ring.bound(ring.Ring(None, 1)):
        yield


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if (
        RESULTS is None
        or "PYTEST_XDIST_WORKER" in os.environ
        or (report.when != "call" and report.passed)
    ):
        return
    from benchmarks.gpu.records import Records

    found = {
        "outcome": report.outcome,
        "test": report.nodeid.rpartition("/")[2],
        "s": report.duration,
    }
    if report.failed:
        found["where"] = report.longreprtext.splitlines()[-25:]
    if report.user_properties:
        found |= json.loads(json.dumps(dict(report.user_properties), default=float))
    Records(Path(RESULTS)).add("tests", found)
