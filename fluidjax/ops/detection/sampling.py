"""Sampling of candidates: the first ones, or random ones."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..greatest import first_greatest


def sampled(may: Any, most: Any, key: Any) -> tuple[Any, Any]:
    """At most `most` of the true elements of may [A]: a mask [A], and the position of one of them.

    key: None for the first ones; otherwise every set of that size is equally likely.
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
