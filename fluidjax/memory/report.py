"""The memory report of a program: the variables alive at every op, found without a run, and the
compiler's own figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import jax

from ..errors import FluidValueError
from ..graph.fetches import fetch_names, found_names
from ..graph.program import Program
from ..graph.variable import Variable
from ..look.shown import Shown
from ..lower.sizes import refuse_fed_sizes
from ..lower.step import Step
from . import compiler, live, picture, tables
from .figures import StepMemory
from .sizes import Lengths, Shapes, arguments, measure


class MemoryReport(StepMemory, Shown):
    """The figures of one step, which print() and notebooks show as tables; save_picture draws the
    timeline.
    """

    def __str__(self) -> str:
        return tables.text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return tables.html(self)

    def save_picture(self, path: str | Path) -> Path:
        """Draw the timeline with matplotlib, and return the path, whose suffix is the format (.png,
        .svg, .pdf).

        Raises UnsupportedError if matplotlib is not installed.
        """
        return picture.save(self.timeline, Path(path))


def memory_report(
    program: Program,
    batch_size: int | None = None,
    fetch_list: Sequence[Variable | str] | Variable | str | None = None,
    feed_shapes: Shapes | None = None,
    compiled: bool = True,
    lengths: Lengths | None = None,
) -> MemoryReport:
    """The memory that one run of the program needs, found without running it; the program does not
    change.

        print(main.memory_report(batch_size=64, fetch_list=[loss]))

    batch_size: the size of an unknown first dimension of feeds. feed_shapes: whole shapes of fed
    variables, by name, for other unknown dimensions. lengths: the number of rows of each sequence
    of ragged feeds, all equal; {name: length} if feeds differ, and a list for a feed with several
    levels of sequences, outermost first; the batch is the number of sequences of the first level.
    The compiler's figures are for the padded step. fetch_list: the fetches of the run; only ops
    that these and the persistable variables need are counted. compiled: False leaves out the
    compiler's figures, which take as long as compiling the step once for each scheduler.

    Raises FluidValueError for an unknown dimension, for shapes that do not fit, and for a program
    without ops to run; FetchError for a variable that cannot be fetched; UnsupportedError for
    ragged feeds without lengths, and for feeds that decide sizes.
    """
    program = program.holding(fetch_names(fetch_list))
    names = found_names(program, fetch_list)
    step = Step(program.desc, names)
    if not step.ops:
        raise FluidValueError(
            "no op of the program would run, since nothing is fetched or persistable; pass"
            " fetch_list=[...]"
        )
    refuse_fed_sizes(step.sizes, "the memory report")
    types = arguments(step, batch_size, feed_shapes, lengths)
    points, peak = live.timeline(step, measure(step, types))
    device = jax.local_devices()[0]
    choices = compiler.schedulers(device)
    step_of = (program.desc, names, types, device)
    figures: dict[str, compiler.Figures] = {}
    for name in choices if compiled else ():
        if program.info.within_budget:
            lowered = compiler.lower(*step_of, name)
            figures |= compiler.figures(lowered, [name])
        else:
            figures[name] = compiler.run_figures(*step_of, name)
    return MemoryReport(
        batch_size,
        {name: tuple(getattr(t, "rows", t).shape) for name, t in types.feed.items()},
        names,
        points,
        peak,
        figures,
        choices[-1] if program.info.memory_optimized else "default",
    )
