"""similarity_focus: a mask of the places where chosen slices are greatest."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import ShapeError
from . import loops
from .registry import Array, Ints, op
from .traits import row_wise


def _focus(plane: Any) -> Any:
    """A mask [A, B] of min(A, B) cells of a plane [A, B]: the greatest cell, then the greatest in
    other rows and columns, and so on.
    """

    def step(free: tuple[Any, Any], cell: Any) -> tuple[tuple[Any, Any], Any]:
        rows, columns = free
        row, column = cell // plane.shape[1], cell % plane.shape[1]
        new = rows[row] & columns[column]
        return (
            rows.at[row].set(rows[row] & ~new),
            columns.at[column].set(columns[column] & ~new),
        ), new

    order = jnp.argsort(-plane.reshape(-1), stable=True).astype(np.int32)
    free = jnp.ones(plane.shape[0], bool), jnp.ones(plane.shape[1], bool)
    _, new = loops.scan(step, free, order)
    return (
        jnp.zeros(plane.size, plane.dtype)
        .at[order]
        .set(new.astype(plane.dtype))
        .reshape(plane.shape)
    )


@op(outs="Out", rows=row_wise("X"))
def similarity_focus(X: Array, *, axis: int, indexes: Ints):
    """Out = 1 where one of the slices X[n] at `indexes` of `axis` (1, 2 or 3) has its focus, else
    0; X [N, A, B, C].

    The focus of a slice: its greatest cell, then the greatest outside of the rows and columns
    already taken, until none is left; the first of equal cells.
    """
    if X.ndim != 4 or axis not in (1, 2, 3) or not indexes:
        raise ShapeError(
            "op 'similarity_focus' takes X of four axes, axis 1, 2 or 3 and indexes, not"
            f" {list(X.shape)}, {axis} and {list(indexes)}"
        )
    if not all(0 <= i < X.shape[axis] for i in indexes):
        raise ShapeError(
            f"op 'similarity_focus' takes indexes from 0 to {X.shape[axis] - 1} of axis {axis}, not"
            f" {list(indexes)}"
        )
    slices = jnp.take(X, np.asarray(indexes), axis=axis, unique_indices=False, mode="clip")
    planes = jnp.moveaxis(slices, axis, 1)  # [N, indexes, two other axes]
    mask = jax.vmap(jax.vmap(_focus))(planes).max(1)
    return jnp.broadcast_to(jnp.expand_dims(mask, axis), X.shape)
