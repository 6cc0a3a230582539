"""The lowering target: what a step passes to ops besides inputs and attributes.

An op with several lowerings has a keyword-only parameter ``target``, which is not an attribute. The
caller of the op passes it; the default is PLAIN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# (product, geometry, its two arguments, nested) -> array; products as ops/convolution.py has them
Convolve = Callable[..., Any]


@dataclass(frozen=True)
class Target:
    """convolve: computes the three products of a convolution; None: XLA's own. nested: the op is in
    the block of a loop or of a branch. library: a library runs the loops over elements and writes
    every intermediate array, so fewer loops are faster.
    """

    convolve: Convolve | None = None
    nested: bool = False
    library: bool = False


PLAIN = Target()
