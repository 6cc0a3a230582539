"""The one entry: what suits the compiler of a platform.

`choose(platform)` gives a Policy: how ops are lowered, in what order and groups a step runs them,
and the options for XLA. A policy changes how fast a step is, never what it computes beyond rounding.
Tuning for another backend would be another package with such a policy, chosen here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ..base.flags import flag
from ..ir.desc import OpDesc, ProgramDesc
from ..lower.env import Context, Env
from ..lower.recomputed import Tie
from ..ops.target import PLAIN, Target
from . import batching, convolution, last_readers, library, options, row_blocks, samples, stacks
from .cost import is_of_products, loops_are_long
from .options import YNNPACK

FLAG = "FLAGS_xla_cpu_tuning"
RunOne = Callable[[OpDesc, Env, Context], None]


class Schedule(Protocol):
    """Another way through a step's ops than one after another."""

    def run(self, env: Env, ctx: Context, run_one: RunOne) -> None:
        """Run all the ops. run_one: runs one by itself."""


@dataclass(frozen=True)
class Policy:
    """tuned: whether anything is done beyond what the program says. cpu: the platform is a CPU.
    library: loops over elements are a library's. given: the options that suit the step.
    """

    tuned: bool
    cpu: bool
    library: bool = False
    given: Mapping[str, Any] = field(default_factory=lambda: options.ORDINARY)

    def fitted(self, desc: ProgramDesc, ops: Sequence[OpDesc], batch: int) -> Policy:
        """The policy for a step with these ops that is fed so many samples."""
        if not (self.tuned and self.cpu):
            return self
        long = loops_are_long(desc, ops, batch)
        # else XLA_FLAGS say themselves what the library is given
        library = YNNPACK in options.known(options.left_open(options.IN_LIBRARY))
        given = options.ORDINARY
        if is_of_products(desc, ops, batch):
            given = options.FUSED
        elif library and (long or samples.are_images(ops)):
            given = options.IN_LIBRARY if long else options.ALONE
        return replace(self, library=library and long, given={**given, **options.MEMORY_OPTIMIZED})

    @property
    def target(self) -> Target:
        """How ops are lowered. What suits a CPU alone is decided when a step is lowered for one."""
        return Target(convolution.convolve, library=self.library) if self.tuned else PLAIN

    def schedule(
        self,
        desc: ProgramDesc,
        ops: Sequence[OpDesc],
        kept: Sequence[str],
        alone: frozenset[int] | None,
    ) -> Schedule | None:
        """How a step with these ops runs them; None: one after another.

        kept: names whose values are looked at after the last op. alone: the uids of ops that run by
        themselves, where rows that the data choose may go block by block; None: they may not.
        """
        if not self.tuned:
            return None
        units = batching.units(ops, desc.blocks[0].vars.get)
        if units is not None:
            return stacks.Batches(units, kept)
        blocks = None if alone is None else row_blocks.RowBlocks(desc, ops, frozenset(kept), alone)
        return blocks if blocks is not None and blocks.starts else None

    def options(self, memory: bool = False, draft: bool = False) -> dict[str, Any] | None:
        """Options for XLA. memory: it is to order the step for the least memory. draft: the
        executable is only looked at, so that its code may be slow.
        """
        found = options.left_open(self.given) if self.tuned and self.cpu else {}
        found |= options.MEMORY_OPTIMIZED if memory and self.cpu else {}
        found |= options.LAID_OUT if draft else {}
        return options.known(found) or None

    def traced(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function to be traced in place of a step's."""
        return library.kept_apart(function) if self.library else function

    def by_samples(
        self, ops: Sequence[OpDesc], state: Mapping[str, Any], fed: Iterable[Any]
    ) -> bool:
        """Whether a prediction goes sample by sample through these ops where its rows are
        independent.
        """
        return self.tuned and self.cpu and samples.pay(ops, state, fed)

    def waits(self, desc: ProgramDesc, ops: Sequence[OpDesc]) -> dict[int, Tie]:
        """What updates wait for in a step that is ordered for memory, by their uids."""
        return last_readers.waits(desc, ops)

    @property
    def orders_for_memory(self) -> bool:
        """Whether the compiler has a choice there."""
        return self.cpu


def choose(platform: str | None = None) -> Policy:
    """The policy for a platform, as JAX names it ("cpu", "gpu"); None: it is known only when a step
    is lowered.
    """
    return Policy(bool(flag(FLAG)), platform == "cpu")
