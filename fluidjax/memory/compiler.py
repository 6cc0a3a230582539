"""The compiler's figures for a step: its bytes, found by compiling it for types, without values and
without a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ..compiling.recompiles import Recompiles
from ..devices.placement import OneDevice
from ..errors import MixesRows, UnsupportedError
from ..ir.desc import ProgramDesc
from ..runtime.compiled import Compiled
from ..runtime.plan import StepPlan
from ..xla_cpu.policy import choose
from .sizes import Arguments, tensors

# "default" is XLA's default; the other scheduler exists only on the CPU
SCHEDULERS = ("default", "memory-optimised")


def schedulers(device: Any) -> tuple[str, ...]:
    """The schedulers of a device's compiler."""
    return SCHEDULERS if choose(device.platform).orders_for_memory else SCHEDULERS[:1]


@dataclass(frozen=True)
class Figures:
    """The bytes of a compiled step as XLA counts them; `alias` is the part of the outputs that
    overwrites arguments.
    """

    arguments: int
    outputs: int
    temporaries: int
    alias: int

    @property
    def total(self) -> int:
        """arguments + outputs + temporaries - alias: the bytes that the step needs while it
        runs.
        """
        return self.arguments + self.outputs + self.temporaries - self.alias


def lower(
    desc: ProgramDesc, fetches: tuple[str, ...], types: Arguments, device: Any, scheduler: str
) -> jax.stages.Lowered:
    """The step of a program that was fitted into a budget, lowered as Executor.run would compile it
    for these types under a scheduler; ragged feeds are padded as in a run.
    """
    plan = StepPlan.of(desc, fetches, OneDevice(device), scheduler != "default")
    return lower_padded(Compiled(plan, Recompiles()), types.state, tensors(types.feed))


def run_figures(
    desc: ProgramDesc, fetches: tuple[str, ...], types: Arguments, device: Any, scheduler: str
) -> Figures:
    """The figures of the step that Executor.run compiles for a program without a budget, with the
    options of its policy. scheduler: "default", or the other one as after memory_optimize.
    """
    plan = StepPlan.of(desc, fetches, OneDevice(device), scheduler != "default")
    compiled, feed = Compiled(plan, Recompiles()), tensors(types.feed)
    compiled.fit(feed)
    lowered = lower_padded(compiled, types.state, feed)
    return _counted(lowered, compiled.policy.options(memory=plan.memory_optimized))


def options_of(scheduler: str, draft: bool = False) -> dict[str, Any] | None:
    """XLA's options under a scheduler. draft: generate slow code with the same memory layout."""
    memory = scheduler == SCHEDULERS[1]
    return choose(jax.default_backend()).options(memory=memory, draft=draft)


def lower_padded(
    compiled: Compiled, state: Mapping[str, Any], feed: Mapping[str, Any], platform: str | None = None
) -> jax.stages.Lowered:  # fmt: skip
    """A step, traced for state of these types and for such feeds; feeds are padded less if an op
    mixes rows.

    platform: as in Compiled.lower.
    """
    while True:
        try:
            return compiled.again().lower(state, types_of(compiled.packed(feed)), platform)
        except MixesRows:
            if compiled.padding.less(feed) is None:
                raise


def types_of(values: Any) -> Any:
    """The types of all arrays."""
    return jax.tree.map(
        lambda v: (
            jax.ShapeDtypeStruct(v.shape, v.dtype) if isinstance(v, np.ndarray | np.generic) else v
        ),
        values,
    )


def figures(
    lowered: jax.stages.Lowered, names: Sequence[str], quick: bool = False
) -> dict[str, Figures]:
    """The figures under the named schedulers. This compiles the step once for each. quick: compile
    to slow code with the same memory layout.

    Raises UnsupportedError on a device whose compiler does not report them.
    """
    return {name: _counted(lowered, options_of(name, quick)) for name in names}


def _counted(lowered: jax.stages.Lowered, options: dict[str, Any] | None) -> Figures:
    with jax.enable_x64(True):
        memory = lowered.compile(compiler_options=options).memory_analysis()
    if memory is None:
        raise UnsupportedError(
            "the compiler of this device does not tell what it lays out; pass compiled=False"
        )
    return Figures(
        memory.argument_size_in_bytes,
        memory.output_size_in_bytes,
        memory.temp_size_in_bytes,
        memory.alias_size_in_bytes,
    )
