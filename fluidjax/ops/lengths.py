"""Lengths: integers that are the lengths of some sequences, with these sequences.

Padding gives cells and lengths, and what is computed of the cells is unpadded by the lengths.
Numbers alone would say how many rows there are when the step runs; with their origin the rows have
the LoD of what was padded, which other values share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from .ragged import Ragged, copied


@dataclass(frozen=True, eq=False)
class Lengths:
    """What an op is given in a slot that its trait `lengths` names, where it is known whose lengths
    they are.

    array: [N], as the program has it. of: sequences of one level; only their offsets count.
    """

    array: Any
    of: Ragged


def same_numbers(value: Any, lengths: Any) -> bool:
    """Whether an array that holds the elements of `lengths` in another form still holds each as it
    was, in their order.
    """
    wide = np.dtype(value.dtype) in (np.int32, np.int64)
    return wide and value.size == lengths.size and value.size == max(value.shape, default=1)


def unpadded(cells: Any, of: Ragged) -> Ragged:
    """The rows of cells [N, longest, ...] that have one of the sequences in `of`, with their LoD;
    the inverse of padding them.
    """
    flat = cells.reshape(-1, *(cells.shape[2:] or (1,)))
    sequence = jnp.clip(of.sequence(), 0, max(of.sequences - 1, 0))
    at = jnp.arange(of.capacity, dtype=jnp.int32) - jnp.asarray(of.offsets[-1])[sequence]
    source = sequence * cells.shape[1] + jnp.clip(at, 0, max(cells.shape[1] - 1, 0))
    rows = of.with_rows(
        jnp.take(flat, source, axis=0, mode="clip") if flat.shape[0] else flat, bare=False
    )
    return rows.with_rows(copied(rows))
