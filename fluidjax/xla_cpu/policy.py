"""The only entry to the tuning for a platform's compiler.

`choose(platform)` gives a Policy: how ops are lowered, in what order and groups a step runs them,
and the options for XLA. A policy changes the speed of a step; it changes results by no more than
rounding.

Another backend: its facts are in devices/platforms.py, its place in devices/place.py. Give Policy
its platform and its options in `fitted` and `options`. Lowerings of its own are chosen within
`target`, when a step is lowered (lax.platform_dependent in convolution.py): `fluid.step_fn` and
programs in segments ask for `target`, `schedule` and `waits` before the platform is known, so these
must suit all platforms.
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
from . import batching, convolution, last_readers, options, row_blocks, samples, stacks
from .cost import is_of_products, loops_are_long
from .options import YNNPACK

FLAG = "FLAGS_xla_cpu_tuning"
RunOne = Callable[[OpDesc, Env, Context], None]


class Schedule(Protocol):
    """An order in which a step runs its ops, other than one by one."""

    def run(self, env: Env, ctx: Context, run_one: RunOne) -> None:
        """Run all the ops. run_one: runs one op by itself."""


@dataclass(frozen=True)
class Policy:
    """tuned: whether there is any tuning. cpu: the platform is a CPU. library: the library runs the
    loops over elements. given: the options for the step.
    """

    tuned: bool
    cpu: bool
    library: bool = False
    given: Mapping[str, Any] = field(default_factory=lambda: options.ORDINARY)

    def fitted(self, desc: ProgramDesc, ops: Sequence[OpDesc], batch: int) -> Policy:
        """The policy for a step with these ops that is fed `batch` samples."""
        if not (self.tuned and self.cpu):
            return self
        long = loops_are_long(desc, ops, batch)
        # False if the user's XLA_FLAGS set this option
        library = YNNPACK in options.known(options.left_open(options.IN_LIBRARY))
        given = options.ORDINARY
        if is_of_products(desc, ops, batch):
            given = options.FUSED
        elif library and (long or samples.are_images(ops)):
            given = options.IN_LIBRARY if long else options.ALONE
        return replace(self, library=library and long, given={**given, **options.MEMORY_OPTIMIZED})

    @property
    def target(self) -> Target:
        """How ops are lowered. Lowering for a CPU is chosen when the step is lowered for one."""
        return Target(convolution.convolve, library=self.library) if self.tuned else PLAIN

    def schedule(
        self,
        desc: ProgramDesc,
        ops: Sequence[OpDesc],
        kept: Sequence[str],
        alone: frozenset[int] | None,
    ) -> Schedule | None:
        """The schedule for a step with these ops; None: one by one.

        kept: names whose values are read after the last op. alone: the uids of ops that must run by
        themselves if rows that the data choose are computed in blocks; None: rows are not computed
        in blocks.
        """
        if not self.tuned:
            return None
        units = batching.units(ops, desc.blocks[0].vars.get)
        if units is not None:
            return stacks.Batches(units, kept)
        blocks = None if alone is None else row_blocks.RowBlocks(desc, ops, frozenset(kept), alone)
        return blocks if blocks is not None and blocks.starts else None

    def options(self, memory: bool = False, draft: bool = False) -> dict[str, Any] | None:
        """Options for XLA. memory: order the step for the least memory. draft: the executable is
        only inspected, so its code may be slow.
        """
        found = options.left_open(self.given) if self.tuned and self.cpu else {}
        found |= options.MEMORY_OPTIMIZED if memory and self.cpu else {}
        found |= options.LAID_OUT if draft else {}
        return options.known(found) or None

    def traced(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function to trace in place of the step's."""
        if not self.library:
            return function
        from .library import kept_apart  # few steps need it, and jax.extend takes a while to import

        return kept_apart(function)

    def by_samples(
        self, ops: Sequence[OpDesc], state: Mapping[str, Any], fed: Iterable[Any]
    ) -> bool:
        """Whether a prediction with independent rows runs these ops sample by sample."""
        return self.tuned and self.cpu and samples.pay(ops, state, fed)

    def waits(self, desc: ProgramDesc, ops: Sequence[OpDesc]) -> dict[int, Tie]:
        """The values that updates wait for in a step that is ordered for memory, by the updates'
        uids.
        """
        return last_readers.waits(desc, ops)

    @property
    def orders_for_memory(self) -> bool:
        """Whether the compiler can order a step for memory."""
        return self.cpu


def choose(platform: str | None = None) -> Policy:
    """The policy for a platform by JAX's name ("cpu", "gpu"); None if the platform is known only
    when a step is lowered.
    """
    return Policy(bool(flag(FLAG)), platform == "cpu")
