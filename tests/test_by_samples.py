"""Predictions of large images run some samples at a time, where each sample's result is its own."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.lower import by_samples
from fluidjax.lower.layout import predicting
from fluidjax.lower.step import Step

from .nets import fresh

FEED = np.random.default_rng(0).standard_normal((6, 3, 8, 8)).astype("float32")


def alone(h: Any) -> Any:
    return layers.fc(layers.reduce_mean(layers.softmax(h, axis=1), dim=[2, 3]), 5)


def over_samples(h: Any) -> Any:
    return layers.fc(layers.reduce_mean(layers.softmax(h, axis=0), dim=[2, 3]), 5)


def less_their_mean(h: Any) -> Any:
    return layers.elementwise_sub(h, layers.reduce_mean(h, dim=[0], keep_dim=True))


def two_of_one(h: Any) -> Any:
    return layers.reshape(h, [-1, 8, 16])


def net(build: Any) -> tuple[fluid.Program, fluid.Program, Any]:
    with fresh(3) as (main, startup):
        h = layers.relu(
            layers.batch_norm(
                layers.conv2d(fluid.data("x", [None, 3, 8, 8]), 4, 3, padding=1), is_test=True
            )
        )
        return main, startup, build(h)


@pytest.mark.parametrize(
    ("build", "own"),
    [(alone, True), (over_samples, False), (less_their_mean, False), (two_of_one, False)],
)
def test_only_steps_that_keep_samples_apart_are_cut(
    monkeypatch: pytest.MonkeyPatch, build: Any, own: bool
) -> None:
    """And give what the whole batch gives."""
    main, startup, out = net(build)
    found, asked = [], []
    for large in (by_samples.LARGE, 1):
        monkeypatch.setattr(by_samples, "LARGE", large)
        monkeypatch.setattr(by_samples, "WORTH", large)
        monkeypatch.setattr(by_samples, "cores", lambda: 4)
        monkeypatch.setattr(by_samples, "lax", Counting(asked))
        exe, scope = fluid.Executor(), fluid.Scope()
        exe.run(startup, scope=scope)
        found += exe.run(main, feed={"x": FEED}, fetch_list=[out], scope=scope)
    # blocks: of three, which divides six and is no more than the cores
    assert asked == ([2] if own else [])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-6)


class Counting:
    """jax.lax, and how many blocks were asked for."""

    def __init__(self, asked: list[int]) -> None:
        self.asked = asked

    def map(self, run: Any, parts: dict[str, Any]) -> Any:
        self.asked.append(len(parts["x"]))
        return jax.lax.map(run, parts)


def test_the_largest_value_of_a_sample_decides() -> None:
    main, _, out = net(alone)
    step = predicting(Step(main.desc, (out.name,), channels_last=True))
    vars = main.desc.blocks[0].vars
    state = {n: jax.numpy.zeros(vars[n].shape, vars[n].dtype) for n in step.reads}
    # four channels of 8x8 float32
    assert by_samples.largest_value(step, state, {"x": jax.numpy.asarray(FEED)}) == 4 * 8 * 8 * 4
