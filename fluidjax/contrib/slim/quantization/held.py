"""The values of a scope for quantisation: read, written, created."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....base.dtypes import VarType
from ....errors import FluidValueError
from ....graph.ir_graph import IrGraph
from ....graph.ir_nodes import IrVarNode


def checked_scope(scope: Any, place: Any, what: str) -> None:
    """Raises FluidValueError if a scope or a place is missing."""
    missing = [n for n, v in (("scope", scope), ("place", place)) if v is None]
    if missing:
        raise FluidValueError(
            f"{what} needs the {' and the '.join(missing)} of the parameters: {what}(scope, place)"
        )


def read(scope: Any, name: str) -> np.ndarray:
    """A variable's value. Raises FluidValueError if the scope has none."""
    found = scope.find_var(name)
    if found is None:
        raise FluidValueError(
            f"the scope has no variable {name!r} to quantise; run the startup program or load the"
            " model in it first"
        )
    return np.array(found.get_tensor())


def write(scope: Any, place: Any, name: str, value: np.ndarray) -> None:
    scope.var(name).get_tensor().set(value, place)


def kept(
    graph: IrGraph, scope: Any, place: Any, name: str, like: IrVarNode, value: np.ndarray
) -> IrVarNode:
    """A node of a persistable variable, with a value in the dtype of `like`."""
    if scope is None or place is None:
        raise FluidValueError(
            f"variable {name!r} needs a value in a scope; give the pass a scope and a place"
        )
    dtype = "float64" if like.dtype() == VarType.FP64 else "float32"
    node = graph.create_persistable_node(name, VarType.LOD_TENSOR, value.shape, like.dtype())
    write(scope, place, name, value.astype(dtype))
    return node
