"""What Executor.run adds to the bare jitted call, and what many small state arrays cost."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

import fluidjax as fluid
from fluidjax import layers

from . import fluid_models
from .page import Table, shown
from .timing import Paired, interleaved


def fit_a_line(budget: float = 4.0) -> Paired:
    """Executor.run against the very function that it calls, on fit-a-line (batch 20)."""
    rng = np.random.default_rng(0)
    feed = {
        "x": rng.standard_normal((20, 13), dtype=np.float32),
        "y": rng.standard_normal((20, 1), dtype=np.float32),
    }
    main, startup, loss = fluid_models.build(fluid_models.fit_a_line, fluid.optimizer.SGD(0.01))
    return _against_bare(main, startup, loss, feed, budget)


def small_arrays(count: int = 1000, size: int = 8) -> Paired:
    """A step whose state is `count` small arrays: Executor.run, against one whose state is a single
    array.
    """
    feed = {"x": np.ones((1, size), np.float32)}

    def program(number: int, width: int) -> Any:
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            x = fluid.data("x", [1, size])
            for i in range(number):
                value = layers.create_global_var(
                    [width], 0.0, "float32", persistable=True, name=f"v{i}"
                )
                main.global_block().append_op(
                    type="scale", inputs={"X": value}, outputs={"Out": value}, attrs={"bias": 1.0}
                )
            loss = layers.reduce_sum(x)
        return main, startup, loss

    runs = [_runner(*program(*shape), feed) for shape in ((count, size), (1, count * size))]
    return interleaved(runs[0], runs[1], jax.block_until_ready, turns=21, budget=4.0)


def table() -> list[Table]:
    """Both: a call of fit-a-line, and one with many arrays."""
    parts = {
        "fit-a-line: Executor.run, the bare jitted call": fit_a_line,
        "1,000 small state arrays, one of the same size": small_arrays,
    }
    measured = ((name, measure()) for name, measure in parts.items())
    rows = (
        [name, *(f"{us * 1e6:.1f}" for us in (t.ours, t.theirs, t.ours - t.theirs))]
        for name, t in measured
    )
    title = "A call, µs: medians of interleaved turns"
    return [
        shown("a call", title, ["of", "first", "second", "added"], rows, widths=[52, 10, 10, 10])
    ]


def _runner(main: Any, startup: Any, loss: Any, feed: Any) -> Any:
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    return lambda: exe.run(main, feed=feed, fetch_list=[loss], scope=scope, return_numpy=False)[0]


def _against_bare(main: Any, startup: Any, loss: Any, feed: Any, budget: float) -> Paired:
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)

    def ours() -> Any:
        return exe.run(main, feed=feed, fetch_list=[loss], scope=scope, return_numpy=False)[0]

    ours()
    (compiled,) = exe.compiled_steps(main)
    step = compiled.function()
    buffers = compiled.bind(scope)

    def bare() -> Any:
        result = step(*buffers.arrays, feed, 0, 0)
        buffers.cell[:] = [result]
        return result[2][0]

    with jax.enable_x64(True):
        return interleaved(ours, bare, jax.block_until_ready, turns=31, budget=budget)
