"""Whole training scripts on the GPU, from the start of their process to step n: the first run, the
second, which finds what the first has compiled, and flax.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

from .. import scripts
from .bench import choose, tiny
from .records import Found

ORDER = ("LeNet", "text-LSTM", "transformer", "small ResNet", "text-CNN", "MLP")


def whole_scripts() -> Iterator[Found]:
    """Seconds by the clock to each of scripts.MARKS."""
    yield {}
    cores = os.sched_getaffinity(0)
    kept = {n: os.environ[n] for n in ("PYTHONPATH", "XLA_PYTHON_CLIENT_PREALLOCATE")}
    device = scripts.CPU | kept if tiny() else kept
    for net in choose(ORDER, ORDER[-1:]):
        with tempfile.TemporaryDirectory() as folder:
            turns = [("first run", "fluidjax", folder), ("second run", "fluidjax", folder)]
            turns += [] if net.startswith("text") else [("flax", "flax", "")]
            for kind, side, cache in turns:
                found = scripts.run(side, net, cores, cache, choose(1000, 10), device)
                yield {
                    "net": scripts.NETS[net],
                    "kind": kind,
                    "wall_s": {step: wall for step, (_, wall) in found.items()},
                }
