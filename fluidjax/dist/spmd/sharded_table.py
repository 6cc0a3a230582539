"""An embedding table over the devices of a mesh: each holds, looks up and updates some of the rows.

The functions run inside jax.shard_map, on the shard of one device:

    rows = lookup(shard, ids, split, "x")                      # ids of this device's part of the
    batch grad = SelectedRows(ids, d_rows, split.height) new = update("adagrad", {"Param": shard,
    "Moment": m, "LearningRate": lr}, {}, grad, split, "x")

ops/table.py describes the communication. Programs use ops for this (c_table_lookup, c_table_owned),
which tables.py writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ...errors import FluidValueError, UnsupportedError
from ...ops.registry import lookup as op_of
from ...ops.selected import SelectedRows
from ...ops.table import Split, lookup, owned


def make(
    split: Split, mesh: Mesh, axis: str, width: int, dtype: Any, values: Callable[[np.ndarray], Any]
) -> jax.Array:
    """A table as an array [count * each, width] over the mesh axis, made shard by shard: no device
    or host has all of it.

    values: returns the rows [n, width] for n row numbers. Raises FluidValueError if the axis does
    not have the split's size, or if `values` returns another shape.
    """
    if mesh.shape[axis] != split.count:
        raise FluidValueError(
            f"the table is split over {split.count} devices, but mesh axis {axis!r} has"
            f" {mesh.shape[axis]}"
        )

    def shard(index: Any) -> np.ndarray:
        rows = split.rows_of((index[0].start or 0) // split.each)
        meant = rows[rows < split.height]
        given = np.asarray(values(meant), dtype)
        if given.shape != (len(meant), width):
            raise FluidValueError(
                f"{len(meant)} rows of width {width} are wanted, not an array of shape"
                f" {list(given.shape)}"
            )
        result = np.zeros((split.each, width), dtype)
        result[rows < split.height] = given
        return result

    sharding = NamedSharding(mesh, PartitionSpec(axis))
    return jax.make_array_from_callback((split.count * split.each, width), sharding, shard)


def update(
    kind: str,
    inputs: Mapping[str, Any],
    attrs: Mapping[str, Any],
    grad: SelectedRows,
    split: Split,
    axis: str,
) -> dict[str, Any]:
    """Run optimizer op `kind` on this device's rows; returns the op's outputs, slot -> new value.

    inputs: the op's slots except Grad; Param and its accumulators are shards. grad: from this
    device's part of the batch, with row numbers of the whole table; the parts are summed. Raises
    UnsupportedError for an op without a sparse kernel.
    """
    definition = op_of(kind)
    if not any(slot.name == "Grad" and slot.selected for slot in definition.inputs):
        raise UnsupportedError(
            f"op '{kind}' cannot update rows of a table: it takes no sparse Grad; sgd, adagrad and"
            " adam do"
        )
    if definition.traits.update is None or not definition.traits.update.elements:
        raise UnsupportedError(
            f"op '{kind}' takes the norm of the whole table, so it cannot update one shard; sgd,"
            " adagrad and adam can"
        )
    return definition({**inputs, "Grad": owned(grad, split, axis)}, attrs)


__all__ = ["Split", "lookup", "make", "owned", "update"]
