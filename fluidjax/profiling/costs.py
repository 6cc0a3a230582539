"""The result of ``program.profile``: the ops of a program by the time that they take, with the
user's lines.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from ..look.bars import Bar, bars
from ..look.frame import esc, fragment, table
from ..look.picture import Picture
from ..look.shown import Shown
from .events import Event, Recording

TOP = 10


@dataclass(frozen=True)
class OpCost:
    """One op. number: the index among the program's ops of that type, from 0. loc: the user's line,
    or "". seconds: in one step, summed over the runs within loops. runs: in one step. inner:
    whether the op is in a block of another op of the list, whose time includes this op's time.
    """

    type: str
    number: int
    loc: str
    seconds: float
    runs: float
    inner: bool = False

    def __str__(self) -> str:
        return f"{self.type} {self.number}" + (f" ({self.loc})" if self.loc else "")


@dataclass(frozen=True)
class Profile(Shown):
    """The time of each op, the most expensive first; str() and notebooks show the first ten.

    Ops ran one by one, each compiled by itself and waited for. So this shows where the work is, not
    how long a step takes, in which XLA fuses ops. steps: the number of steps that were averaged.
    seconds: of all ops of one step.
    """

    ops: tuple[OpCost, ...]
    steps: int
    seconds: float

    def by_line(self) -> dict[str, float]:
        """The seconds of a step at each of the user's lines, the largest first; "" for ops without
        a line.
        """
        found: dict[str, float] = defaultdict(float)
        for op in self.ops:
            if not op.inner:
                found[op.loc] += op.seconds
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def picture(self, top: int = TOP) -> Picture:
        """The most expensive ops as bars."""
        shown = [
            Bar(str(op), op.seconds, f"{_time(op.seconds)}, {self._part(op)}", _section(op))
            for op in self.ops[:top]
        ]
        return bars(f"the {len(shown)} most expensive of {len(self.ops)} ops", shown)

    def _part(self, op: OpCost) -> str:
        return f"{op.seconds / self.seconds:.1%}" if self.seconds else "?"

    def _rows(self, top: int) -> list[tuple[str, str, str, str, str]]:
        return [
            (f"{op.type} {op.number}", _time(op.seconds), self._part(op), f"{op.runs:g}", op.loc)
            for op in self.ops[:top]
        ]

    def _head(self) -> str:
        steps = "1 step" if self.steps == 1 else f"{self.steps} steps"
        return f"{len(self.ops)} ops, {_time(self.seconds)} a step one by one ({steps} averaged)"

    def __str__(self) -> str:
        rows = [_NAMES, *self._rows(TOP)]
        wide = [max(len(row[i]) for row in rows) for i in range(len(_NAMES))]
        lines = [
            "  ".join(c.rjust(w) if i in (1, 2, 3) else c.ljust(w) for i, (c, w) in enumerate(zip(row, wide, strict=True))).rstrip()
            for row in rows
        ]  # fmt: skip
        return "\n".join([self._head(), *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        shown = table(self._rows(TOP), _NAMES, (1, 2, 3))
        return fragment(f"<p>{esc(self._head())}</p>{self.picture().html()}{shown}", script=False)


_NAMES = ("op", "time", "part", "runs", "line")


def of_recording(recording: Recording, steps: int) -> Profile:
    """The Profile of the events of so many steps."""
    found: dict[tuple[str, int, str, bool], list[Event]] = defaultdict(list)
    for event in recording.events:
        found[event.name, event.number, event.loc, event.depth > 0].append(event)
    costs = [
        OpCost(kind, number, loc, sum(e.seconds for e in each) / steps, len(each) / steps, inner)
        for (kind, number, loc, inner), each in found.items()
    ]
    costs.sort(key=lambda op: -op.seconds)
    return Profile(tuple(costs), steps, sum(op.seconds for op in costs if not op.inner))


def _section(op: OpCost) -> str:
    return "backward" if op.type.endswith("_grad") else "forward"


def _time(seconds: float) -> str:
    for unit, each in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= 0.9995 * each:  # 1 ms, not 1e+03 µs
            return f"{seconds / each:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
