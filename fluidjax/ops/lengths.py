"""Lengths: integers that are the lengths of sequences, together with these sequences.

Padding gives cells and lengths, and results computed from the cells are unpadded by the lengths.
Plain numbers would give the number of rows only when the step runs; with their origin, the rows get
the LoD of the padded value, which other values share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from .ragged import Ragged, copied


@dataclass(frozen=True, eq=False)
class Lengths:
    """The value of a slot that the op's trait `lengths` names, if it is known whose lengths they
    are.

    array: [N], as in the program. of: sequences of one level; only their offsets count.
    """

    array: Any
    of: Ragged


def same_numbers(value: Any, lengths: Any) -> bool:
    """Whether an array that holds the elements of `lengths` in another form still has them all,
    unchanged and in order.
    """
    wide = np.dtype(value.dtype) in (np.int32, np.int64)
    return wide and value.size == lengths.size and value.size == max(value.shape, default=1)


def unpadded(cells: Any, of: Ragged) -> Ragged:
    """The rows of cells [N, longest, ...] that belong to the sequences in `of`, with their LoD; the
    inverse of padding.
    """
    flat = cells.reshape(-1, *(cells.shape[2:] or (1,)))
    sequence = jnp.clip(of.sequence(), 0, max(of.sequences - 1, 0))
    at = jnp.arange(of.capacity, dtype=jnp.int32) - jnp.asarray(of.offsets[-1])[sequence]
    source = sequence * cells.shape[1] + jnp.clip(at, 0, max(cells.shape[1] - 1, 0))
    rows = of.with_rows(
        jnp.take(flat, source, axis=0, mode="clip") if flat.shape[0] else flat, bare=False
    )
    return rows.with_rows(copied(rows))
