"""Reports how a compiled step handles each size that depends on data, and why:
``program.explain()``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from ..base.dtypes import numpy_dtype
from ..errors import FluidError, NotOneStep
from ..ir import walk
from ..ir.desc import OpDesc, ProgramDesc
from ..lower.sizes import Need, SizeNeeds
from ..lower.step import Step
from ..ops.fixed import Fixed, shown
from ..ops.loop_course import counters
from ..ops.registry import traits

WAYS = ("static", "specialised", "bounded", "cut")


class Sized(NamedTuple):
    """One op whose sizes depend on data. block: the index of its block. way: one of WAYS. loc: the
    user's line, if known.
    """

    block: int
    op: str
    loc: str | None
    way: str
    reason: str

    def __str__(self) -> str:
        place = f" ({self.loc})" if self.loc else ""
        return f"{self.op}{place}: {self.way}; {self.reason}"


@dataclass(frozen=True)
class Explanation:
    """One entry for each op of a program whose sizes depend on data, in the program's order; str()
    has a line for each.
    """

    ops: tuple[Sized, ...]

    def __iter__(self) -> Iterator[Sized]:
        return iter(self.ops)

    def __len__(self) -> int:
        return len(self.ops)

    def __getitem__(self, at: int) -> Sized:
        return self.ops[at]

    def __str__(self) -> str:
        return "\n".join(map(str, self.ops)) or "no op has a size that depends on data"

    __repr__ = __str__


def explained_sizes(needs: SizeNeeds, feed: Mapping[str, Any] | None = None) -> Explanation:
    """See Program.explain."""
    given = feed or {}
    found = ((idx, op, _way(op, needs, given)) for idx, op in needs.every())
    return Explanation(
        tuple(
            Sized(idx, op.type, op.loc or None, *way) for idx, op, way in found if way is not None
        )
    )


def explained_cut(desc: ProgramDesc, feed: Mapping[str, Any]) -> Iterator[Sized]:
    """The first op that cannot be traced for such feeds, if there is one: how it is run instead,
    and why.
    """
    block = desc.blocks[0]
    read = {n for op in block.ops for n in op.reads}
    ends = [
        n
        for op in block.ops
        for n in op.writes
        if n not in read and n in block.vars and block.vars[n].kind == "LOD_TENSOR"
    ]
    step = Step(desc, tuple(dict.fromkeys(ends)))
    state = {n: block.vars[n] for n in step.reads}
    if not any(op.blocks or traits(op.type).runs.acts for op in step.ops) or any(
        n not in feed for n in step.feeds
    ):
        return
    arrays_only = all(isinstance(v, np.ndarray | int | float | list) for v in feed.values())
    if not arrays_only or any(min(v.shape or (), default=0) < 0 for v in state.values()):
        return
    given = {n: np.asarray(feed[n]) for n in step.feeds}
    arrays = {
        n: Fixed(v) if n in step.sizes.fixed else jax.ShapeDtypeStruct(v.shape, v.dtype)
        for n, v in given.items()
    }
    types = {
        n: jax.ShapeDtypeStruct(v.shape or (), numpy_dtype(v.dtype or "float32"))
        for n, v in state.items()
    }
    try:
        with jax.enable_x64(True):
            jax.eval_shape(
                lambda values, fed: step(values, fed, jax.random.key(0))[1], types, arrays
            )
    except NotOneStep as why:
        idx, op = next((idx, op) for idx, op in walk.ops(desc) if op.uid == why.uid)
        counted = [n for n in counters(desc, op) if n in step.feeds] if why.counts else []
        way = "bounded" if counted else "cut"
        reason = (
            f"the feed {counted[0]!r} says how often it runs, so a step is compiled for each bucket"
            " of it"
            if counted
            else str(why)
        )
        yield Sized(idx, op.type, op.loc or None, way, reason)
    except FluidError:
        return  # only a run can tell


def _way(op: OpDesc, needs: SizeNeeds, feed: Mapping[str, Any]) -> tuple[str, str] | None:
    """(way, reason); None for an op whose sizes follow from shapes and attributes."""
    of = needs.of(op)
    if op.uid in needs.unpadded:
        return "static", f"its rows are those of {needs.unpadded[op.uid]!r} again"
    blocked = next((n for n in of if n.origin.obstacle), None)
    if blocked is not None:
        return (
            "cut",
            (
                f"{blocked.slot} {blocked.name!r} decides a size, but {blocked.origin.obstacle}; a"
                " segment begins here"
            ),
        )
    decisive = [n for n in of if n.by_feeds]
    if decisive:
        return "specialised", "; ".join(dict.fromkeys(_follows(n, feed) for n in decisive))
    if of:
        slots = ", ".join(dict.fromkeys(n.slot for n in of))
        return "static", f"{slots} follows from constants and shapes"
    chosen = traits(op.type).chosen
    return (
        (
            "bounded",
            (
                f"the data of {', '.join(chosen.slots)} choose the rows; there is room for"
                f" {chosen.room}"
            ),
        )
        if chosen
        else None
    )


def _follows(need: Need, feed: Mapping[str, Any]) -> str:
    feeds = [
        f"{name!r}" + (f" = {_shown(feed[name])}" if name in feed else "")
        for name in need.origin.feeds
    ]
    return (
        f"{need.slot} follows from the feed {', '.join(feeds)}, so a step is compiled for each of"
        " its values"
    )


def _shown(value: Any) -> str:
    return shown(value.array if isinstance(value, Fixed) else np.asarray(value))
