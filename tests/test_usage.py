"""The names that real scripts use most of those that were missing once: each is there, or says what to use instead.

A name that Paddle 1.8.5 has too is there, but for those in BUILDS.
"""

from __future__ import annotations

import csv
import importlib
from pathlib import Path

import pytest

import fluidjax.paddle
from fluidjax.errors import FluidError

pytestmark = pytest.mark.once

ROWS = list(csv.reader(row for row in (Path(__file__).parent / "data" / "usage.csv").read_text().splitlines() if not row.startswith("#")))
# What 1.8.5 imports, but only Paddle's own builds for Baidu's servers, or for GPUs with NCCL, can run.
BUILDS = {"incubate.fleet.parameter_server.pslib", "optimizer.DGCMomentumOptimizer"}


def found(name):
    """What a dotted name gives, by attribute as in a script, and by import where a script needs one."""
    head, *rest = name.split(".")
    path, value = head, importlib.import_module(head)
    for part in rest:
        path = f"{path}.{part}"
        try:
            value = getattr(value, part)
        except AttributeError as error:
            if isinstance(value, type):
                value = getattr(object.__new__(value), part)  # an instance's
            elif isinstance(error, FluidError):
                raise
            else:
                value = importlib.import_module(path)
    return value


def full(name):
    return name if name.startswith(("paddle.", "fluidjax.")) else f"paddle.fluid.{name}"


def test_each_is_there_or_says_what_to_use():
    fluidjax.paddle.install()
    try:
        there, silent = set(), []
        for name, _, _, instead in ROWS:
            try:
                assert found(full(name)) is not None
                there.add(name)
            except (AttributeError, ImportError) as error:
                if not instead or instead.removeprefix("paddle.").removeprefix("fluid.").split(".")[-1] not in str(error):
                    silent.append((name, str(error)))
            assert not instead or found(instead) is not None
    finally:
        fluidjax.paddle.uninstall()
    assert not silent
    lost = {name for name, _, real, _ in ROWS if real == "yes"} - there
    assert lost <= {f"paddle.fluid.{name}" for name in BUILDS}
    assert len(ROWS) == 204 and len(there) >= 173
