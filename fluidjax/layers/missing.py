"""Names that fluid.layers had in Paddle 1.8.5 and fluidjax lacks, with what to use instead."""

from __future__ import annotations

_GROUPS: tuple[tuple[str, str], ...] = ()
HINTS = {name: hint for hint, names in _GROUPS for name in names.split()}
