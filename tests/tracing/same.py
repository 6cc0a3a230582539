"""Equality bit for bit of trees of arrays, random keys among them; and modules by hand."""

from __future__ import annotations

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx


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


def as_function(fn: Any, args: Any) -> tuple[Any, tuple[Any, ...]]:
    """A module that is called, as flax nnx and equinox write it: a function of its arrays; and any
    other function as it is.
    """
    if isinstance(fn, nnx.Module):
        graph, state = nnx.split(fn)

        def called(arrays: Any, *args: Any, **kwargs: Any) -> Any:
            mine = jax.tree.map(lambda v: v, state)
            nnx.replace_by_pure_dict(mine, arrays)
            model = nnx.merge(graph, mine)
            out = model(*args, **kwargs)
            return nnx.to_pure_dict(nnx.state(model)), out

        return called, (nnx.to_pure_dict(state), *args)
    if "equinox" in sys.modules and isinstance(fn, (eqx := sys.modules["equinox"]).Module):
        arrays, rest = eqx.partition(fn, eqx.is_array)
        return lambda a, *args, **kwargs: eqx.combine(a, rest)(*args, **kwargs), (arrays, *args)
    return fn, tuple(args)
