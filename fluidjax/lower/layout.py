"""Whether a step holds images with their channels last (ops/channels.py): decided by the program and the device.

XLA:CPU computes convolutions channels last, and brings anything else there and back around each of them. On other devices
XLA chooses the layout of every value by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax

from ..base.flags import flag
from ..errors import FluidValueError
from ..ir import walk
from ..ir.desc import OpDesc, ProgramDesc
from ..ops import channels
from ..ops.registry import REGISTRY, traits

if TYPE_CHECKING:
    from .step import Step

FLAG = "FLAGS_channels_last"


@dataclass(frozen=True)
class Layout:
    """The decision, and the reason in a sentence."""

    channels_last: bool
    why: str

    def __str__(self) -> str:
        return f"images are held {'channels last' if self.channels_last else 'as the program has them'}: {self.why}"


def layout_of(step: Step, platform: str) -> Layout:
    """How a step holds its images on a platform ("cpu", "gpu").

    FLAGS_channels_last is auto, on or off. Raises FluidValueError for any other value.
    """
    below = walk.nested(step.desc, [i for op in step.ops for i in op.blocks])
    return _layout((*step.ops, *(op for idx in below for op in step.desc.blocks[idx].ops)), platform)


def explained_layout(desc: ProgramDesc) -> str:
    """The decision for a program on the device that JAX prefers, as a sentence; empty where there is nothing to decide."""
    ops = [op for _, op in walk.ops(desc)]
    return str(_layout(ops, jax.default_backend())) if any(map(_gains, ops)) else ""


def _layout(ops: Iterable[OpDesc], platform: str) -> Layout:
    asked = flag(FLAG)
    if asked not in ("auto", "on", "off"):
        raise FluidValueError(f"{FLAG} is auto, on or off, not {asked!r}")
    if asked != "auto":
        return Layout(asked == "on", f"{FLAG} is {asked}")
    gaining = [op for op in ops if _gains(op)]
    if not gaining:
        return Layout(False, "no convolution has its channels first")
    if platform != "cpu":
        return Layout(False, f"on a {platform} XLA chooses the layout of every value by itself")
    forward = sum(REGISTRY[op.type].forward is None for op in gaining)
    return Layout(True, f"{forward} convolution{'s' * (forward != 1)} on a CPU, where XLA computes them so")


def laid_out(step: Step, platform: str) -> Step:
    """The step as it is fastest on a platform."""
    return replace(step, channels_last=True) if layout_of(step, platform).channels_last else step


def _gains(op: OpDesc) -> bool:
    definition = REGISTRY.get(op.type)
    return definition is not None and channels.begins(definition) and not channels.already(definition, op.attrs)


def turned(step: Step) -> dict[str, tuple[int, ...]]:
    """Variables that a step reads faster with their axes in another order, and the order: all of their readers say it (trait `turned`)."""
    found: dict[str, set[tuple[int, ...] | None]] = {}
    for op in step.ops:
        shapes = {slot: _shape(step.desc, names) for slot, names in op.inputs.items()}
        for slot, names in op.inputs.items():
            for name in names:
                found.setdefault(name, set()).add(_order(op, slot, shapes))
    return {name: axes for name, orders in found.items() if len(orders) == 1 and (axes := orders.pop()) is not None}


def _order(op: OpDesc, slot: str, shapes: Mapping[str, Any]) -> tuple[int, ...] | None:
    trait = traits(op.type).turned
    return trait.axes if trait is not None and slot == trait.slot and trait.when(op.attrs, shapes) else None


def _shape(desc: ProgramDesc, names: Sequence[str]) -> tuple[int, ...] | None:
    var = desc.find_var(names[0]) if names else None
    return None if var is None else var.shape
