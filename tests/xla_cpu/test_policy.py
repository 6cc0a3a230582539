"""Tuning for XLA:CPU is behind one entry, and the package works the same without it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

import fluidjax as fluid
from fluidjax import layers
from fluidjax.ops.target import PLAIN
from fluidjax.xla_cpu.options import ALONE, FUSED, IN_LIBRARY, ORDINARY, known
from fluidjax.xla_cpu.policy import FLAG, choose
from tests.nets import fresh
from tests.test_layers_of_imports import every_import, modules

Net = Callable[[int], fluid.Variable]
HOME = "fluidjax.xla_cpu"
ROOT = Path(__file__).parents[2]
# of everything that a step does: nets, checks, shapes, memory, ranks, threads
PART = (
    "tests/runtime/test_prepared.py", "tests/lower/test_checks.py",
    "tests/lower/test_reshape_in_place.py",
)  # fmt: skip


@pytest.fixture
def untuned() -> object:
    fluid.set_flags({FLAG: False})
    yield
    fluid.set_flags({FLAG: True})


def test_nothing_else_imports_its_modules() -> None:
    found = {
        (module, found.target)
        for module in modules()
        if not module.startswith(HOME)
        for found in every_import(module)
        if found.target.startswith(HOME) and found.target != f"{HOME}.policy"
    }
    assert found == set()


def test_off_it_leaves_all_to_xla(untuned: object) -> None:
    policy = choose("cpu")
    assert policy.target == PLAIN and policy.options() is None
    assert policy.options(memory=True)  # which the program asks for


@pytest.mark.parametrize("given", [ORDINARY, FUSED, IN_LIBRARY, ALONE])
def test_the_library_gets_no_convolutions(given: Mapping[str, Any]) -> None:
    """The output and both gradients are XLA's own kernels, none of them part of a fusion."""

    def products(x: Any, w: Any) -> Any:
        y, pull = jax.vjp(lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "VALID"), x, w)
        return y, pull(y)

    lowered = jax.jit(products).lower(np.ones((64, 6, 12, 12)), np.ones((16, 6, 5, 5)))
    text = lowered.compile(compiler_options=known(given)).as_text()
    assert text[text.index("\nENTRY ") :].count(" convolution(") == 3


def losses(count: int = 3) -> list[float]:
    with fresh(7) as (main, startup):
        image = fluid.data("image", [4, 8, 9, 9])
        h = layers.conv2d(image, 8, 3, groups=4, act="relu")  # in columns
        h = layers.batch_norm(layers.conv2d(h, 8, 3, groups=8))  # as taps
        h = layers.conv2d(h, 16, 1)  # a product for each sample
        loss = layers.reduce_mean(layers.square(layers.fc(h, 3)))
        fluid.optimizer.Momentum(0.05, 0.9).minimize(loss)
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    feed = {"image": np.random.default_rng(0).standard_normal((4, 8, 9, 9), np.float32)}
    return [float(exe.run(main, feed, [loss], scope=scope)[0]) for _ in range(count)]


def test_it_changes_no_more_than_rounding() -> None:
    tuned = losses()
    fluid.set_flags({FLAG: False})
    try:
        plain = losses()
    finally:
        fluid.set_flags({FLAG: True})
    np.testing.assert_allclose(tuned, plain, rtol=1e-4)


def dense(width: int) -> fluid.Variable:
    return layers.fc(layers.fc(fluid.data("x", [None, width]), width, act="relu"), 10)


def convolutional(width: int) -> fluid.Variable:
    return layers.fc(layers.conv2d(fluid.data("x", [None, 1, width, width]), 16, 3), 10)


def of_sequences(width: int) -> fluid.Variable:
    return layers.fc(layers.sequence_pool(fluid.data("x", [None, width], lod_level=1), "sum"), 10)


def looping(width: int) -> fluid.Variable:
    x = fluid.data("x", [None, width])

    def once(i: fluid.Variable, h: fluid.Variable) -> list[fluid.Variable]:
        return [layers.increment(i, in_place=False), layers.fc(h, width)]

    start = [layers.fill_constant([1], "int64", 0), x]
    return layers.while_loop(lambda i, h: layers.less_than(i, start[0]), once, start)[1]


@pytest.mark.parametrize(
    ("net", "width", "fused"),
    [(dense, 9000, True), (dense, 30, False), (convolutional, 900, False),
     (of_sequences, 9000, False), (looping, 9000, False)],
)  # fmt: skip
def test_products_and_large_loops_alone_are_fused(net: Net, width: int, fused: bool) -> None:
    with fresh() as (main, _):
        net(width)
    fitted = choose("cpu").fitted(main.desc, main.desc.blocks[0].ops, 64)
    assert (FUSED.items() <= fitted.given.items()) is fused


@pytest.mark.slow
def test_a_part_of_the_suite_passes_without_it() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *PART],
        env={**os.environ, FLAG: "0"},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0 and " passed" in run.stdout, run.stdout[-3000:]
