"""Runnable: Executor.run's argument in one form: a program, the ranks that it runs on, and the
number of steps of a run.
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

Program = Any  # a handle (graph.program.Program), which this room does not import
P = TypeVar("P")


class Reads(Protocol):
    """A started loader that a program reads from."""

    @property
    def names(self) -> tuple[str, ...]:
        """The variables that it gives values."""

    @property
    def drops_last(self) -> bool:
        """Whether last batches are left out if they are fewer than the ranks."""

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
        """The sharded variables, and where their shards are."""

    def prepare(self, scope: Scope) -> None:
        """Called before the program begins with the values of a scope."""

    def read(self, feed: Any, readers: Sequence[Reads]) -> Any:
        """A feed together with the next batch of each reader, one for each rank."""

    def split(self, feed: Any, check: Callable[[Any], Any]) -> Any:
        """A checked feed in the form that the step takes."""

    def check_steps(self, stacked: Mapping[str, Any]) -> None:
        """Raises UnsupportedError for stacked feeds that cannot be scanned over."""

    def fed(self, feed: Any) -> int:
        """The number of ranks that a feed is for."""

    def merge(
        self, fetched: Sequence[Any], merged: bool, some: int, along: Sequence[int]
    ) -> list[Any]:
        """The fetches of the ranks that were fed together."""


@dataclass(frozen=True, eq=False)
class Alone:
    """One rank, on one device: program, feeds and fetches are not changed."""

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
        """One rank takes any feeds."""

    def fed(self, feed: Any) -> int:
        return 1

    def merge(
        self, fetched: Sequence[Any], merged: bool, some: int, along: Sequence[int]
    ) -> list[Any]:
        return list(fetched)


def single(feed: Any) -> Mapping[str, Any]:
    """The one dict of a feed, which is that dict or a list that holds it. Raises FeedError for
    several dicts, FluidTypeError for anything else.
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
    """Keeps a program within a budget of memory (memory/fitting.py)."""

    def ranks(
        self,
        program: Program,
        ranks: Ranks,
        fetches: tuple[str, ...],
        feed: Any,
        compiled: Callable[[Ranks], Any],
    ) -> Ranks:
        """The ranks on which the program with this feed stays within the budget. compiled: its step
        on ranks.
        """


class Runnable(NamedTuple, Generic[P]):
    """A program; the ranks that it runs on (None: the executor's device, or the program's job); the
    steps of a run; its memory budget.

    begins: the plan of the job that a trainer starts with this program.
    """

    program: P
    ranks: Ranks | None = None
    iterations: int = 1
    fits: Fits | None = None
    begins: Any = None


@runtime_checkable
class MakesRunnable(Protocol):
    """An object that Executor.run takes in place of a program, such as a CompiledProgram."""

    def runnable(self) -> Runnable:
        """The Runnable to run. This call counts as the first run."""
