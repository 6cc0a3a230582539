"""Weights of nets of flax and haiku, and normal numbers, drawn by NumPy: JAX would compile a program
for every shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

AROUND_ONE = ("scale", "var", "average")  # factors and variances


def weights(init: Callable[..., Any], *args: Any) -> Any:
    """What init(*args) returns, with values as a short training leaves them: none is 0 or 1."""
    draw = np.random.default_rng(3)

    def value(path: tuple[Any, ...], leaf: Any) -> Any:
        if not jnp.issubdtype(leaf.dtype, jnp.floating):
            return jnp.asarray(np.zeros(leaf.shape, leaf.dtype))
        if leaf.ndim >= 2:
            drawn = draw.normal(0.0, 1 / math.sqrt(math.prod(leaf.shape[:-1])), leaf.shape)
        else:
            centre = float(getattr(path[-1], "key", "") in AROUND_ONE)
            drawn = draw.uniform(centre - 0.1, centre + 0.1, leaf.shape)
        return jnp.asarray(drawn.astype(leaf.dtype))

    return jax.tree_util.tree_map_with_path(value, jax.eval_shape(init, *args))


def normal(*shape: int, seed: int = 0, dtype: Any = jnp.float32) -> jax.Array:
    drawn = np.random.default_rng(seed).standard_normal(shape)
    return jnp.asarray(drawn.astype(jnp.dtype(dtype)))
