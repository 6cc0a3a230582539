"""Ops of Paddle 2 and 3 whose number of output rows depends on data: masked_select,
unique_consecutive, and unique with its attributes.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ..base.dtypes import name_of, numpy_dtype
from ..errors import ShapeError
from .chosen import some
from .concrete import known
from .infer import Spec
from .ragged import Ragged, filled, rows_of
from .registry import Array, Ints, grad_of, op
from .traits import knows_rows, rows_by


def _true(X: Any, Mask: Any) -> Any:
    """Mask, broadcast to X's shape."""
    mask = filled(Mask, False) if isinstance(Mask, Ragged) else Mask
    return jnp.broadcast_to(mask, rows_of(X).shape)


@op(
    outs="Y",
    infer=lambda X, Mask: Spec((-1,), X.dtype),
    rows=knows_rows(),
    chosen=rows_by("Mask", "as many rows as X has elements"),
)
def masked_select(X: Array | Ragged, Mask: Array | Ragged):
    """Y [n] = the elements of X where Mask, which broadcasts to it, is true."""
    found = known(Mask) if not isinstance(X, Ragged) and not isinstance(Mask, Ragged) else None
    if found is not None:
        return jnp.asarray(X).reshape(-1)[np.flatnonzero(np.broadcast_to(found, X.shape))]
    true = _true(X, Mask).reshape(-1)
    flat = rows_of(X).reshape(-1)
    (out,) = some(jnp.sum(true), flat[jnp.nonzero(true, size=true.size, fill_value=0)[0]])
    return out


@grad_of("masked_select", "X Mask", nograd="Mask", ragged="Y@GRAD")
def masked_select_grad(X: Array | Ragged, Mask: Array | Ragged, d_Y: Array | Ragged):
    """X@GRAD = Y@GRAD where it came from, else 0."""
    true, d = _true(X, Mask), rows_of(d_Y)
    if not d.size:
        return jnp.zeros(true.shape, d.dtype)
    at = jnp.cumsum(true.reshape(-1)) - 1
    return jnp.where(true, d[jnp.clip(at, 0, d.size - 1)].reshape(true.shape), 0)


def _runs_spec(
    X: Spec, *, return_inverse: bool, return_counts: bool, axis: Ints, dtype: int
) -> tuple[Spec, Spec, Spec]:
    kind = name_of(dtype)
    size = (
        X.shape[axis[0]] if axis else (-1 if min(X.shape, default=0) < 0 else int(np.prod(X.shape)))
    )
    shape = (
        tuple(-1 if i == axis[0] % X.ndim else n for i, n in enumerate(X.shape)) if axis else (-1,)
    )
    return Spec(shape, X.dtype), Spec((size,), kind), Spec((-1,), kind)


@op(
    outs="Out Index? Counts?",
    infer=_runs_spec,
    rows=knows_rows(),
    chosen=rows_by("X", "as many rows as X has along the axis"),
)
def unique_consecutive(
    X: Array | Ragged,
    *,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Ints = (),
    dtype: int = 3,
):
    """Out = X with one of each run of equal values (of equal slices along `axis`, which must be the
    first); Index, Counts of `dtype`.

    Index: the position in Out of each element of X. Counts: the length of each run.
    """
    if isinstance(X, Ragged) or (axis and axis[0] % X.ndim):
        raise ShapeError(
            "unique_consecutive takes a plain tensor, of all elements or along its first axis"
        )
    x = jnp.asarray(X) if axis else jnp.asarray(X).reshape(-1)
    kind, size = numpy_dtype(name_of(dtype)), x.shape[0]
    flat = x.reshape(size, -1)
    begins = jnp.concatenate([jnp.ones(min(size, 1), bool), jnp.any(flat[1:] != flat[:-1], 1)])
    index = jnp.cumsum(begins) - 1
    at = jnp.nonzero(begins, size=size, fill_value=0)[0]
    counts = jnp.zeros(size, kind).at[index].add(1)
    if known(X) is not None:
        n = int(np.asarray(begins).sum())
        return x[at[:n]], index.astype(kind), counts[:n]
    out, lengths = some(jnp.sum(begins), x[at], counts)
    return out, index.astype(kind), lengths
