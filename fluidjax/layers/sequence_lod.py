"""Fluid's module name for the sequence layers."""

from typing import TYPE_CHECKING

from ..base.absent import reporter
from .index import sequence_mask
from .missing import HINTS
from .sequence import (
    sequence_concat,
    sequence_expand,
    sequence_expand_as,
    sequence_first_step,
    sequence_last_step,
    sequence_pad,
    sequence_pool,
    sequence_reverse,
    sequence_softmax,
)

__all__ = [
    "sequence_concat", "sequence_expand", "sequence_expand_as", "sequence_first_step", "sequence_last_step",
    "sequence_mask", "sequence_pad", "sequence_pool", "sequence_reverse", "sequence_softmax",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.layers.sequence_lod", __all__, HINTS)
