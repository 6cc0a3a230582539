"""Runnable: what Executor.run makes of its argument: a program, the ranks that it runs on, and how
many steps a run takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from ..devices.placement import OneDevice, Placement
from ..devices.shard_layout import ShardLayout
from ..errors import FeedError, FluidTypeError
from ..ir.desc import ProgramDesc
from ..state.scope import Scope

Program = Any  # a handle (graph.program.Program), which this room does not know
P = TypeVar("P")


class Reads(Protocol):
    """A started loader that a program reads from."""

    @property
    def names(self) -> tuple[str, ...]:
        """The variables that it gives values."""

    @property
    def drops_last(self) -> bool:
        """Whether last batches that are too few for the ranks are left out."""

    def next_feed(self) -> Mapping[str, Any]:
        """The next batch, by name. Raises EOFException at the end."""


class Ranks(Protocol):
    """How a program runs on its ranks: Alone, or Parallel (dist/spmd/parallel.py)."""

    @property
    def where(self) -> Placement:
        """The ranks."""

    @property
    def memory_optimized(self) -> bool:
        """Whether XLA orders the step for the least memory."""

    def desc(self, program: Program) -> ProgramDesc:
        """The program as every rank runs it."""

    def sharded(self, program: Program) -> Mapping[str, ShardLayout]:
        """The variables of which every rank keeps a part, and where."""

    def prepare(self, scope: Scope) -> None:
        """Called before the program begins with the values of a scope."""

    def read(self, feed: Any, readers: Sequence[Reads]) -> Any:
        """A feed with what is read beside it: the next batch of each reader, for every rank its
        own.
        """

    def split(self, feed: Any, check: Callable[[Any], Any]) -> Any:
        """A feed as the step takes it, checked."""

    def check_steps(self, stacked: Mapping[str, Any]) -> None:
        """Raises UnsupportedError for stacked feeds that cannot be scanned over."""

    def fed(self, feed: Any) -> int:
        """For how many ranks a feed is."""

    def merge(
        self, fetched: Sequence[Any], merged: bool, some: int, along: Sequence[int]
    ) -> list[Any]:
        """The fetches of the ranks that were fed together."""


@dataclass(frozen=True, eq=False)
class Alone:
    """One rank, on one device: a program as it stands, feeds and fetches as they are."""

    where: OneDevice
    memory_optimized: bool = False

    def desc(self, program: Program) -> ProgramDesc:
        return program.desc

    def sharded(self, program: Program) -> Mapping[str, ShardLayout]:
        return MappingProxyType({})

    def prepare(self, scope: Scope) -> None:
        """There is nothing to prepare."""

    def read(self, feed: Any, readers: Sequence[Reads]) -> Any:
        found = dict(single(feed))
        for reader in readers:
            found.update(reader.next_feed())
        return found

    def split(self, feed: Any, check: Callable[[Any], Any]) -> Any:
        return check(single(feed))

    def check_steps(self, stacked: Mapping[str, Any]) -> None:
        """One rank takes any."""

    def fed(self, feed: Any) -> int:
        return 1

    def merge(
        self, fetched: Sequence[Any], merged: bool, some: int, along: Sequence[int]
    ) -> list[Any]:
        return list(fetched)


def single(feed: Any) -> Mapping[str, Any]:
    """The one dict of a feed: itself, or a list that holds it. Raises FeedError for several,
    FluidTypeError for what is none.
    """
    if feed is None:
        return {}
    if isinstance(feed, Mapping):
        return feed
    if not isinstance(feed, list | tuple):
        raise FluidTypeError(
            f"feed requires dict as its Parameter: names and arrays, not {type(feed).__name__}"
        )
    if len(feed) == 1 and isinstance(feed[0], Mapping):
        return feed[0]
    raise FeedError(
        "on one device a feed is a dict of names and arrays (or a list of one such dict)"
    )


class Fits(Protocol):
    """What keeps a program within a budget of memory: memory/fitting.py."""

    def ranks(
        self,
        program: Program,
        ranks: Ranks,
        fetches: tuple[str, ...],
        feed: Any,
        compiled: Callable[[Ranks], Any],
    ) -> Ranks:
        """The ranks on which the program, fed so, is within the budget. compiled: its step on
        ranks.
        """


class Runnable(NamedTuple, Generic[P]):
    """A program; on what ranks it runs (None: as it comes, on the executor's device or with its
    job); steps a run; its budget.

    begins: the plan of the job that a trainer begins with this program.
    """

    program: P
    ranks: Ranks | None = None
    iterations: int = 1
    fits: Fits | None = None
    begins: Any = None


@runtime_checkable
class MakesRunnable(Protocol):
    """Something that Executor.run takes in place of a program, such as a CompiledProgram."""

    def runnable(self) -> Runnable:
        """What is to run. Asking for it counts as the first run."""
