"""How long it takes to build, clone, verify, print and prune programs of 1k, 10k and 50k ops."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import fluidjax as fluid
from fluidjax import layers
from fluidjax.ir import verify
from fluidjax.ops import infer
from fluidjax.ops.registry import lookup

from .page import Table, shown

SIZES = (1_000, 10_000, 50_000)


def _seconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def build(count: int) -> tuple[Any, Any]:
    """A chain of `count` ops (scale, relu, elementwise_add in turn) and its last variable."""
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        h = first = fluid.data("x", [None, 16])
        for i in range(count):
            h = (
                layers.scale(h, 0.5)
                if i % 3 == 0
                else layers.relu(h)
                if i % 3 == 1
                else layers.elementwise_add(h, first)
            )
    return main, h


def measure(count: int) -> dict[str, float]:
    """Seconds for each action; build_per_op in microseconds, without what shape inference itself
    takes.
    """
    build(30)  # the shape rules of these ops are inferred once and remembered
    made: list[Any] = []
    total = _seconds(lambda: made.extend(build(count)))
    main, last = made
    desc = main.desc
    result = {
        "clone": _seconds(lambda: main.clone().desc),
        "clone(for_test)": _seconds(lambda: main.clone(for_test=True).desc),
        "verify": _seconds(lambda: verify.verify(desc, lookup)),
        "print": _seconds(lambda: str(main)),
        "prune": _seconds(lambda: main._prune([last]).desc),
    }
    inference = _seconds(lambda: _infer_all(desc))
    return {"build_per_op": 1e6 * (total - inference) / count, "build": total, **result}


def table() -> list[Table]:
    """Building and rewriting large programs."""
    heads = [
        "ops",
        "build, µs an op",
        "build",
        "clone",
        "clone(for_test)",
        "verify",
        "print",
        "prune",
    ]

    def row(count: int) -> list[str]:
        each, *seconds = measure(count).values()
        return [f"{count:,}", f"{each:.1f}", *(f"{s:.3f}" for s in seconds)]

    title = "Programs of many ops, seconds; building an op without the inference of its shapes"
    return [shown("programs", title, heads, map(row, SIZES), widths=[10, *[17] * 7])]


def _infer_all(desc: Any) -> None:
    block = desc.blocks[0]
    for op in block.ops:
        specs = {
            s: infer.Spec(block.vars[n[0]].shape, block.vars[n[0]].dtype)
            for s, n in op.inputs.items()
        }
        infer.infer(lookup(op.type), specs, op.attrs)
