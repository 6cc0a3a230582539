"""Making arrays, and moving their elements."""

from __future__ import annotations

import inspect

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..registry import Array, Ints, Scalar, Scalars, Size, Sizes
from .declare import dtype as dtype_of
from .declare import lax_op, scalar

_KNOWS_STABLE = "is_stable" in inspect.signature(lax.top_k).parameters


@lax_op("constant")
def constant(*, values: Scalars, shape: Ints, dtype: str):
    """Out = the values, row by row. Complex numbers are two values each: the real part, then the
    imaginary one.
    """
    kind = np.dtype(dtype_of(dtype))
    if kind.kind == "c":
        real, imag = np.asarray(values[::2]), np.asarray(values[1::2])
        return jnp.asarray((real + 1j * imag).astype(kind).reshape(shape))
    return jnp.asarray(np.asarray(values).astype(kind).reshape(shape))


@lax_op("full")
def full(*, value: Scalar, shape: Sizes, dtype: str):
    """Out[shape] = value everywhere."""
    return lax.full(tuple(shape), np.asarray(value, dtype_of(dtype)), dtype_of(dtype))


@lax_op("iota")
def iota(*, dtype: str, shape: Sizes, dimension: int):
    """Out[..., i, ...] = i along an axis."""
    return lax.broadcasted_iota(dtype_of(dtype), tuple(shape), dimension)


@lax_op("dim_as_value")
def dim_as_value(*, dim: Size, dtype: str):
    """Out = a size as a number of shape []."""
    return jnp.asarray(dim).astype(dtype_of(dtype))


@lax_op("empty")
def empty(*, shape: Sizes, dtype: str):
    """Out = an array whose elements nothing depends on: zeros."""
    return lax.full(tuple(shape), 0, dtype_of(dtype))


@lax_op("broadcast_in_dim", grad="X")
def broadcast_in_dim(X: Array, *, shape: Sizes, broadcast_dimensions: Ints):
    """Out[shape] = X, whose axis i is axis broadcast_dimensions[i] of Out."""
    return lax.broadcast_in_dim(X, tuple(shape), tuple(broadcast_dimensions))


@lax_op("reshape", grad="X")
def reshape(X: Array, *, new_sizes: Sizes, dimensions: Ints = ()):
    """Out[new_sizes] = the elements of X in row-major order, with its axes in the order
    `dimensions` if given.
    """
    return lax.reshape(X, tuple(new_sizes), tuple(dimensions) or None)


@lax_op("squeeze", grad="X")
def squeeze(X: Array, *, dimensions: Ints):
    """Out = X without these axes of size 1."""
    return lax.squeeze(X, tuple(dimensions))


@lax_op("expand_dims", grad="X")
def expand_dims(X: Array, *, dimensions: Ints):
    """Out = X with axes of size 1 at these places."""
    return lax.expand_dims(X, tuple(dimensions))


@lax_op("transpose", grad="X")
def transpose(X: Array, *, permutation: Ints):
    """Out = X, whose axis permutation[i] becomes axis i."""
    return lax.transpose(X, tuple(permutation))


@lax_op("rev", grad="X")
def rev(X: Array, *, dimensions: Ints):
    """Out = X reversed along these axes."""
    return lax.rev(X, tuple(dimensions))


@lax_op("concatenate", grad="X")
def concatenate(X: list[Array], *, dimension: int):
    """Out = the arrays concatenated along an axis."""
    return lax.concatenate(X, dimension)


@lax_op("split", outs="Out*", grad="X")
def split(X: Array, *, sizes: Sizes, axis: int):
    """Out = pieces of X of these sizes along an axis."""
    return list(lax.split(X, tuple(sizes), axis))


@lax_op("stack", grad="X")
def stack(X: list[Array], *, axis: int = 0):
    """Out = the arrays stacked along a new axis."""
    return jnp.stack(X, axis)


@lax_op("unstack", outs="Out*", grad="X")
def unstack(X: Array, *, axis: int = 0):
    """Out = the entries of X along an axis."""
    return list(jnp.unstack(X, axis=axis))


@lax_op("tile", grad="X")
def tile(X: Array, *, reps: Sizes):
    """Out = X repeated along each axis."""
    return jnp.tile(X, tuple(reps))


@lax_op("pad", grad="X Value")
def pad(
    X: Array, Value: Array | None, *, low: Sizes, high: Sizes, interior: Ints, value: Scalar = None
):
    """Out = X with cells of Value before, after, and between the cells of each axis; negative
    numbers remove cells.
    """
    config = tuple(zip(low, high, interior, strict=True))
    return lax.pad(X, scalar(value, X) if Value is None else Value, config)


@lax_op("slice", grad="X")
def slice(X: Array, *, start_indices: Sizes, limit_indices: Sizes, strides: Ints = ()):
    """Out = X[start:limit:stride] along each axis."""
    return lax.slice(X, tuple(start_indices), tuple(limit_indices), tuple(strides) or None)


@lax_op("sort", outs="Out*", grad="X", heavy=True)
def sort(X: list[Array], *, dimension: int, is_stable: bool = True, num_keys: int = 1):
    """Out = the arrays sorted along an axis by the first num_keys of them."""
    found = lax.sort(tuple(X), dimension=dimension, is_stable=is_stable, num_keys=num_keys)
    return list(found)


@lax_op("top_k", outs="Out Indices", grad="X", nograd="", heavy=True)
def top_k(X: Array, *, k: Size, axis: int = -1, is_stable: bool = True):
    """Out, Indices (int32) = the k largest along an axis, largest first, and their indices.

    Equal ones keep their order, unless is_stable is False, which JAX before 0.12 does not support.
    """
    asked = {} if is_stable or not _KNOWS_STABLE else {"is_stable": False}
    return tuple(lax.top_k(X, k, axis=axis, **asked))
