"""Which way each size that depends on data takes through a compiled step, and why: ``program.explain()``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..ir.desc import OpDesc
from ..ops.fixed import Fixed, shown
from ..ops.registry import traits
from .sizes import Need, SizeNeeds

WAYS = ("static", "specialised", "bounded", "refused")


class Sized(NamedTuple):
    """One op whose sizes depend on data. block: where it stands. way: one of WAYS. loc: the user's line, if it is known."""

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
    """One entry for each op of a program whose sizes depend on data, in the program's order; str() has a line for each.

    layout: how a step holds images, and why; empty for a program without convolutions that have their channels first.
    """

    ops: tuple[Sized, ...]
    layout: str = ""

    def __iter__(self) -> Iterator[Sized]:
        return iter(self.ops)

    def __len__(self) -> int:
        return len(self.ops)

    def __getitem__(self, at: int) -> Sized:
        return self.ops[at]

    def __str__(self) -> str:
        sizes = "\n".join(map(str, self.ops)) or "no op has a size that depends on data"
        return f"{sizes}\n{self.layout}" if self.layout else sizes

    __repr__ = __str__


def explained_sizes(needs: SizeNeeds, feed: Mapping[str, Any] | None = None) -> Explanation:
    """See Program.explain."""
    given = feed or {}
    found = ((idx, op, _way(op, needs, given)) for idx, op in needs.every())
    return Explanation(tuple(Sized(idx, op.type, op.loc or None, *way) for idx, op, way in found if way is not None))


def _way(op: OpDesc, needs: SizeNeeds, feed: Mapping[str, Any]) -> tuple[str, str] | None:
    """(way, reason); None for an op whose sizes follow from shapes and attributes."""
    of = needs.of(op)
    refused = next((n for n in of if n.origin.obstacle), None)
    if refused is not None:
        return "refused", f"{refused.slot} {refused.name!r} decides a size, but {refused.origin.obstacle}"
    decisive = [n for n in of if n.by_feeds]
    if decisive:
        return "specialised", "; ".join(dict.fromkeys(_follows(n, feed) for n in decisive))
    if of:
        slots = ", ".join(dict.fromkeys(n.slot for n in of))
        return "static", f"{slots} follows from constants and shapes"
    chosen = traits(op.type).chosen
    return ("bounded", f"the data of {', '.join(chosen.slots)} choose the rows; there is room for {chosen.room}") if chosen else None


def _follows(need: Need, feed: Mapping[str, Any]) -> str:
    told = [f"{name!r}" + (f" = {_shown(feed[name])}" if name in feed else "") for name in need.origin.feeds]
    return f"{need.slot} follows from the feed {', '.join(told)}, so a step is compiled for each of its values"


def _shown(value: Any) -> str:
    return shown(value.array if isinstance(value, Fixed) else np.asarray(value))
