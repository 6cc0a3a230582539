"""Ops whose number of output rows depends on data: where_index, unique, unique_with_counts.

If the data are known while a step is traced, the rows are too. Otherwise the outputs have room for
the largest possible number of rows, and the true number is data (``some_rows`` in ragged.py). No
LoD shows these padded rows; ops treat them as any padding.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..base.dtypes import name_of, numpy_dtype
from ..errors import ShapeError
from .concrete import known
from .infer import Spec
from .ragged import Ragged, filled, made_key, rows_of, some_rows
from .registry import Array, op
from .traits import knows_rows, rows_by


def some(count: Any, *rows: Any) -> list[Ragged]:
    """Values [capacity, ...] whose first `count` rows are true; one count for all values."""
    key = made_key()
    return [some_rows(r, count, key) for r in rows]


def _where_spec(Condition: Spec) -> Spec:
    return Spec((-1, Condition.ndim), "int64")


@op(
    outs="Out",
    infer=_where_spec,
    rows=knows_rows(),
    chosen=rows_by("Condition", "as many rows as Condition has elements"),
)
def where_index(Condition: Array | Ragged):
    """Out [n, rank of Condition] (int64) = where Condition is not 0, in its order."""
    found = None if isinstance(Condition, Ragged) else known(Condition)
    if found is not None:
        return np.argwhere(found).astype(np.int64)
    true = rows_of(Condition) != 0
    if isinstance(Condition, Ragged):
        true = filled(Condition.with_rows(true), False)
    rows = jnp.stack(jnp.nonzero(true, size=true.size, fill_value=0), axis=1).astype(np.int64)
    (out,) = some(jnp.sum(true), rows)
    return out


def _distinct(X: Any, dtype: int) -> tuple[Any, Any, Any]:
    """Out, Index and Count of unique_with_counts."""
    values, kind = rows_of(X), numpy_dtype(name_of(dtype))
    if values.ndim != 1:
        raise ShapeError(f"unique takes a vector, not {list(values.shape)}")
    found = None if isinstance(X, Ragged) else known(values)
    if found is not None:
        return _known_distinct(found, kind)
    size = values.shape[0]
    beyond = ~X.kept() if isinstance(X, Ragged) else jnp.zeros(size, bool)
    at = jnp.arange(size, dtype=np.int32)
    _, ordered, order = lax.sort([beyond, values, at], num_keys=2, is_stable=True)
    begins = jnp.concatenate([jnp.ones(min(size, 1), bool), ordered[1:] != ordered[:-1]])
    # where its group begins in the order: at its first element
    leader = lax.cummax(jnp.where(begins, at, 0))
    first = jnp.zeros(size, np.int32).at[order].set(order[leader])
    new = (first == at) & ~beyond
    index = (jnp.cumsum(new) - 1)[first]
    count = jnp.zeros(size, kind).at[jnp.where(beyond, size, index)].add(1, mode="drop")
    out, counts = some(jnp.sum(new), values[jnp.nonzero(new, size=size, fill_value=0)[0]], count)
    index = index.astype(kind)
    return out, X.with_rows(index) if isinstance(X, Ragged) else index, counts


def _known_distinct(
    values: np.ndarray, kind: np.dtype
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same for known values; here too, each nan is a separate value."""
    _, first, inverse, count = np.unique(
        values, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return values[first[order]], rank[inverse].astype(kind), count[order].astype(kind)


def _distinct_spec(X: Spec, *, dtype: int) -> tuple[Spec, Spec]:
    if X.ndim != 1:
        raise ShapeError(f"unique takes a vector, not {list(X.shape)}")
    return Spec((-1,), X.dtype), Spec(X.shape, name_of(dtype))


def _counted_spec(X: Spec, *, dtype: int) -> tuple[Spec, Spec, Spec]:
    return *_distinct_spec(X, dtype=dtype), Spec((-1,), name_of(dtype))


_BOUND = rows_by("X", "as many rows as X has elements")


@op(outs="Out Index", infer=_distinct_spec, rows=knows_rows(), chosen=_BOUND)
def unique(X: Array | Ragged, *, dtype: int):
    """Out = the values of X [N], each once, by first appearance; Index [N]: Out[Index] = X. nan
    equals nothing.
    """
    return _distinct(X, dtype)[:2]


@op(outs="Out Index Count", infer=_counted_spec, rows=knows_rows(), chosen=_BOUND)
def unique_with_counts(X: Array | Ragged, *, dtype: int):
    """Out and Index as in unique; Count: how often each of Out is in X. Index and Count have
    `dtype`.
    """
    return _distinct(X, dtype)
