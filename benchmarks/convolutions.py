"""The ways of a convolution's three products, each beside XLA's own convolution and, where it is
installed, torch's.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

import fluidjax as fluid
from fluidjax.ops.convolution import XLA
from fluidjax.ops.convolution_geometry import Geometry
from fluidjax.xla_cpu.convolution import convolve, way
from fluidjax.xla_cpu.options import ORDINARY, known

from .beside import PYTHONS
from .page import Table, shown
from .peers.nets import CASES as CASES_OF_NETS

TORCH = Path(__file__).parent / "peers" / "torch_convolution.py"
IMAGE = 3  # channels
TURNS, TURN = 7, 0.05  # turns of a kernel, seconds of CPU time of one


def case(
    x: tuple[int, ...], w: tuple[int, ...], stride: int = 1, pad: int | None = None
) -> Geometry:
    """x [N, C, H, W], w [O, C / groups, h, w]; padding of half a filter."""
    pad = w[2] // 2 if pad is None else pad
    return Geometry(x, w, (stride, stride), ((pad, pad),) * 2, (1, 1), x[1] // w[1], False)


def _ours(product: int, geo: Geometry, a: Any, b: Any) -> Any:
    return convolve(product, geo, a, b, nested=False)


CASES = (
    case((2, 256, 16, 16), (256, 8, 3, 3)), case((1, 128, 56, 56), (128, 4, 3, 3)), case((1, 256, 56, 56), (256, 8, 3, 3), 2),
    case((8, 32, 112, 112), (32, 1, 3, 3)), case((8, 64, 112, 112), (64, 1, 3, 3), 2), case((8, 512, 14, 14), (512, 1, 3, 3)),
    case((8, 256, 56, 56), (64, 256, 1, 1)), case((8, 64, 56, 56), (256, 64, 1, 1)), case((2, 512, 4, 4), (1024, 512, 1, 1)),
    case((2, 64, 16, 16), (64, 64, 3, 3)), case((2, 128, 8, 8), (128, 128, 3, 3)), case((2, 512, 2, 2), (512, 512, 3, 3)),
    case((2, 256, 4, 4), (512, 256, 3, 3), 2), case((32, 64, 32, 32), (64, 64, 3, 3)), case((8, 3, 224, 224), (64, 3, 7, 7), 2),
)  # fmt: skip
OURS = tuple(partial(_ours, product) for product in range(3))


def milliseconds(runs: list[Callable[[], Any]]) -> list[float]:
    """CPU ms of each, medians of interleaved turns; one that takes longer than a second is run
    once.
    """
    times: list[list[float]] = [[] for _ in runs]
    for turn in range(TURNS):
        for run, found in zip(runs, times, strict=True):
            if turn and found[0] > 1:
                continue
            begin, count = time.process_time(), 0
            while count == 0 or time.process_time() - begin < TURN:
                jax.block_until_ready(run())
                count += 1
            found.append((time.process_time() - begin) / count)
    return [statistics.median(found) * 1e3 for found in times]


def compiled(
    function: Any, args: tuple[Any, ...], options: dict[str, Any] | None = None
) -> tuple[Callable[[], Any], float]:
    """The call, and the CPU seconds that its compilation took."""
    lowered = jax.jit(function).lower(*args)
    begin = time.process_time()
    made = lowered.compile(compiler_options=options)
    return partial(made, *args), time.process_time() - begin


def measured(geo: Geometry) -> list[str]:
    """For each direction: ours (XLA's), and the seconds to compile them."""
    rng = np.random.default_rng(0)
    x, w, dy = (
        jax.numpy.asarray(rng.standard_normal(shape, np.float32)) for shape in (geo.x, geo.w, geo.y)
    )
    cells = []
    for function, plain, args in zip(OURS, XLA, ((x, w), (w, dy), (x, dy)), strict=True):
        runs = [compiled(partial(f, geo), args) for f in (function, plain)]
        ours, theirs = milliseconds([run for run, _ in runs])
        cells.append(f"{ours:.2f} ({theirs:.2f}) {runs[0][1]:.2f} ({runs[1][1]:.2f})")
    return cells


def torchs(cases: tuple[Geometry, ...]) -> list[list[float]] | None:
    """Milliseconds of torch's kernels, three for each case; None where torch is not installed."""
    if not PYTHONS["torch"].exists():
        return None
    given = [
        [(g.x[0], g.channels, *g.sides), g.w, g.strides[0], g.pads[0][0], g.groups] for g in cases
    ]
    out = subprocess.run(
        [str(PYTHONS["torch"]), str(TORCH), json.dumps(given)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found: list[list[float]] = json.loads(out.splitlines()[-1])
    return found


def table() -> None:
    """Output, input's and filter's gradient of each case: CPU ms and, behind them, seconds to
    compile; XLA's in brackets.
    """
    print(
        "\nConvolutions: output, input's gradient, filter's gradient: CPU ms (XLA's own), s to"
        " compile (XLA's own); then torch's ms"
    )
    beside = torchs(CASES)
    if beside is None:
        print("  torch is not there; make bench-peers installs it")
    for i, geo in enumerate(CASES):
        name = f"{'x'.join(map(str, geo.x))}, {'x'.join(map(str, geo.w))} /{geo.strides[0]}"
        theirs = "" if beside is None else "   torch " + " ".join(f"{ms:.2f}" for ms in beside[i])
        print(
            f"{name:<34}{way(geo):<9}" + "".join(f"{c:>30}" for c in measured(geo)) + theirs,
            flush=True,
        )


def of_net(name: str) -> Counter[Geometry]:
    """The convolutions of a net of peers/nets.py, channels last as our steps hold them, with how
    often each is there.
    """
    net, _, batch = CASES_OF_NETS[name]
    feed, main = batch(), fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        net(fluid, feed)
    found: Counter[Geometry] = Counter()
    for op in main.global_block().ops:
        if op.type == "conv2d":
            _, *x = main.global_block().var(op.input("Input")[0]).shape
            w, pads = main.global_block().var(op.input("Filter")[0]).shape, op.attr("paddings")
            size = len(next(iter(feed.values()))), *x[1:], x[0]
            found[
                Geometry(
                    size,
                    tuple(w),
                    tuple(op.attr("strides")),
                    tuple((p, p) for p in pads),
                    (1, 1),
                    op.attr("groups"),
                    True,
                )
            ] += 1
    return found


def net_table(name: str = "ResNet-32") -> list[Table]:
    """All convolutions of a step by themselves: XLA's as it optimises them, ours, and torch's; CPU
    ms of one core.
    """
    convolutions = of_net(name)
    beside = torchs(tuple(convolutions))
    totals = {head: [0.0] * 3 for head in ("XLA:CPU", "fluidjax")} | (
        {"torch": [0.0] * 3} if beside else {}
    )
    for i, (geo, count) in enumerate(convolutions.items()):
        rng = np.random.default_rng(0)
        x, w, dy = (
            jax.numpy.asarray(rng.standard_normal(shape, np.float32))
            for shape in (geo.x, geo.w, geo.y)
        )
        for kind, args in enumerate(((x, w), (w, dy), (x, dy))):
            if kind == 1 and geo.channels == IMAGE:
                continue  # nobody asks for the gradient of the image
            optimised = compiled(partial(XLA[kind], geo), args)[0]
            ours = compiled(partial(OURS[kind], geo), args, known(ORDINARY))[0]
            times = [*milliseconds([optimised, ours]), *([beside[i][kind]] if beside else [])]
            for total, ms in zip(totals.values(), times, strict=True):
                total[kind] += count * ms
    names = "outputs", "gradients of inputs", "gradients of filters", "together"
    rows = zip(names, *([*t, sum(t)] for t in totals.values()), strict=True)
    title = (
        f"The {convolutions.total()} convolutions of {name}'s training step by themselves: CPU ms"
        " of one core"
    )
    return [
        shown(
            "convolutions of a step",
            title,
            ["", *totals],
            ([r[0], *(f"{ms:.0f}" for ms in r[1:])] for r in rows),
        )
    ]
