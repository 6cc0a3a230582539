"""The memory report of a program: what is alive at every op, before it runs, beside the compiler's own figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax

from ..errors import FetchError, FluidTypeError, FluidValueError, near
from ..lower.step import Step
from ..program import Program
from ..variable import Variable
from . import compiler, live, picture, predict, tables
from .compiler import Figures
from .live import Peak, Point
from .sizes import Shapes, arguments, measure


@dataclass(frozen=True)
class MemoryReport:
    """Bytes of one step of a program; nothing was run to find them.

    timeline: every op that runs, in program order, with the bytes alive when each variable takes memory of its own (what
    running op by op needs), split into live.KINDS. peak: the op with the most, and the variables alive there.
    fused: what the step needs when compiled with the memory-optimised scheduler, predicted without compiling it.
    compiled: the compiler's own figures by scheduler ("default", and on the CPU "memory-optimised"); empty if it was not
    asked. scheduler: the one that Executor.run will use.

    print() and notebooks show it as tables; save_picture draws the timeline.
    """

    batch_size: int | None
    feeds: Mapping[str, tuple[int, ...]]
    fetches: tuple[str, ...]
    timeline: tuple[Point, ...]
    peak: Peak
    fused: int
    compiled: Mapping[str, Figures]
    scheduler: str

    @property
    def plain(self) -> int:
        """Bytes that running op by op needs: those of the peak."""
        return self.peak.bytes

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON. All sizes are bytes."""
        return {
            "batch_size": self.batch_size,
            "feeds": {name: list(shape) for name, shape in self.feeds.items()},
            "fetches": list(self.fetches),
            "plain": self.plain,
            "fused": self.fused,
            "compiled": {name: {**asdict(f), "total": f.total} for name, f in self.compiled.items()},
            "scheduler": self.scheduler,
            "peak": {**_point(self.peak), "alive": [asdict(a) for a in self.peak.alive]},
            "timeline": [_point(p) for p in self.timeline],
        }

    def __str__(self) -> str:
        return tables.text(self)

    def _repr_html_(self) -> str:
        return tables.html(self)

    def save_picture(self, path: str | Path) -> Path:
        """Draw the timeline with matplotlib, and return the path; its ending says the format (.png, .svg, .pdf).

        Raises UnsupportedError if matplotlib is not installed.
        """
        return picture.save(self.timeline, Path(path))


def _point(p: Point) -> dict[str, Any]:
    return {"index": p.index, "op": p.op, "line": p.line, "bytes": p.bytes, "by_kind": dict(p.by_kind)}


def memory_report(
    program: Program,
    batch_size: int | None = None,
    fetch_list: Sequence[Variable | str] | Variable | str | None = None,
    feed_shapes: Shapes | None = None,
    compiled: bool = True,
) -> MemoryReport:
    """The memory that one run of the program needs, found without running it; the program stays as it is.

        print(main.memory_report(batch_size=64, fetch_list=[loss]))

    batch_size: stands for an unknown first dimension of what is fed. feed_shapes: whole shapes of fed variables, by name,
    for other unknown dimensions. fetch_list: what the run will fetch; only what it and the persistable variables need is
    counted. compiled: False leaves out the compiler's figures, which take as long as compiling the step twice.

    Raises FluidValueError for a dimension that nothing tells, for shapes that do not fit, and for a program of which
    nothing would run; FetchError for what cannot be fetched; UnsupportedError for ragged feeds.
    """
    names = _names(program, fetch_list)
    step = Step(program.desc, names)
    if not step.ops:
        raise FluidValueError("no op of the program would run, since nothing is fetched or persistable; pass fetch_list=[...]")
    types = arguments(step, batch_size, feed_shapes)
    points, peak = live.timeline(step, measure(step, types))
    device = jax.local_devices()[0]
    lowered = compiler.lower(program.desc, names, types, device)
    choices = list(compiler.SCHEDULERS) if device.platform == "cpu" else ["default"]
    return MemoryReport(
        batch_size,
        {name: tuple(t.shape) for name, t in types.feed.items()},
        names,
        points,
        peak,
        predict.predict(lowered.as_text(dialect="hlo")),
        compiler.figures(lowered, choices if compiled else []),
        choices[-1] if program._memory_optimized else "default",
    )


def _names(program: Program, fetch_list: Any) -> tuple[str, ...]:
    targets = () if fetch_list is None else (fetch_list,) if isinstance(fetch_list, str | Variable) else fetch_list
    names = []
    for target in targets:
        if not isinstance(target, str | Variable):
            raise FluidTypeError(f"fetch_list takes variables or their names, not {type(target).__name__}")
        name = target if isinstance(target, str) else target.name
        program._refuse_reused([name])
        if program.desc.find_var(name) is None:
            raise FetchError(f"fetch target {name!r} is not in the program{near(name, program.desc.blocks[0].vars)}")
        names.append(name)
    return tuple(names)
