"""An embedding table over the devices of a mesh: each holds some of the rows, looks those up and updates those.

The functions run inside jax.shard_map, on the shard of one device:

    rows = lookup(shard, ids, split, "x")                      # ids of this device's part of the batch
    grad = SelectedRows(ids, d_rows, split.height)
    new = update("adagrad", {"Param": shard, "Moment": m, "LearningRate": lr}, {}, grad, split, "x")

What travels depends on the batch alone: all devices see all ids, the rows that answer them come home in a reduce-scatter
(one device has each, the others add zeros), and gradients go to everybody as (ids, values), of which each device keeps its
own. Nothing as high as the table is ever made. All devices have equally many ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ..errors import FluidValueError, UnsupportedError
from ..ops.registry import lookup as op_of
from ..ops.selected import SelectedRows


@dataclass(frozen=True)
class Split:
    """Which of `count` devices has which of `height` rows, and where. dealt: row r is row r // count of device r % count,
    as in Fluid's is_distributed tables; else devices have runs of equal length, one after another.
    """

    height: int
    count: int
    dealt: bool = False

    def __post_init__(self) -> None:
        if self.height < 1 or self.count < 1:
            raise FluidValueError(f"a table of {self.height} rows cannot be split over {self.count} devices")

    @property
    def each(self) -> int:
        """How many rows a device holds: ceil(height / count). Those past the end are zeros that nobody names."""
        return -(-self.height // self.count)

    def owner(self, rows: Any) -> Any:
        """The device of each row."""
        return rows % self.count if self.dealt else rows // self.each

    def place(self, rows: Any) -> Any:
        """Where each row is on its device."""
        return rows // self.count if self.dealt else rows % self.each

    def rows_of(self, device: int) -> np.ndarray:
        """The row numbers of a device in order, [each] int64; those from `height` on are spare."""
        rows = np.arange(self.each, dtype=np.int64)
        return rows * self.count + device if self.dealt else rows + device * self.each

    def joined(self, shards: Any) -> np.ndarray:
        """The whole table [height, ...] on the host, from the shards one after another [count * each, ...]."""
        shards = np.asarray(shards)
        order = np.concatenate([self.rows_of(k) for k in range(self.count)])
        table = np.empty((self.height, *shards.shape[1:]), shards.dtype)
        table[order[order < self.height]] = shards[order < self.height]
        return table


def make(split: Split, mesh: Mesh, axis: str, width: int, dtype: Any, values: Callable[[np.ndarray], Any]) -> jax.Array:
    """A table as an array [count * each, width] over the mesh axis, made shard by shard: no device or host has all of it.

    values: gives the rows [n, width] for n row numbers. Raises FluidValueError if the axis is not as long as the split,
    or if `values` gives another shape.
    """
    if mesh.shape[axis] != split.count:
        raise FluidValueError(f"the table is split over {split.count} devices, but mesh axis {axis!r} has {mesh.shape[axis]}")

    def shard(index: Any) -> np.ndarray:
        rows = split.rows_of((index[0].start or 0) // split.each)
        meant = rows[rows < split.height]
        given = np.asarray(values(meant), dtype)
        if given.shape != (len(meant), width):
            raise FluidValueError(f"{len(meant)} rows of width {width} are wanted, not an array of shape {list(given.shape)}")
        result = np.zeros((split.each, width), dtype)
        result[rows < split.height] = given
        return result

    sharding = NamedSharding(mesh, PartitionSpec(axis))
    return jax.make_array_from_callback((split.count * split.each, width), sharding, shard)


def lookup(shard: Any, ids: Any, split: Split, axis: str, padding_idx: int = -1) -> Any:
    """Out[..., :] = table[ids[...], :], 0 where the id is padding_idx (-1: none). ids are those of this device."""
    asked = jax.lax.all_gather(_narrow(ids.reshape(-1), split), axis, tiled=True)
    mine = (split.owner(asked) == jax.lax.axis_index(axis)) & (asked != padding_idx)
    found = shard.at[jnp.where(mine, split.place(asked), 0)].get(mode="promise_in_bounds")
    answers = jnp.where(mine[:, None], found, np.zeros((), shard.dtype))
    rows = jax.lax.psum_scatter(answers, axis, tiled=True)
    return rows.reshape(*ids.shape, shard.shape[1])


def owned(grad: SelectedRows, split: Split, axis: str) -> SelectedRows:
    """The sum over the devices of a sparse gradient, as far as its rows are on this device: rows of the shard."""
    if grad.height != split.height:
        raise FluidValueError(f"the gradient is of a table with {grad.height} rows, but {split.height} are split over the devices")
    rows, values = (jax.lax.all_gather(x, axis, tiled=True) for x in (_narrow(grad.rows, split), grad.values))
    mine = (split.owner(rows) == jax.lax.axis_index(axis)) & (rows < split.height)
    return SelectedRows(
        jnp.where(mine, split.place(rows), split.each),
        jnp.where(mine[:, None], values, np.zeros((), values.dtype)),
        split.each,
    )


def update(
    kind: str, inputs: Mapping[str, Any], attrs: Mapping[str, Any], grad: SelectedRows, split: Split, axis: str
) -> dict[str, Any]:
    """Run optimizer op `kind` on this device's rows: slot -> new value, as the op gives them.

    inputs: the op's slots but Grad; Param and its accumulators are shards. grad: of this device's part of the batch, in
    row numbers of the whole table; the parts are added up. Raises UnsupportedError for an op without a sparse kernel.
    """
    definition = op_of(kind)
    if not any(slot.name == "Grad" and slot.selected for slot in definition.inputs):
        raise UnsupportedError(f"op '{kind}' cannot update rows of a table: it takes no sparse Grad; sgd, adagrad and adam do")
    if kind == "lamb":
        raise UnsupportedError("op 'lamb' takes the norm of the whole table, so it cannot update one shard; sgd, adagrad and adam can")
    return definition({**inputs, "Grad": owned(grad, split, axis)}, attrs)


def _narrow(rows: Any, split: Split) -> Any:
    return rows.astype(np.int32) if 2 * split.count * split.each < 2**31 else rows
