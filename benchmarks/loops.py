"""Loops: what an iteration costs that Python drives, how long a recurrent net compiles, what a
differentiated loop takes.

All by CPU time, so that other work on the machine does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import fluidjax as fluid
from fluidjax import layers

from .page import Table, shown

WIDTH = 32


def _seconds(run: Callable[[], Any]) -> float:
    begin = time.process_time()
    run()
    return time.process_time() - begin


def driven() -> float:
    """CPU seconds of an iteration of a loop that Python drives, its one small segment included."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, n = fluid.data("x", [2], "float32"), fluid.data("n", [1], "int64")
        array, i = (
            layers.array_write(x, layers.fill_constant([1], "int64", 0)),
            layers.fill_constant([1], "int64", 0),
        )
        # the data say where, so it cannot be traced
        place = layers.cast(layers.reduce_sum(x * 0.0), "int64")
        going = layers.less_than(i, n)
        with layers.While(going).block():
            layers.array_write(layers.array_read(array, place) * 1.5 + x, place, array=array)
            layers.increment(i)
            layers.less_than(i, n, cond=going)
        out, exe = layers.array_read(array, place), fluid.Executor()

        def run(count: int) -> Callable[[], Any]:
            return lambda: exe.run(
                feed={"x": np.zeros(2, "float32"), "n": np.array([count])}, fetch_list=[out]
            )

        run(3)()
        few, many = (min(_seconds(run(count)) for _ in range(5)) for count in (10, 1010))
        return (many - few) / 1000


def recurrent(steps: int) -> float:
    """CPU seconds of the first training step of a StaticRNN over so many steps, compiled anew."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [steps, 4, WIDTH], "float32")
        rnn = layers.StaticRNN()
        with rnn.step():
            word, before = (
                rnn.step_input(x),
                rnn.memory(
                    shape=[-1, WIDTH], batch_ref=x, init_batch_dim_idx=0, ref_batch_dim_idx=1
                ),
            )
            now = layers.fc([word, before], WIDTH, act="tanh")
            rnn.update_memory(before, now)
            rnn.step_output(now)
        loss = layers.reduce_mean(rnn())
        fluid.optimizer.SGD(0.1).minimize(loss)
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        return _seconds(
            lambda: exe.run(feed={"x": np.ones((steps, 4, WIDTH), "float32")}, fetch_list=[loss])
        )


def differentiated(count: int) -> tuple[float, int]:
    """A While of so many iterations with its gradient: CPU seconds of a step, and the bytes that
    XLA keeps meanwhile.
    """
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [64, WIDTH], "float32")
        w = layers.create_parameter([WIDTH, WIDTH], "float32", name="w")
        n = layers.fill_constant([1], "int64", count)
        _, y = layers.while_loop(
            lambda i, y: layers.less_than(i, n), lambda i, y: [i + 1, layers.tanh(layers.matmul(y, w))],
            [layers.fill_constant([1], "int64", 0), x * 1.0],
        )  # fmt: skip
        loss = layers.reduce_mean(y)
        fluid.optimizer.SGD(0.1).minimize(loss)
        main, exe, feed = (
            fluid.default_main_program(),
            fluid.Executor(),
            {"x": np.ones((64, WIDTH), "float32")},
        )
        exe.run(fluid.default_startup_program())
        exe.run(main, feed=feed, fetch_list=[loss])
        seconds = min(
            _seconds(lambda: exe.run(main, feed=feed, fetch_list=[loss])) for _ in range(5)
        )
        (compiled,) = exe.compiled_steps(main)
        args = (*compiled.buffers.arrays, feed, 0, 0)  # type: ignore[union-attr]
        import jax

        with jax.enable_x64(True):
            memory = compiled.function().lower(*args).compile().memory_analysis()
        return seconds, memory.temp_size_in_bytes


def _rows() -> Iterator[list[str]]:
    """What, how long, and what XLA keeps meanwhile."""
    yield ["an iteration that Python drives, its segment included", f"{driven() * 1e6:.0f} µs", ""]
    recurrent(3)  # so that nothing of a first call counts
    for steps in (10, 100, 1000):
        yield [
            f"first step of a StaticRNN (width {WIDTH}) over {steps:,} steps, compilation included",
            f"{recurrent(steps):.2f} s",
            "",
        ]
    for count in (250, 500, 1000):
        seconds, held = differentiated(count)
        product = f"a product [64, {WIDTH}] x [{WIDTH}, {WIDTH}]"
        yield [
            f"a step of a While of {count:,} iterations of {product}, with gradient",
            f"{seconds * 1e3:.1f} ms",
            f"{held / 1e6:.2f} MB",
        ]


def table() -> list[Table]:
    """The rows as a table."""
    return [
        shown(
            "loops",
            "Loops",
            ["of", "CPU time of all threads", "kept meanwhile"],
            _rows(),
            widths=[96, 26, 18],
        )
    ]
