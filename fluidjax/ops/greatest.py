"""The index of the greatest element."""

from __future__ import annotations

import numpy as np
from jax import Array, lax
from jax import numpy as jnp


def first_greatest(x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    """The index of the first of the greatest elements along `axis`, int32; without an axis, in the
    flattened array.

    jnp.argmax gives int64 if 64-bit types are enabled, as within an op, and a caller's jit without
    them cannot lower that.
    """
    if axis is None:
        x, axis = x.reshape(-1), 0
    found = lax.argmax(x, axis % x.ndim, np.int32)
    return jnp.expand_dims(found, axis) if keepdims else found
