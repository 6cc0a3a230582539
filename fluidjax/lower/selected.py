"""Sparse rows as inputs of ops: an op that knows them gets them unchanged, and a few ops work on
their values alone.

Any other op raises an error with its name, as in Paddle's kernels, but before anything has run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import UnsupportedError
from ..ir.desc import OpDesc
from ..ops.registry import OpDef
from ..ops.selected import SelectedRows, mentions_rows
from ..ops.traits import ByValues
from .rows import Slots, Treated


def is_sparse(inputs: Mapping[str, Any]) -> bool:
    """Whether any input is sparse."""
    return any(mentions_rows(value) for value in inputs.values())


def treat_sparse(op: OpDesc, definition: OpDef, inputs: Slots) -> Treated:
    """How to run an op with some sparse inputs. Raises UnsupportedError if it takes only plain
    arrays.
    """
    knows = {s.name for s in definition.inputs if s.selected}
    slots = [slot for slot, value in inputs.items() if mentions_rows(value)]
    if knows.issuperset(slots):
        return Treated(inputs, lambda out: out)
    rule = definition.traits.sparse
    x = inputs["X"] if slots == ["X"] else None
    if (
        not isinstance(rule, ByValues)
        or not isinstance(x, SelectedRows)
        or (rule.scalar and inputs[rule.scalar].size != 1)
    ):
        raise _refusal(op, definition, next(s for s in slots if s not in knows))
    rows = x.merged() if rule.merged else x
    return Treated(
        {**inputs, "X": rows.values}, lambda out: {**out, "Out": rows.with_values(out["Out"])}
    )


def _refusal(op: OpDesc, definition: OpDef, slot: str) -> UnsupportedError:
    rule = definition.traits.sparse
    scalar = (
        f" unless {rule.scalar} has one element"
        if isinstance(rule, ByValues) and rule.scalar and slot == "X"
        else ""
    )
    return UnsupportedError(
        f"op '{op.type}' takes a plain array as {slot}{scalar}, but"
        f" {', '.join(map(repr, op.input(slot)))} is sparse (SELECTED_ROWS); build the embedding"
        " that it comes from without is_sparse"
    )
