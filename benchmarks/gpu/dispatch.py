"""What Executor.run adds to the bare jitted call of a tiny net, and what many small arrays cost as
they are and packed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import jax
import numpy as np

import fluidjax as fluid
from fluidjax import layers

from .. import fluid_models
from .bench import UNPACKED, Fluid, Side, choose, compared, on_device, timed
from .records import Found


def bare(net: Fluid, feed: dict[str, Any]) -> Side:
    """The very function that Executor.run calls for a net that ran, called by itself."""
    (compiled,) = net.exe.compiled_steps(net.program)
    step, buffers = compiled.function(), compiled.bind(net.scope)

    def call(feed: Any) -> Any:
        with jax.enable_x64(True):
            result = step(*buffers.arrays, feed, 0, 0)
        buffers.cell[:] = [result]
        return result[2][0]

    return Side("bare call", call, feed)


def _line() -> Fluid:
    return Fluid(*_built(fluid_models.build(fluid_models.fit_a_line, fluid.optimizer.SGD(0.01))))


def _built(made: Any) -> tuple[Any, Any, list[Any]]:
    main, startup, loss = made
    return main, startup, [loss]


def tiny_net() -> Iterator[Found]:
    """Microseconds of a call, its feed on the device and in NumPy; and of one whose result is
    waited for.
    """
    rng = np.random.default_rng(0)
    hosts = {
        "x": rng.standard_normal((20, 13), dtype=np.float32),
        "y": rng.standard_normal((20, 1), dtype=np.float32),
    }
    nets = {"on the device": (_line(), on_device(hosts)), "NumPy": (_line(), hosts)}
    pairs = {}
    for name, (net, feed) in nets.items():
        ours = Side("Executor.run", net.run, feed)
        ours.prepare()
        ours.step(feed)  # a run like an earlier one
        pairs[name] = [ours, bare(net, feed), Side("fetched as NumPy", net.numpy, feed)]
    yield {}
    for name, sides in pairs.items():
        times = timed(sides, turns=choose(21, 2))
        rows = compared(times, "bare call")
        added = [
            (a - b) * 1e6 for a, b in zip(times["Executor.run"], times["bare call"], strict=True)
        ]
        yield {
            "feed": name,
            "us": {n: r["ms"] * 1e3 for n, r in rows.items()},
            "added_us": float(np.median(added)),
        }


def _many(count: int, size: int) -> tuple[Any, Any, list[Any]]:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [1, size])
        for i in range(count):
            value = layers.create_global_var([size], 0.0, "float32", persistable=True, name=f"v{i}")
            main.global_block().append_op(
                type="scale", inputs={"X": value}, outputs={"Out": value}, attrs={"bias": 1.0}
            )
        return main, startup, [layers.reduce_sum(x)]


def small_state() -> Iterator[Found]:
    """A step over many small variables: as they are, and packed into one array."""
    count, size = choose(400, 40), 64
    feed = on_device({"x": np.ones((1, size), np.float32)})
    sides = []
    for name in ("as they are", "packed"):
        side = Side(
            name,
            Fluid(*_many(count, size)).run,
            feed,
            within=UNPACKED if name == "as they are" else nullcontext,
        )
        side.prepare()
        sides.append(side)
    yield {}
    yield {"arrays": count, "elements": size, "sides": compared(timed(sides), "as they are")}
