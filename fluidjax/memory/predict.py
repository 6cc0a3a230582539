"""The bytes of a compiled step, predicted from the traced one without compiling it."""

from __future__ import annotations

from . import graph, schedule
from .fusion import fuse
from .hlo import parse


def predict(text: str) -> int:
    """Bytes that a step needs at its worst moment, with all its arguments, under the memory-optimised scheduler.

    text: the step in HLO, as it was traced. Raises UnsupportedError for text that is not the HLO known here.
    """
    module = parse(text)
    known: dict[str, int] = {}

    def inside(name: str) -> int:
        if name not in known:
            known[name] = schedule.peak(fuse(graph.build(module, name, inside))).bytes
        return known[name]

    step = graph.build(module, module.entry, inside)
    return sum(p.bytes for p in step.parameters) + schedule.peak(fuse(step)).bytes
