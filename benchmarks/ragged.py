"""Training on sentences of many lengths: how many programs, and a later step beside Paddle 1.8.5
and a masked scan by hand.

Each side is a process of its own (peers/serve.py), in turns; a step goes to the next of a few
batches, so every side has met all of their sizes when it is timed.
"""

from __future__ import annotations

import statistics

import fluidjax as fluid

from . import beside
from .page import Table, shown
from .peers.ragged_nets import RAGGED, fed

BATCHES, SMALL, VARIED = 4, 32, 60
NETS = {"roles": "semantic role labelling, width 512", "sentiment": "stacked LSTM sentiment, batch 32",
        "translation": "attention, DynamicRNN, batch 16"}  # fmt: skip


def compilations(name: str, width: int, count: int) -> int:
    """How many programs `count` batches take."""
    net, batches, rate = RAGGED[name]
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = net(fluid, width)
        fluid.optimizer.SGD(rate).minimize(loss)
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    for batch in batches(count):
        exe.run(main, feed=fed(fluid, batch), fetch_list=[loss], scope=scope)
    return len(exe.compilations(main))


def table() -> list[Table]:
    """Programs, then steps."""
    print(
        f"\nPrograms for {VARIED} batches of 10 to 20 sentences of 5 to 60 words: semantic role"
        f" labelling, width {SMALL}"
    )
    print(f"  {compilations('roles', SMALL, VARIED)}", flush=True)
    versions = beside.there(("fluidjax", "paddle", "scan"))
    sides = list(versions)

    def row(name: str) -> list[str]:
        times = beside.measured(f"{name} {BATCHES}", sides)
        ours = times[sides[0]]
        cells = [NETS[name], f"{statistics.median(ours) * 1e3:.1f}"]
        for side in sides[1:]:
            ratio = statistics.median(a / b for a, b in zip(ours, times[side], strict=True))
            cells.append(f"{statistics.median(times[side]) * 1e3:.1f} ({ratio:.2f})")
        return cells

    title = (
        "Later steps on sentences: CPU ms a step, one core, medians of turns; in brackets fluidjax"
        " over it"
    )
    return [
        shown(
            "sentences",
            title,
            ["net", *sides],
            map(row, NETS),
            versions.values(),
            [40] + [20] * len(sides),
        )
    ]
