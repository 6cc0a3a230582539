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
from .sequence_rows import (
    sequence_conv,
    sequence_enumerate,
    sequence_reshape,
    sequence_scatter,
    sequence_slice,
    sequence_unpad,
)

__all__ = [
    "sequence_concat", "sequence_conv", "sequence_enumerate", "sequence_expand", "sequence_expand_as", "sequence_first_step",
    "sequence_last_step", "sequence_mask", "sequence_pad", "sequence_pool", "sequence_reshape", "sequence_reverse",
    "sequence_scatter", "sequence_slice", "sequence_softmax", "sequence_unpad",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.layers.sequence_lod", __all__, HINTS)
