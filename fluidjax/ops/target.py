"""How ops are lowered: what a step tells them besides their inputs and attributes.

An op that can be lowered in several ways has a keyword-only parameter ``target``, which is no
attribute. The caller of the op passes it; the default is PLAIN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# (product, geometry, its two arguments, nested) -> array; products as ops/convolution.py has them
Convolve = Callable[..., Any]


@dataclass(frozen=True)
class Target:
    """convolve: computes the three products of a convolution; None: XLA's own does. nested: the op
    stands in the block of a loop or of a branch. library: loops over elements will be a
    library's, which hands whole arrays from one to the next: fewer are faster then.
    """

    convolve: Convolve | None = None
    nested: bool = False
    library: bool = False


PLAIN = Target()
