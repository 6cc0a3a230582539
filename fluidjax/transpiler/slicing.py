"""Fluid's rule for cutting variables into blocks: a minimum of elements in each, whole rows, at
most one block for each pserver.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import FluidValueError


def block_sizes(shape: Sequence[int], count: int, min_block_size: int) -> list[int]:
    """The number of elements in each block of a variable of N elements.

    At most `count` blocks and at least `min_block_size` elements in each, as far as N allows: parts
    = min(count, max(1, N // min_block_size)), block = ceil(N / parts), rounded up to whole rows
    (elements of dimensions 1...), and the last block takes the rest. Rounding up may reduce the
    number of blocks.

    Raises FluidValueError for a count or a block size below 1, and for a shape with unknown
    dimensions.
    """
    if count < 1 or min_block_size < 1:
        raise FluidValueError(
            f"a variable is cut into 1 or more blocks of 1 or more elements, not {count} of"
            f" {min_block_size}"
        )
    if any(n < 1 for n in shape):
        raise FluidValueError(
            f"a variable of shape {list(shape)} cannot be cut into blocks: its dimensions must be"
            " known and positive"
        )
    total, row = math.prod(shape), math.prod(shape[1:])
    block = _ceil(total, min(count, max(1, total // min_block_size)))
    block = _ceil(block, row) * row if len(shape) >= 2 else block
    return [min(block, total - first) for first in range(0, total, block)]


def block_shapes(shape: Sequence[int], count: int, min_block_size: int) -> list[tuple[int, ...]]:
    """The shapes of the blocks: [rows, *shape[1:]] each. Raises the errors of block_sizes."""
    row = math.prod(shape[1:])
    return [(size // row, *shape[1:]) for size in block_sizes(shape, count, min_block_size)]


def slice_variable(var_list: Iterable[Any], slice_count: int, min_block_size: int) -> list[str]:
    """Fluid's form of block_sizes: ``"name:number:elements"`` of every block of every variable."""
    return [
        f"{var.name}:{i}:{size}"
        for var in var_list
        for i, size in enumerate(block_sizes(tuple(var.shape), slice_count, min_block_size))
    ]


def _ceil(a: int, b: int) -> int:
    return -(-a // b)
