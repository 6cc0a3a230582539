"""``import fluidjax`` loads what a first program needs, and the rest when it is asked for; nothing
is hidden by that.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys

import pytest

import fluidjax
from tests.test_layers_of_imports import tree
from tests.test_visible_names import bound, statements

LATER = (
    "checkpoint", "cli", "compat", "demo", "dist", "memory", "paddle", "passes", "saved.model", "transpiler",
)  # fmt: skip
LIBRARIES = ("google.protobuf", "optax", "orbax", "flax", "safetensors", "onnx", "torch")
LOOK = """
import json, sys
import fluidjax
early = sorted(sys.modules)
from fluidjax import *
names = sorted(n for n in dir() if not n.startswith("_"))
loss = fluidjax.layers.mean(fluidjax.layers.fc(fluidjax.data("x", [None, 4]), 2, act="relu"))
fluidjax.optimizer.Adam(0.1).minimize(loss)
built = sorted(sys.modules)
from fluidjax.ops.catalog import REGISTRY
first = dict(dict.items(REGISTRY))
REGISTRY.complete()
changed = [k for k, d in first.items() if REGISTRY[k] is not d]
print(json.dumps([early, names, built, len(first), len(REGISTRY), changed]))
"""


@pytest.fixture(scope="module")
def seen() -> tuple[list[str], list[str], list[str], int, int, list[str]]:
    """Of a fresh process: its modules after the import, the names that a star import then binds,
    and its modules after a small net was built; how many op types it knows then, how many there
    are, and those of the first that the others have changed.
    """
    run = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=True)
    found = json.loads(run.stdout)
    return tuple(found)


@pytest.mark.slow
def test_a_first_program_waits_for_no_room_that_it_does_not_need(seen):
    heavy = (*(f"fluidjax.{m}" for m in LATER), *LIBRARIES)
    assert [m for m in seen[0] if (m + ".").startswith(tuple(h + "." for h in heavy))] == []


def test_a_small_net_waits_for_no_family_of_ops_that_it_does_not_need(seen):
    _, _, built, first, all_, changed = seen
    assert {"fluidjax.ops.rnn", "fluidjax.ops.detection", "fluidjax.ops.control"}.isdisjoint(
        built
    ) and "fluidjax.ops.math" in built
    assert 300 < first < all_ - 200
    assert not changed  # so it makes no difference when the others come


def test_a_star_import_binds_them_all(seen):
    assert set(fluidjax.__all__) <= set(seen[1])


@pytest.mark.parametrize("package", ["fluidjax", "fluidjax.dist"])
def test_names_that_come_later_are_those_that_type_checkers_read(package):
    """What stands under ``if TYPE_CHECKING`` is what the package finds on demand, and listed by
    dir().
    """
    loaded = sys.modules[package]
    later = {
        alias.asname or alias.name: node
        for block in tree(package).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "_TYPE_CHECKING"
        for node in statements(block.body)
        for alias in node.names
    }
    assert later
    for name, node in later.items():
        value = getattr(loaded, name)
        whole = node.module is None
        assert value is (
            sys.modules[f"{package}.{name}"]
            if whole
            else getattr(sys.modules[f"{package}.{node.module}"], name)
        )
        assert name in dir(loaded)


def test_all_lists_every_public_name():
    """But for the rooms that users do not reach for."""
    rooms = {"checkpoint", "compat", "contrib", "default_scope_funcs", "memory", "saved"}
    assert set(fluidjax.__all__) == {n for n in bound("fluidjax") if not n.startswith("_")} - rooms


def test_a_name_that_is_not_there_is_still_told(seen):
    with pytest.raises(AttributeError, match="release_memory"):
        fluidjax.release_memry  # noqa: B018
    with pytest.raises(AttributeError, match="LocalJobs"):
        fluidjax.dist.LocalJobs  # noqa: B018


def test_a_run_on_one_device_imports_nothing_of_jobs_and_meshes():
    script = """
import sys
import numpy as np
import fluidjax as fluid
loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 2))
fluid.optimizer.SGD(0.1).minimize(loss)
exe = fluid.Executor()
exe.run(fluid.default_startup_program())
for _ in range(2):
    exe.run(feed={"x": np.ones((3, 4), "float32")}, fetch_list=[loss])
exe.run_steps(feeds={"x": np.ones((2, 3, 4), "float32")}, fetch_list=[loss])
print([m for m in sys.modules if m.startswith("fluidjax.dist")])
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
