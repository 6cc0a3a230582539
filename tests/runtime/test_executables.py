"""A bound on the executables that a step keeps: which are dropped, that they are gone, and that
nothing else changes.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import FluidValueError

from ..nets import fresh

core = fluid.core


@pytest.fixture
def predictor(tmp_path: Path) -> Any:
    """Keeps two executables; every batch runs as it is."""
    with fresh(1) as (main, startup):
        x = fluid.data("x", [None, 4])
        y = layers.fc(x, 3, act="tanh")
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        fluid.io.save_inference_model(str(tmp_path), ["x"], [y], exe, main)
    config = core.AnalysisConfig(str(tmp_path))
    config.set_batch_sizes(None)
    config.set_max_executables(2)
    return core.create_paddle_predictor(config)


@pytest.fixture
def flags() -> Iterator[None]:
    before = fluid.get_flags("FLAGS_max_executables")
    yield
    fluid.set_flags(before)


def run(predictor: Any, rows: int) -> np.ndarray:
    x = np.arange(4 * rows, dtype=np.float32).reshape(rows, 4) / 9
    return predictor.run([core.PaddleTensor(x)])[0].as_ndarray()


def sizes(predictor: Any) -> list[str]:
    return [made.feed["x"].removeprefix("float32") for made in predictor.compilations()]


def test_what_was_not_used_for_longest_is_dropped(predictor: Any) -> None:
    first = run(predictor, 1)
    run(predictor, 2)
    for _ in range(3):  # in a prepared run too
        np.testing.assert_array_equal(run(predictor, 1), first)
    run(predictor, 3)
    assert sizes(predictor) == ["[1, 4]", "[2, 4]", "[3, 4]"]
    np.testing.assert_array_equal(run(predictor, 1), first)
    run(predictor.clone(), 3)
    assert len(sizes(predictor)) == 3
    np.testing.assert_allclose(run(predictor, 2)[:1], first, rtol=1e-6)  # of another size
    assert sizes(predictor)[3:] == ["[2, 4]"]
    assert "more executables were made than are kept" in predictor.compilations()[-1].reason


@pytest.mark.slow
def test_what_is_dropped_is_gone(predictor: Any) -> None:
    live = jax.devices("cpu")[0].client.live_executables
    run(predictor, 1), run(predictor, 2)
    gc.collect()
    before = len(live())
    for rows in (3, 4, 5, 6, 7):
        run(predictor, rows)
        run(predictor, rows)
    gc.collect()
    assert len(live()) <= before


def test_a_training_goes_on_through_what_is_dropped(flags: None) -> None:
    losses = []
    for most in (512, 1):
        fluid.set_flags({"FLAGS_max_executables": most})
        with fresh(3) as (main, startup):
            x = fluid.data("x", [None, 3])
            loss = layers.mean(layers.square(layers.fc(layers.dropout(x, 0.2), 2)))
            fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
        exe, scope = fluid.Executor(), fluid.Scope()
        exe.run(startup, scope=scope)
        feeds = [{"x": np.full((1 + i % 3, 3), i, np.float32)} for i in (0, 0, 0, 1, 2, 0, 0, 3)]
        losses.append([exe.run(main, f, [loss], scope=scope)[0].item() for f in feeds])
        assert len(exe.compilations(main)) == (3 if most > 1 else 4)
    assert losses[0] == losses[1]


@pytest.mark.parametrize("count", [0, -1, 1.5, True, None])
def test_the_bound_is_a_positive_integer(count: Any) -> None:
    config = core.AnalysisConfig("folder")
    with pytest.raises(FluidValueError, match="takes a positive integer, not"):
        config.set_max_executables(count)
    assert config.max_executables() == 128
