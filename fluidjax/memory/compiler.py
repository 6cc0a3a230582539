"""What the compiler says of a step: its bytes, found by compiling it for types, without values and without running it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from ..ir.desc import ProgramDesc
from ..runtime.compiled import MEMORY_OPTIMIZED, Compiled, Recompiles
from ..runtime.placement import OneDevice
from ..runtime.state_buffers import StateLayout, plan
from .sizes import Arguments

# "default" is what XLA does of itself; the other scheduler exists on the CPU alone.
SCHEDULERS: dict[str, dict[str, str]] = {"default": {}, "memory-optimised": MEMORY_OPTIMIZED}


@dataclass(frozen=True)
class Figures:
    """Bytes of a compiled step as XLA counts them; `alias` is the part of the outputs that overwrites arguments."""

    arguments: int
    outputs: int
    temporaries: int
    alias: int

    @property
    def total(self) -> int:
        """arguments + outputs + temporaries - alias: what the step needs while it runs."""
        return self.arguments + self.outputs + self.temporaries - self.alias


def lower(desc: ProgramDesc, fetches: tuple[str, ...], types: Arguments, device: Any) -> Any:
    """The step that Executor.run would compile for these types, traced (a jax.stages.Lowered)."""
    compiled = Compiled(desc, fetches, OneDevice(device), Recompiles())
    mutable = {n: types.state[n] for n in compiled.written if n in types.state}
    constant = {n: v for n, v in types.state.items() if n not in mutable}
    layouts = compiled._layouts = plan(mutable), plan(constant)
    groups = [_travelling(layout, types.state) for layout in layouts]
    with jax.enable_x64(True), jax.default_device(device):
        return compiled.function().lower(*groups, dict(types.feed), 0, 0)


def _travelling(layout: StateLayout, types: Mapping[str, Any]) -> list[Any]:
    """The types of the arrays in which a layout passes state on."""
    packs = [jax.ShapeDtypeStruct((p.size,), types[p.names[0]].dtype) for p in layout.packs]
    return packs + [types[n] for n in layout.singles]


def figures(lowered: Any, names: Sequence[str]) -> dict[str, Figures]:
    """The figures under the named schedulers. This compiles the step once for each."""
    found = {}
    for name in names:
        with jax.enable_x64(True):
            memory = lowered.compile(compiler_options=SCHEDULERS[name] or None).memory_analysis()
        found[name] = Figures(
            memory.argument_size_in_bytes, memory.output_size_in_bytes, memory.temp_size_in_bytes, memory.alias_size_in_bytes
        )
    return found
