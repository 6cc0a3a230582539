"""hash: rows of integers as numbers below a bound."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ..errors import FluidValueError, ShapeError
from .registry import Array, Int64, op
from .traits import row_wise
from .xxhash import words_of, xxh64


@op(outs="Out", rows=row_wise("X"))
def hash(X: Array, *, num_hash: int = 1, mod_by: Int64 = 100000):
    """Out [N, num_hash, 1] = xxHash64 of row X[i] with the seeds 0, 1, ... num_hash - 1, modulo
    mod_by.

    X [N, n] (int32, int64): the bytes of a row are hashed, so equal numbers of the two dtypes give
    different hashes.
    """
    if X.ndim != 2 or X.dtype not in (np.int32, np.int64):
        raise ShapeError(f"hash takes X [N, n] of int32 or int64, not {list(X.shape)} of {X.dtype}")
    if num_hash < 1 or mod_by < 1:
        raise FluidValueError(
            f"hash takes num_hash and mod_by of at least 1, not {num_hash} and {mod_by}"
        )
    words = words_of(jnp.asarray(X))
    hashes = jnp.stack([xxh64(words, seed) for seed in range(num_hash)], -1)
    return (hashes % np.uint64(mod_by)).astype(X.dtype)[..., None]
