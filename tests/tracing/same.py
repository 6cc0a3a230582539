"""Equality bit for bit of trees of arrays, random keys among them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def raw(value: Any) -> np.ndarray:
    value = jnp.asarray(value)
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    return np.asarray(value)


def check_same(expected: Any, found: Any) -> None:
    """Every leaf has the same shape, dtype and bits."""
    paths = jax.tree_util.tree_flatten_with_path(expected)[0]
    leaves = jax.tree.leaves(found)
    assert len(paths) == len(leaves)
    for (path, a), b in zip(paths, leaves, strict=True):
        where = jax.tree_util.keystr(path)
        assert (jnp.asarray(a).dtype, np.shape(a)) == (b.dtype, b.shape), where
        assert raw(a).tobytes() == raw(b).tobytes(), where
