"""The shapes that a persistable variable's value may have when a step begins."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..base.dtypes import numpy_dtype
from ..lower.step import Step
from ..ops.registry import traits


def fits(step: Step, name: str, shape: tuple[int, ...], found: tuple[int, ...]) -> bool:
    """Whether a variable that is declared as `shape` may hold a value of the shape `found`."""
    return (
        _declared(shape, found)
        or _counts(step, name)
        or (_reshaped(step, name) and math.prod(shape) == math.prod(found))
    )


def _declared(shape: Sequence[int] | None, there: Sequence[int]) -> bool:
    """Whether a value's shape is what the program declares; -1 may be any size."""
    return shape is None or (
        len(shape) == len(there) and all(d in (-1, s) for d, s in zip(shape, there, strict=True))
    )


def _counts(step: Step, name: str) -> bool:
    """State that may have any shape, because the op that counts in it checks its size. Paddle fills
    auc's state with another shape than it declares.
    """
    return any(
        name in op.input(slot)
        for op in step.desc.blocks[0].ops
        for slot in traits(op.type).counters
    )


def _reshaped(step: Step, name: str) -> bool:
    """State that an op reshapes in place: it is declared with the last shape, and begins with the
    first.
    """
    moved = ((op, traits(op.type).carries) for op in step.desc.blocks[0].ops)
    return any(slot and name in op.input(slot) and name in op.writes for op, slot in moved)


def zeros(step: Step, name: str) -> np.ndarray | None:
    """The initial value of an accumulator that nothing sets; None for a variable that must be
    set.
    """
    var = step.begin_at_zero.get(name)
    return (
        None
        if var is None or var.dtype is None
        else np.zeros([max(n, 0) for n in var.shape or ()], numpy_dtype(var.dtype))
    )
