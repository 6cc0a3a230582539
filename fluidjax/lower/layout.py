"""Whether a step holds images with their channels last (ops/channels.py): decided by the program
and the device.

XLA:CPU computes convolutions channels last, and brings anything else there and back around each of
them. On other devices XLA chooses the layout of every value by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax

from ..base.flags import flag
from ..errors import FluidValueError
from ..ir import walk
from ..ir.desc import OpDesc, ProgramDesc, VarDesc
from ..ops import channels
from ..ops.registry import REGISTRY, traits
from .platforms import tuning
from .read_only import is_read_only

if TYPE_CHECKING:
    from .step import Step

FLAG = "FLAGS_channels_last"
WIDE = 32  # outputs of a filter
FEW = 4  # channels of a fed image, whose filter is small in any case


@dataclass(frozen=True)
class Layout:
    """The decision, and the reason in a sentence."""

    channels_last: bool
    why: str

    def __str__(self) -> str:
        return (
            "images are held"
            f" {'channels last' if self.channels_last else 'as the program has them'}: {self.why}"
        )


def layout_of(step: Step, platform: str) -> Layout:
    """How a step holds its images on a platform ("cpu", "gpu").

    FLAGS_channels_last is auto, on or off. Raises FluidValueError for any other value.
    """
    below = walk.nested(step.desc, [i for op in step.ops for i in op.blocks])
    return _layout(
        (*step.ops, *(op for idx in below for op in step.desc.blocks[idx].ops)), platform
    )


def explained_layout(desc: ProgramDesc) -> str:
    """The decision for a program on the device that JAX prefers, as a sentence; empty where there
    is nothing to decide.
    """
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
    if not tuning(platform).channels_last:
        return Layout(False, f"on a {platform} XLA chooses the layout of every value by itself")
    forward = sum(REGISTRY[op.type].forward is None for op in gaining)
    return Layout(
        True, f"{forward} convolution{'s' * (forward != 1)} on a CPU, where XLA computes them so"
    )


def laid_out(step: Step, platform: str) -> Step:
    """The step as it is fastest on a platform."""
    return replace(step, channels_last=True) if layout_of(step, platform).channels_last else step


def predicting(step: Step) -> Step:
    """The step with its filters turned, if it predicts: it changes no variable and holds images
    with their channels last.

    Only such a step reads a filter in no other form: gradients want it as it is, and what updates
    it too.
    """
    convolutions = [op for op in step.ops if _gains(op) or _gained(op)]
    last = step.channels_last or (bool(convolutions) and all(map(_gained, convolutions)))
    if not last or not is_read_only(step):
        return step
    found = replace(step, filters_turned=True)
    return found if len(turned(found)) > len(turned(step)) else step


def reads_filters_as_they_lie(step: Step) -> bool:
    """Whether kernels that read turned filters in place are the faster ones for a step that
    predicts.

    They have outputs in the lanes of their vectors, so that filters of fewer than WIDE waste most
    of a register: 24 outputs of 96 channels take 1.3 times as long as with kernels that bring the
    filter into an order of their own. And a matrix that a product reads by its rows they turn in
    every call.
    """
    if not step.filters_turned:
        return False
    vars = step.desc.blocks[0].vars
    shapes: list[tuple[int, ...]] = [vars[name].shape or () for name in turned(step)]
    spatial = [w for w in shapes if len(w) == 4 and w[1] > FEW and math.prod(w[2:]) > 1]
    narrow = sum(w[0] < WIDE for w in spatial)
    by_rows = any(_reads_by_rows(op, vars) for op in step.ops)
    return 2 * narrow <= len(spatial) and not by_rows


def _reads_by_rows(op: OpDesc, vars: Mapping[str, VarDesc]) -> bool:
    """Whether it is a product with the transpose of a parameter."""
    turns = op.type in ("matmul", "matmul_v2") and (
        op.attrs.get("transpose_Y") or op.attrs.get("trans_y")
    )
    return bool(turns) and (found := vars.get(op.input("Y")[0])) is not None and found.persistable


def _gained(op: OpDesc) -> bool:
    """Whether it is a convolution that the program itself has with its channels last."""
    definition = REGISTRY.get(op.type)
    return (
        definition is not None
        and channels.begins(definition)
        and channels.already(definition, op.attrs)
    )


def _gains(op: OpDesc) -> bool:
    definition = REGISTRY.get(op.type)
    return (
        definition is not None
        and channels.begins(definition)
        and not channels.already(definition, op.attrs)
    )


def turned(step: Step) -> dict[str, tuple[int, ...]]:
    """Variables that a step reads faster with their axes in another order, and the order: all of
    their readers say it (trait `turned`).
    """
    found: dict[str, set[tuple[int, ...] | None]] = {}
    for op in step.ops:
        shapes = {slot: _shape(step.desc, names) for slot, names in op.inputs.items()}
        for slot, names in op.inputs.items():
            for name in names:
                found.setdefault(name, set()).add(_order(op, slot, shapes, step.filters_turned))
    return {
        name: axes
        for name, orders in found.items()
        if len(orders) == 1 and (axes := orders.pop()) is not None
    }


def _order(
    op: OpDesc, slot: str, shapes: Mapping[str, Any], predicting: bool
) -> tuple[int, ...] | None:
    trait = traits(op.type).turned
    if trait is None or slot != trait.slot:
        return None
    return (
        trait.axes
        if trait.when(op.attrs, shapes) or (predicting and trait.predicting(op.attrs, shapes))
        else None
    )


def _shape(desc: ProgramDesc, names: Sequence[str]) -> tuple[int, ...] | None:
    var = desc.find_var(names[0]) if names else None
    return None if var is None else var.shape
