"""Names that scripts take from fluid.layers and fluidjax lacks, with what to use instead."""

from __future__ import annotations

_GROUPS: tuple[tuple[str, str], ...] = (
    ("never was a layer; use fc", "dense"),
    ("never was a layer; use softmax_with_cross_entropy", "softmax_cross_entropy_with_logits"),
    ("never was a layer; scale one of them and use elementwise_add", "elementwise_add_with_weight"),
    ("was an op of its author's own; write it in Python (fluidjax.ops.registry.op)", "roi_pool_3d"),
)
HINTS = {name: hint for hint, names in _GROUPS for name in names.split()}
