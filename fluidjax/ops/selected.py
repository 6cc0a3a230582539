"""SelectedRows: some rows of a table, for instance the gradient of an ``is_sparse`` embedding. See
docs/sparse.md.

Row ``rows[i]`` of the table is ``values[i]``; repeated rows add up, and all others are zero.
Merging repeated rows (:meth:`SelectedRows.merged`) keeps the number of entries, since sizes are
fixed in a compiled step: spare entries are zero, with row numbers past the end, which no scatter
writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..errors import ShapeError

KIND = "SELECTED_ROWS"


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("rows", "values"),
    meta_fields=("height", "unique"),
)
@dataclass(frozen=True)
class SelectedRows:
    """Rows of a table of shape [height, width].

    rows: integers [n]. values: [n, width]. height: the number of rows of the table. unique: the
    rows ascend without repetition; entries with rows from `height` on are spare and hold zeros.
    """

    rows: Any
    values: Any
    height: int
    unique: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the table."""
        return (self.height, *self.values.shape[1:])

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    @property
    def count(self) -> Any:
        """The number of entries that are not spare, a scalar."""
        return jnp.sum(self.rows < self.height, dtype=jnp.int32)

    def with_values(self, values: Any) -> SelectedRows:
        """Other values of the same rows; the spare entries stay zero."""
        if self.unique:
            values = jnp.where(
                _column(self.rows < self.height, values.ndim), values, np.zeros((), values.dtype)
            )
        return replace(self, values=values)

    def merged(self) -> SelectedRows:
        """The same rows in ascending order, with the values of equal rows added up."""
        if self.unique:
            return self
        n = self.rows.shape[0]
        spare = self.height + jnp.arange(n, dtype=_narrow(self.height + n))
        order = jnp.argsort(self.rows.astype(spare.dtype), stable=True)
        rows = self.rows.astype(spare.dtype)[order]
        first = jnp.concatenate([jnp.ones((min(n, 1),), bool), rows[1:] != rows[:-1]])
        place = jnp.cumsum(first, dtype=jnp.int32) - 1
        values = (
            jnp.zeros_like(self.values).at[place].add(self.values[order], indices_are_sorted=True)
        )
        rows = spare.at[place].set(rows, indices_are_sorted=True)
        return SelectedRows(
            jnp.where(rows < self.height, rows, spare), values, self.height, unique=True
        )

    def dense(self) -> jax.Array:
        """The table, [height, width]."""
        return self.added_to(jnp.zeros(self.shape, self.dtype))

    def on_host(self) -> SelectedRows:
        """NumPy arrays without the spare entries, rows int64. Results stacked by run_steps keep
        them, so that all have one size.
        """
        rows, values = np.array(self.rows, np.int64), np.array(self.values)
        if rows.ndim == 1:
            rows, values = rows[rows < self.height], values[rows < self.height]
        return replace(self, rows=rows, values=values)

    def table(self) -> np.ndarray:
        """The table on the host; for results stacked by run_steps, one table per step."""
        rows, values = np.array(self.rows), np.array(self.values)
        table = np.zeros((*rows.shape[:-1], self.height, *values.shape[rows.ndim :]), values.dtype)
        at = np.nonzero(rows < self.height)
        np.add.at(table, (*at[:-1], rows[at]), values[at])
        return table

    def of(self, table: Any) -> Any:
        """The rows of another table at these row numbers, [n, width]; the last row for spare
        entries.
        """
        index = jnp.minimum(self.rows, self.height - 1)
        return (
            jnp.asarray(table)
            .at[index]
            .get(
                mode="promise_in_bounds",
                wrap_negative_indices=False,
                indices_are_sorted=self.unique,
            )
        )

    def added_to(self, table: Any) -> jax.Array:
        """`table` with the values added to the rows. Only those rows are touched."""
        return (
            jnp.asarray(table)
            .at[self.rows]
            .add(
                self.values,
                mode="drop",
                wrap_negative_indices=False,
                indices_are_sorted=self.unique,
                unique_indices=self.unique,
            )
        )

    def put_into(self, table: Any) -> jax.Array:
        """`table` with the rows replaced by the values; the rows must be unique. Only those are
        touched.
        """
        return (
            jnp.asarray(table)
            .at[self.rows]
            .set(
                self.values,
                mode="drop",
                wrap_negative_indices=False,
                indices_are_sorted=True,
                unique_indices=True,
            )
        )


def _narrow(limit: int) -> Any:
    return np.int32 if limit < 2**31 else np.int64


def _column(flags: Any, ndim: int) -> Any:
    return flags.reshape(flags.shape + (1,) * (ndim - 1))


def total(values: Sequence[Any]) -> Any:
    """The sum of sparse and plain arrays of one shape: merged rows if all are sparse, else an
    array.
    """
    if len({tuple(v.shape) for v in values}) > 1:
        raise ShapeError(
            "op 'sum' takes inputs of one shape, not"
            f" {', '.join(str(list(v.shape)) for v in values)}"
        )
    sparse = [v for v in values if isinstance(v, SelectedRows)]
    plain = [v for v in values if not isinstance(v, SelectedRows)]
    if plain:
        result = plain[0]
        for v in plain[1:]:
            result = result + v
        for s in sparse:
            result = s.added_to(result)
        return result
    rows = lax.concatenate([s.rows.astype(_narrow(s.height + s.rows.shape[0])) for s in sparse], 0)
    return SelectedRows(
        rows, lax.concatenate([s.values for s in sparse], 0), sparse[0].height
    ).merged()


def values_of(value: Any) -> Any:
    """The values of sparse rows; any other value unchanged."""
    return value.values if isinstance(value, SelectedRows) else value


def mentions_rows(value: Any) -> bool:
    """Whether an input slot's value is, or lists, sparse rows."""
    return type(value) is SelectedRows or (
        type(value) is list and any(type(v) is SelectedRows for v in value)
    )
