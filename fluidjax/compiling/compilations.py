"""Compilation: the report of one executable of a step: its feeds, its kind, the time it took and
the reason.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax

from ..ops.ragged import Ragged

# the name by which scripts listen (docs/flags.md)
_logger = logging.getLogger("fluidjax.runtime.compilations")


@dataclass(frozen=True)
class Compilation:
    """One executable of a step.

    kind: what a call runs: "one" step, "many" in a scan, the ranks in "turns"; "checked" kinds
    report values that are not finite; a "segment" of a partitioned program, whose lowering and
    first run count as compiling. fetches: the names that it returns. feed: the type of each fed
    array. trace, lower, compile: the seconds for tracing the ops, for writing StableHLO, and for
    XLA (or for reading the persistent cache). reason: how it differs from earlier executables of
    the program. line: the line of the script that ran it.
    """

    kind: str
    fetches: tuple[str, ...]
    feed: Mapping[str, str]
    trace: float
    lower: float
    compile: float
    reason: str = ""
    line: str | None = None

    @property
    def seconds(self) -> float:
        """trace + lower + compile."""
        return self.trace + self.lower + self.compile

    def __str__(self) -> str:
        fed = ", ".join(f"{n}: {t}" for n, t in self.feed.items()) or "nothing"
        what = f"{self.kind}, fetching {', '.join(self.fetches) or 'nothing'}, fed {fed}"
        return (
            f"{what}: {self.trace:.2f} s to trace, {self.lower:.2f} to lower, {self.compile:.2f}"
            " to compile"
        )


# each is called with every report, and the step that was compiled
watchers: list[Callable[[Compilation, Any], None]] = []


def record(kept: list[Compilation], made: Compilation, step: Any = None) -> None:
    """Keep a report, call the watchers, and log it."""
    kept.append(made)
    for watcher in watchers:
        watcher(made, step)
    log(made)


def log(made: Compilation) -> None:
    """Log a report."""
    place = f" at {made.line}" if made.line else ""
    what = "a segment" if made.kind == "segment" else "a step"
    _logger.info("compiled %s%s (%s): %s", what, place, made, made.reason or "no reason is known")


def types_of(feed: Any) -> dict[str, str]:
    """The types of a feed, or of the feeds of several ranks, as text."""
    if isinstance(feed, tuple):
        return {
            f"{n} of rank {r}": t for r, one in enumerate(feed) for n, t in types_of(one).items()
        }
    return {n: _type(v) for n, v in feed.items()}


def _type(value: Any) -> str:
    if isinstance(value, Ragged):
        return f"ragged {_type(value.rows)}"
    leaves = jax.tree.leaves(value)
    # a value without leaves: a feed that decides sizes
    return f"{leaves[0].dtype}{list(leaves[0].shape)}" if leaves else str(value)
