"""A program is compiled once for a kind of feed: by its first run, and by no later one."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers

from .nets import fresh

EVENT = "/jax/core/compile/backend_compile_duration"


@pytest.fixture
def compiles():
    """A list that grows by one with every compilation."""
    seen: list[str] = []
    listening = [True]

    def listen(event, duration, **_):
        if event == EVENT and listening:
            seen.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield seen
    listening.clear()  # there is no public way to take a listener out


@pytest.mark.parametrize("width", [4, 200])  # 200: parameters too large to be packed
def test_the_second_run_compiles_nothing(compiles, width):
    with fresh(1) as (main, startup):
        x = fluid.data("x", [None, width])
        loss = layers.mean(layers.batch_norm(layers.fc(layers.fc(x, width, act="relu"), width)))
        test = main.clone(for_test=True)
        fluid.optimizer.Adam(0.01).minimize(loss)
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    feed = {"x": np.ones((8, width), np.float32)}
    programs = (main, test)
    for program in programs:
        exe.run(program, feed, [loss], scope=scope)
    assert compiles, f"jax no longer reports {EVENT}"
    compiles.clear()
    for program in programs * 3:
        exe.run(program, feed, [loss], scope=scope)
    assert not compiles
