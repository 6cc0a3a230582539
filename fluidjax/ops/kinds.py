"""Which ops write sparse rows, and which plain tensors, from the trait `sparse` (traits.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from .registry import GRAD, REGISTRY, OpDef, traits
from .selected import KIND
from .tensor_array import KIND as ARRAY
from .traits import ByValues, SparseGradient, StaysSparse

_DENSE = "LOD_TENSOR"


def kind_of_output(
    kind: str, attrs: Mapping[str, Any], kinds: Sequence[str], slot: str = "Out"
) -> str | None:
    """The VarDesc kind of output `slot` of an op of type `kind`, given the kinds of its inputs X;
    None if the op does not decide it.
    """
    table = _table_of_gradient(kind)
    if table is not None:
        return KIND if attrs.get(table.by) and slot == table.table + GRAD else _DENSE
    if not isinstance(traits(kind).sparse, ByValues | StaysSparse):
        return None
    if kinds and all(k == ARRAY for k in kinds):
        return None
    return KIND if kinds and all(k == KIND for k in kinds) else _DENSE


@cache
def decides_kind(definition: OpDef) -> bool:
    """Whether :func:`kind_of_output` decides for ops of this type; called for every appended op."""
    return (
        isinstance(definition.traits.sparse, ByValues | StaysSparse)
        or _table_of_gradient(definition.type) is not None
    )


def is_lookup(kind: str) -> bool:
    """Whether ops of this type look up rows of a table, whose gradient may be sparse, and do
    nothing else.
    """
    found = traits(kind).sparse
    return isinstance(found, SparseGradient) and found.looks_up


def is_lookup_grad(kind: str) -> bool:
    """Whether ops of this type are the gradients of such look-ups."""
    found = _table_of_gradient(kind)
    return found is not None and found.looks_up


def _table_of_gradient(kind: str) -> SparseGradient | None:
    found = REGISTRY.get(kind)
    forward = traits(found.forward).sparse if found and found.forward else None
    return forward if isinstance(forward, SparseGradient) else None
