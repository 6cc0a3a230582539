"""Ops of click-through models: cvm, rank_attention, lookup_table_dequant."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..errors import ShapeError
from .bounds import table_height
from .index import narrow, take
from .ragged import Ragged, rows_of
from .registry import Array, Int64, grad_of, op
from .traits import Bounds, knows_rows, mixes, row_wise

COUNTS = 2  # shows and clicks, the first columns of what cvm takes


def _checked_cvm(x: Any, cvm: Any) -> None:
    if x.ndim != 2 or x.shape[1] < COUNTS:
        raise ShapeError(f"cvm takes X [N, 2 + width], shows and clicks first, not {list(x.shape)}")
    if cvm.ndim != 2 or cvm.shape[1] != COUNTS:
        raise ShapeError(f"cvm takes CVM [instances, 2], not {list(cvm.shape)}")


@op(outs="Y", rows=knows_rows(Y="X", by_offsets=True))
def cvm(X: Array | Ragged, CVM: Array | Ragged, *, use_cvm: bool = True):
    """Y = X with log(X[:, 0] + 1) and log(X[:, 1] + 1) - log(X[:, 0] + 1) as its first columns;
    X[:, 2:] without use_cvm.
    """
    x = rows_of(X)
    _checked_cvm(x, rows_of(CVM))
    y = x[:, COUNTS:]
    if use_cvm:
        shows = jnp.log(x[:, :1] + 1)
        y = jnp.concatenate([shows, jnp.log(x[:, 1:2] + 1) - shows, y], 1)
    return X.with_rows(y) if isinstance(X, Ragged) else y


@grad_of("cvm", "X CVM", nograd="CVM")
def cvm_grad(X: Array | Ragged, CVM: Array | Ragged, d_Y: Any, *, use_cvm: bool):
    """X@GRAD[:, :2] = CVM of the row, or of its sequence; the other columns are Y@GRAD's."""
    x, cvm, d_y = rows_of(X), rows_of(CVM), rows_of(d_Y)
    if isinstance(X, Ragged) and not X.bare:
        cvm = take(cvm, jnp.minimum(X.sequence(), cvm.shape[0] - 1)[:, None])
    rest = d_y[:, COUNTS:] if use_cvm else d_y
    grad = jnp.concatenate(
        [jnp.broadcast_to(cvm.astype(rest.dtype), (x.shape[0], COUNTS)), rest], 1
    )
    return X.with_rows(grad) if isinstance(X, Ragged) else grad


def _ranked(x: Any, offset: Any, param: Any, ranks: int) -> tuple[Any, Any]:
    """The factors of rank_attention for each row and rank: an input [N, ranks, D], and the number
    of a block of `param` [N, ranks].

    The input is zero if the row or the rank is absent (0).
    """
    if x.ndim != 2 or offset.ndim != 2 or offset.shape != (x.shape[0], 2 * ranks + 1):
        raise ShapeError(
            "rank_attention takes X [N, D] and RankOffset [N, 2 * MaxRank + 1], not"
            f" {list(x.shape)} and {list(offset.shape)}"
        )
    if param.ndim != 2 or param.shape[0] != ranks * ranks * x.shape[1]:
        raise ShapeError(
            f"rank_attention takes RankParam [MaxRank^2 * D = {ranks * ranks * x.shape[1]}, width],"
            f" not {list(param.shape)}"
        )
    own, other = offset[:, :1] - 1, offset[:, 1::2] - 1
    there = (own >= 0) & (other >= 0)
    rows = take(x, jnp.where(there, offset[:, 2::2], 0)[..., None])
    return jnp.where(there[..., None], rows, 0), jnp.where(there, own * ranks + other, 0)


@op(outs="Out", rows=mixes())
def rank_attention(X: Array, RankOffset: Array, RankParam: Array, *, MaxRank: int = 3):
    """Out[i] = sum over k < MaxRank of X[RankOffset[i, 2k + 2]] @ the block of RankParam for ranks
    RankOffset[i, 0], RankOffset[i, 2k + 1].

    RankParam [MaxRank * MaxRank * D, width]: a block of D rows for each pair of ranks. Ranks count
    from 1; 0: absent.
    """
    rows, block = _ranked(X, RankOffset, RankParam, MaxRank)
    blocks = RankParam.reshape(MaxRank * MaxRank, X.shape[1], -1)
    return jnp.einsum("nkd,nkdw->nw", rows, take(blocks, block[..., None]))


@grad_of("rank_attention", "X RankOffset RankParam", nograd="X RankOffset")
def rank_attention_grad(
    X: Array, RankOffset: Array, RankParam: Array, d_Out: Array, *, MaxRank: int
):
    """RankParam@GRAD: the sum of X[...]^T Out@GRAD for each pair of ranks. X has no gradient, as in
    1.8.5.
    """
    rows, block = _ranked(X, RankOffset, RankParam, MaxRank)
    parts = jnp.einsum("nkd,nw->nkdw", rows, d_Out)
    blocks = (
        jnp.zeros((MaxRank * MaxRank, X.shape[1], d_Out.shape[1]), RankParam.dtype)
        .at[block]
        .add(parts)
    )
    return blocks.reshape(RankParam.shape)


_LEVELS = 256.0  # codes of a byte
_HEAD = 2  # columns of a row before its codes: least and greatest value


@op(outs="Out", rows=row_wise("Ids"), bounds=Bounds("Ids", "ids", table_height))
def lookup_table_dequant(W: Array, Ids: Array, *, padding_idx: Int64 = -1):
    """Out[..., :] = low + (high - low) / 256 * code of row Ids[..., 0], 0 where the id is
    padding_idx (-1: none).

    W [height, 2 + width / 4] (float32): low, high, then `width` codes, each a byte of the numbers
    that follow. Ids [..., 1].
    """
    if W.ndim != 2 or W.shape[1] <= _HEAD:
        raise ShapeError(
            f"lookup_table_dequant takes W [height, 2 + width / 4], not {list(W.shape)}"
        )
    if Ids.shape[-1:] != (1,):
        raise ShapeError(f"lookup_table_dequant takes ids of shape [..., 1], not {list(Ids.shape)}")
    ids = narrow(Ids, W.shape[:1])
    row = take(W, ids)
    low, high = row[..., :1], row[..., 1:2]
    codes = lax.bitcast_convert_type(row[..., _HEAD:], np.uint8).reshape(
        *ids.shape[:-1], 4 * (W.shape[1] - _HEAD)
    )
    out = (high - low) / np.float32(_LEVELS) * codes.astype(W.dtype) + low
    return out if padding_idx == -1 else jnp.where(ids == padding_idx, np.zeros((), W.dtype), out)
