"""Eigenvalues have no order of their own: LAPACK decides it, by the processor. They are compared in
whatever order they come.
"""

from __future__ import annotations

from typing import Any

import numpy as np

SLOTS = frozenset({("eig", "Eigenvalues"), ("eigvals", "Out")})


def as_ordered(op: str, slot: str, want: Any, got: Any) -> Any:
    """`got`, with the numbers of a spectrum in the order of those of `want` that they are nearest
    to; anything else as it is.
    """
    if (
        (op, slot) not in SLOTS
        or np.shape(want) != np.shape(got)
        or not (np.isfinite(want).all() and np.isfinite(got).all())
    ):
        return got
    ordered = np.array(got)
    for row in np.ndindex(ordered.shape[:-1]):
        left = list(ordered[row])
        # the largest first: it has the least to choose from
        for i in np.argsort(-np.abs(want[row])):
            ordered[row][i] = left.pop(int(np.argmin(np.abs(np.array(left) - want[row][i]))))
    return ordered
