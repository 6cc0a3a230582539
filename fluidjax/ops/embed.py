"""Embedding tables and one-hot vectors.

Ids are trusted inside a step: the executor checks the range of those that are fed.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ..base.dtypes import name_of, numpy_dtype
from ..errors import ShapeError
from .bounds import depth_variable, one_hot_depth, table_height
from .concrete import integers
from .index import narrow, put, take
from .infer import Spec
from .registry import Array, Int64, Longs, SelectedRows, Strs, grad_of, op
from .traits import Bounds, SparseGradient, row_wise, sizes_from

NO_PADDING = -1


def _looked_up(W: Array, ids: Array, padding_idx: int) -> Array:
    if W.ndim != 2:
        raise ShapeError(f"a table of an embedding is [height, width], not {list(W.shape)}")
    ids = narrow(ids, W.shape[:1])
    rows = take(W, ids[..., None])
    if padding_idx == NO_PADDING:
        return rows
    return jnp.where((ids == padding_idx)[..., None], np.zeros((), W.dtype), rows)


def _table_grad(W: Array, ids: Array, d_Out: Array, padding_idx: int) -> Array:
    """Zeros like W with d_Out added at ids. Padding ids point past the end, where put drops them:
    cheaper than masking d_Out.
    """
    ids = narrow(ids, (W.shape[0] + 1,)).reshape(-1)
    if padding_idx != NO_PADDING:
        ids = jnp.where(ids == padding_idx, np.asarray(W.shape[0], ids.dtype), ids)
    return put(
        jnp.zeros(W.shape, d_Out.dtype), ids[:, None], d_Out.reshape(-1, W.shape[1]), add=True
    )


def _last_one(op_type: str, ids: Array) -> Array:
    if ids.shape[-1:] != (1,):
        raise ShapeError(f"op '{op_type}' takes ids of shape [..., 1], not {list(ids.shape)}")
    return ids.reshape(ids.shape[:-1])


@op(
    outs="Out",
    rows=row_wise("Ids"),
    sparse=SparseGradient(by="is_sparse", table="W"),
    bounds=Bounds("Ids", "ids", table_height),
    heavy=True,
)
def lookup_table(
    W: Array, Ids: Array, *, is_sparse: bool = False, is_distributed: bool = False, padding_idx: Int64 = -1,
    remote_prefetch: bool = False, trainer_id: int = 0, height_sections: Longs = (), epmap: Strs = (),
    table_names: Strs = (), grad_inplace: bool = False,
):  # fmt: skip
    """Out[..., :] = W[Ids[..., 0], :], 0 where the id is padding_idx (-1: none). W [height, width],
    Ids [..., 1].
    """
    return _looked_up(W, _last_one("lookup_table", Ids), padding_idx)


@op(
    outs="Out",
    rows=row_wise("Ids"),
    sparse=SparseGradient(by="is_sparse", table="W"),
    bounds=Bounds("Ids", "ids", table_height),
    heavy=True,
)
def lookup_table_v2(
    W: Array, Ids: Array, *, is_sparse: bool = False, is_distributed: bool = False, padding_idx: Int64 = -1,
    remote_prefetch: bool = False, trainer_id: int = 0, height_sections: Longs = (), epmap: Strs = (),
    table_names: Strs = (),
):  # fmt: skip
    """Out[..., :] = W[Ids[...], :], 0 where the id is padding_idx (-1: none). W [height, width]."""
    return _looked_up(W, Ids, padding_idx)


def _lookup_grad(W: Array, Ids: Array, d_Out: Array, *, padding_idx: Int64, is_sparse: bool):
    """d_W[Ids[...]] += d_Out[...], except at padding_idx. With is_sparse, sparse rows including
    padding, as in Paddle.
    """
    if is_sparse:
        rows = narrow(Ids, (W.shape[0] + 1,)).reshape(-1)
        return SelectedRows(rows, d_Out.reshape(-1, W.shape[1]), W.shape[0])
    return _table_grad(W, Ids, d_Out, padding_idx)


for _kind in ("lookup_table", "lookup_table_v2"):
    grad_of(_kind, "W Ids", nograd="Ids")(_lookup_grad)


def _one_hot(op_type: str, X: Array, depth_tensor: Array | None, depth: int, dtype: int) -> Array:
    depth = integers(op_type, "depth_tensor", depth_tensor, None, [depth])[0]
    if depth < 1:
        raise ShapeError(f"{op_type} takes a depth above 0, not {depth}")
    ids = narrow(X, (depth,))
    return (ids[..., None] == jnp.arange(depth, dtype=ids.dtype)).astype(
        numpy_dtype(name_of(dtype))
    )


def _one_hot_spec(
    X: Spec, depth_tensor: Spec | None, *, depth: int, dtype: int, allow_out_of_range: bool
) -> Spec:
    return Spec((*X.shape, depth if depth_tensor is None else -1), name_of(dtype))


def _one_hot_last_spec(X: Spec, depth_tensor: Spec | None, **attrs: Any) -> Spec:
    return _one_hot_spec(Spec(X.shape[:-1], X.dtype), depth_tensor, **attrs)


@op(
    outs="Out",
    infer=_one_hot_last_spec,
    rows=row_wise("X"),
    bounds=Bounds("X", "index", one_hot_depth, depth_variable),
    sizes=sizes_from("depth_tensor"),
)
def one_hot(
    X: Array,
    depth_tensor: Array | None,
    *,
    depth: int = -1,
    dtype: int = 5,
    allow_out_of_range: bool = False,
):
    """Out[..., j] = 1 where X[..., 0] = j, else 0, for j < depth; an id out of range gives only
    zeros. X [..., 1].
    """
    return _one_hot("one_hot", _last_one("one_hot", X), depth_tensor, depth, dtype)


@op(
    outs="Out",
    infer=_one_hot_spec,
    rows=row_wise("X"),
    bounds=Bounds("X", "index", one_hot_depth, depth_variable),
    sizes=sizes_from("depth_tensor"),
)
def one_hot_v2(
    X: Array,
    depth_tensor: Array | None,
    *,
    depth: int = -1,
    dtype: int = 5,
    allow_out_of_range: bool = False,
):
    """Out[..., j] = 1 where X[...] = j, else 0, for j < depth; an id out of range gives only zeros."""
    return _one_hot("one_hot_v2", X, depth_tensor, depth, dtype)
