"""The data of a memory report, without its presentation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .compiler import Figures
from .live import Peak, Point


@dataclass(frozen=True)
class StepMemory:
    """The bytes of one step of a program, found without a run.

    timeline: every op that runs, in program order, with the live bytes if each variable has memory
    of its own (as in op-by-op execution), split into live.KINDS. peak: the op with the most live
    bytes, and the variables alive there. compiled: the compiler's own figures by scheduler
    ("default", and on the CPU "memory-optimised"); empty if they were not requested. scheduler: the
    one that Executor.run will use.
    """

    batch_size: int | None
    feeds: Mapping[str, tuple[int, ...]]
    fetches: tuple[str, ...]
    timeline: tuple[Point, ...]
    peak: Peak
    compiled: Mapping[str, Figures]
    scheduler: str

    @property
    def plain(self) -> int:
        """The bytes of op-by-op execution: those of the peak."""
        return self.peak.bytes

    @property
    def fused(self) -> int | None:
        """The bytes that the compiled step needs, by the compiler's count under `scheduler`; None
        if they were not requested.
        """
        return self.compiled[self.scheduler].total if self.compiled else None

    def to_dict(self) -> dict[str, Any]:
        """A dict of plain values, for JSON. All sizes are bytes."""
        return {
            "batch_size": self.batch_size,
            "feeds": {name: list(shape) for name, shape in self.feeds.items()},
            "fetches": list(self.fetches),
            "plain": self.plain,
            "fused": self.fused,
            "compiled": {
                name: {**asdict(f), "total": f.total} for name, f in self.compiled.items()
            },
            "scheduler": self.scheduler,
            "peak": {**_point(self.peak), "alive": [asdict(a) for a in self.peak.alive]},
            "timeline": [_point(p) for p in self.timeline],
        }


def _point(p: Point) -> dict[str, Any]:
    return {
        "index": p.index,
        "op": p.op,
        "line": p.line,
        "bytes": p.bytes,
        "by_kind": dict(p.by_kind),
    }
