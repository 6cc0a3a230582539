"""The names of feeds, and the fed variables that have a value before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .program import Program


def fed_names(feed: Any) -> list[str]:
    """The names of a feed, or of several."""
    parts = feed if isinstance(feed, list | tuple) else [feed or {}]
    return [name for part in parts for name in (part if isinstance(part, Mapping) else ())]


def given_before(program: Program, feed: Any) -> frozenset[str]:
    """The fed variables (fed by the caller or by the program's readers) that have a value before
    the step. These are persistable variables, which keep the fed value as in Fluid, and variables
    written by a block that may not run.
    """
    names = fed_names(feed)
    names += [name for reader in program.info.readers for name in reader.names]
    block = program.desc.blocks[0]
    known = [
        (n, var)
        for n in names
        if (var := block.vars.get(n)) is not None and not (var.is_data or var.need_check_feed)
    ]
    by_blocks = {n for op in block.ops if op.blocks for n in op.writes} if known else set()
    persistable = {n for n in names if n in block.vars and block.vars[n].persistable}
    return frozenset(persistable | {n for n, _ in known if n in by_blocks})
