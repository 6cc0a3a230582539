"""The kind of variable that an op writes: sparse rows or a plain tensor, from the trait `sparse` (traits.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .registry import REGISTRY, traits
from .selected import KIND
from .traits import ByValues, SparseGradient, StaysSparse

_DENSE = "LOD_TENSOR"


def kind_of_output(kind: str, attrs: Mapping[str, Any], kinds: Sequence[str]) -> str | None:
    """The VarDesc kind of the output of an op of type `kind`, given those of its inputs in X; None where it has no say."""
    found = REGISTRY.get(kind)
    table = traits(found.forward).sparse if found and found.forward else None
    if isinstance(table, SparseGradient):
        return KIND if attrs.get(table.by) else _DENSE
    if not isinstance(traits(kind).sparse, ByValues | StaysSparse):
        return None
    return KIND if kinds and all(k == KIND for k in kinds) else _DENSE
