"""shuffle_batch: rows in random order, by a seed that the op passes from run to run."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .index import take
from .ragged import Ragged, rows_of
from .registry import Array, grad_of, op
from .traits import follows, knows_rows


def _order(seed: Any, rows: int, count: Any) -> Any:
    """The sources of the rows, int64 [rows]: the first `count` in random order, the rest (padding)
    unchanged.
    """
    at = jnp.arange(rows, dtype=np.int64)
    # bit i does not depend on the number of rows
    drawn = jax.random.bits(jax.random.key(seed), (rows,), np.uint32)
    return lax.sort([at >= count, jnp.where(at < count, drawn, 0), at], num_keys=3)[2]


@op(
    outs="Out ShuffleIdx SeedOut",
    rows=knows_rows(Out="X", each=""),
    passes_over=("Seed",),
    ranks=follows(SeedOut="Seed"),
)
def shuffle_batch(X: Array | Ragged, Seed: Array, *, startup_seed: int = 0):
    """Out[i] = X[ShuffleIdx[i]]: the rows (all dims but the last) in random order, determined by
    Seed.

    Seed, SeedOut int64 [1]. A Seed that is 0 or unset counts as startup_seed; SeedOut is the seed
    of the next shuffle.
    """
    x, wide = rows_of(X), rows_of(X).shape[-1]
    rows = x.reshape(-1, wide)
    seed = jnp.where(Seed.reshape(()) == 0, startup_seed, Seed.reshape(()))
    count = (
        rows.shape[0]
        if not isinstance(X, Ragged)
        else X.count * (rows.shape[0] // max(X.capacity, 1))
    )
    order = _order(seed, rows.shape[0], count)
    out = take(rows, order[:, None]).reshape(x.shape)
    following = jax.random.randint(jax.random.key(seed), (1,), 1, 2**31 - 1, np.int64)
    if not isinstance(X, Ragged):
        return out, order, following
    return X.with_rows(out), X.with_rows(order, bare=True) if x.ndim == 2 else order, following


@grad_of("shuffle_batch", "ShuffleIdx", nograd="Seed", grad_outs="Out")
def shuffle_batch_grad(ShuffleIdx: Array, d_Out: Array):
    """d_X[ShuffleIdx[i]] = d_Out[i]."""
    rows = d_Out.reshape(-1, d_Out.shape[-1])
    return take(rows, jnp.argsort(ShuffleIdx)[:, None]).reshape(d_Out.shape)
