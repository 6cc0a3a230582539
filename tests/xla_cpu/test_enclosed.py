"""Within loops and branches convolutions have the one form that XLA:CPU is quick with; XLA itself
turns only those outside.
"""

from __future__ import annotations

import re

import jax
import numpy as np

import fluidjax as fluid
from fluidjax import layers

FORM = re.compile(r"dim_numbers = (\[.*?\]x\[.*?\])->")
NATIVE, PLAIN = "[b, 0, 1, f]x[0, 1, i, o]", "[b, f, 0, 1]x[o, i, 0, 1]"
FEED = np.random.default_rng(0).standard_normal((3, 8, 2, 12, 12)).astype("float32")


def convolved(state: fluid.Variable, step: fluid.Variable) -> fluid.Variable:
    weight = fluid.ParamAttr("w", initializer=fluid.initializer.Constant(0.3))
    return layers.elementwise_add(
        layers.conv2d(state, 2, 3, padding=1, param_attr=weight, bias_attr=False, act="tanh"), step
    )


def program(in_loop: bool) -> tuple[fluid.Program, fluid.Program, str]:
    """Three convolutions one after another, by a StaticRNN or written out; trained."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x = fluid.data("x", FEED.shape)
        if in_loop:
            rnn = layers.StaticRNN()
            with rnn.step():
                step = rnn.step_input(x)
                state = rnn.memory(shape=[-1, 2, 12, 12], batch_ref=step)
                new = convolved(state, step)
                rnn.update_memory(state, new)
                rnn.step_output(new)
            last = layers.slice(rnn(), [0], [2], [3])
        else:
            state = layers.slice(x, [0], [0], [1])
            state = layers.reshape(layers.scale(state, 0.0), [8, 2, 12, 12])
            for i in range(3):
                state = convolved(
                    state, layers.reshape(layers.slice(x, [0], [i], [i + 1]), [8, 2, 12, 12])
                )
            last = state
        loss = layers.mean(layers.square(last))
        fluid.optimizer.SGD(0.1).minimize(loss)
    return main, startup, loss.name


def forms(main: fluid.Program, startup: fluid.Program, loss: str) -> set[str]:
    state = fluid.init_fn(startup)(jax.random.key(0))
    return set(
        FORM.findall(
            jax.jit(fluid.step_fn(main, [loss]))
            .lower(state, {"x": FEED}, jax.random.key(0))
            .as_text()
        )
    )


def test_only_what_a_loop_holds_is_turned() -> None:
    assert forms(*program(True)) == {NATIVE}
    assert PLAIN in forms(*program(False))


def test_a_loop_trains_as_what_it_stands_for() -> None:
    found = []
    for in_loop in (True, False):
        main, startup, loss = program(in_loop)
        exe, scope = fluid.Executor(), fluid.Scope()
        exe.run(startup, scope=scope)
        found.append(
            [exe.run(main, feed={"x": FEED}, fetch_list=[loss, "w"], scope=scope) for _ in range(2)]
        )
    for looped, written in zip(*found, strict=True):
        for a, b in zip(looped, written, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-6)


def test_steps_in_a_row_are_a_loop() -> None:
    main, startup, loss = program(False)
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    feed = {"x": FEED}
    alone = [exe.run(main, feed=feed, fetch_list=[loss], scope=scope)[0] for _ in range(2)]
    exe.run(startup, scope=scope)
    together = exe.run_steps(main, {"x": np.stack([FEED] * 2)}, [loss], scope)[0]
    np.testing.assert_allclose(np.ravel(together), np.ravel(alone), rtol=2e-6)
