"""Some of those that may be taken: the first, or any."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..greatest import first_greatest


def sampled(may: Any, most: Any, key: Any) -> tuple[Any, Any]:
    """Of those that hold in may [A], at most `most`: a mask [A], and the place of one of them.

    key: None for the first ones, else every set of that many is as likely.
    """
    if not may.shape[0]:
        return may, jnp.zeros((), np.int32)
    if key is None:
        taken = may & (jnp.cumsum(may) <= most)
        return taken, first_greatest(taken)
    order = jax.random.permutation(key, may.shape[0])
    ranked = may[order]
    some = ranked & (jnp.cumsum(ranked) <= most)
    taken = jnp.zeros_like(may).at[order].set(some)
    return taken, order[first_greatest(some)].astype(np.int32)
