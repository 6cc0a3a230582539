"""Ops that change the form of the rows of sequences: reshape, enumerate, scatter."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet, MixesRows, ShapeError
from .bounds import size_of
from .concrete import known
from .infer import Spec
from .ragged import Ragged, copied, same_sequences, sequences_of
from .registry import Array, grad_of, op
from .traits import Bounds, knows_rows


def _reshape_spec(X: Spec, *, new_dim: int) -> Spec:
    if len(X.shape) != 2 or new_dim < 1:
        raise ShapeError(
            f"op 'sequence_reshape' takes X [rows, D] and a new_dim from 1, not {list(X.shape)} and"
            f" {new_dim}"
        )
    rows = X.shape[0] * X.shape[1] // new_dim if min(X.shape) >= 0 else -1
    return Spec((rows, new_dim), X.dtype)


@op(outs="Out", grad="X", infer=_reshape_spec, rows=knows_rows(Out="X"))
def sequence_reshape(X: Ragged, *, new_dim: int):
    """Out = the numbers of each sequence in rows of new_dim. X [rows, D], one LoD level.

    Raises EnforceNotMet for exact sequences that do not divide into such rows, MixesRows if the
    sizes are unknown.
    """
    x = sequences_of("sequence_reshape", "X", X, 1)
    width = x.rows.shape[1]
    offsets = x.offsets[0] * width // new_dim
    if width % new_dim:
        if x.padded:
            raise MixesRows(
                f"op 'sequence_reshape' must know that sequences of rows of {width} divide into"
                f" rows of {new_dim}"
            )
        _check_divides(x, width, new_dim)
    rows = x.capacity * width // new_dim
    longest = -(-x.longest[0] * width // new_dim)
    out = x.rows.reshape(-1)[: rows * new_dim].reshape(rows, new_dim)
    return Ragged(out, (offsets,), (longest,), ("reshape", width, new_dim, x.key), x.padded)


def _check_divides(x: Ragged, width: int, new_dim: int) -> None:
    offsets = known(x.offsets[0])
    wrong = (
        (x.capacity * width) % new_dim != 0
        if offsets is None
        else bool(((np.diff(offsets) * width) % new_dim).any())
    )
    if wrong:
        raise EnforceNotMet(
            f"op 'sequence_reshape' takes sequences whose rows of {width} divide into rows of"
            f" {new_dim}"
        )


def _enumerate_spec(X: Spec, *, win_size: int, **_: Any) -> Spec:
    if win_size < 2:
        raise ShapeError(f"op 'sequence_enumerate' takes a win_size from 2, not {win_size}")
    return Spec((X.shape[0], win_size), X.dtype)


@op(outs="Out", infer=_enumerate_spec, rows=knows_rows(Out="X", each="", by_offsets=True))
def sequence_enumerate(X: Ragged, *, win_size: int, pad_value: int = 0):
    """Out[t, j] = X[t + j] up to the end of the sequence, then pad_value; j < win_size. X integers
    [rows, 1], one LoD level.
    """
    x = sequences_of("sequence_enumerate", "X", X, 1)
    ids = x.rows.reshape(-1)
    if ids.shape[0] != x.capacity:
        raise EnforceNotMet(
            f"op 'sequence_enumerate' takes one number a row, not X of shape {list(x.rows.shape)}"
        )
    if not x.capacity or not x.sequences:
        return x.with_rows(jnp.zeros((x.capacity, win_size), x.dtype))
    end = x.offsets[0][jnp.minimum(x.sequence(), x.sequences - 1) + 1]
    at = jnp.arange(x.capacity, dtype=jnp.int32)[:, None] + jnp.arange(win_size, dtype=jnp.int32)
    windows = jnp.where(
        at < end[:, None], jnp.take(ids, at, mode="clip"), np.asarray(pad_value, x.dtype)
    )
    return x.with_rows(copied(x.with_rows(windows)))


def _scatter_spec(X: Spec, Ids: Spec, Updates: Spec) -> Spec:
    return X


@op(
    outs="Out",
    infer=_scatter_spec,
    rows=knows_rows(by_offsets=True),
    bounds=Bounds("Ids", "id", size_of("X", 1)),
)
def sequence_scatter(X: Array, Ids: Ragged, Updates: Ragged):
    """Out[n, Ids[r]] = X[n, Ids[r]] + Updates[r], for every row r of sequence n. X [N, D]; Ids,
    Updates [rows, 1], one LoD level.
    """
    sequence, ids, updates = _places(X.shape[0], Ids, Updates)
    return X.at[sequence, ids].add(updates.astype(X.dtype), mode="drop")


def _places(count: int, Ids: Ragged, Updates: Ragged) -> tuple[Any, Any, Any]:
    """Row and column in X of each row (beyond X for a padded row), and the number to add there."""
    ids = sequences_of("sequence_scatter", "Ids", Ids, 1)
    updates = sequences_of("sequence_scatter", "Updates", Updates, 1)
    same_sequences("sequence_scatter", {"Ids": ids, "Updates": updates})
    if ids.sequences != count:
        raise EnforceNotMet(
            f"op 'sequence_scatter' takes Ids of {count} sequences, one for each row of X, not"
            f" {ids.sequences}"
        )
    return ids.sequence(), ids.rows.reshape(-1), updates.rows.reshape(-1)


@grad_of("sequence_scatter", "Ids Updates", nograd="Ids")
def sequence_scatter_grad(Ids: Ragged, Updates: Ragged, d_Out: Array):
    """X@GRAD = Out@GRAD; Updates@GRAD[r] = Out@GRAD[n, Ids[r]]."""
    sequence, ids, _ = _places(d_Out.shape[0], Ids, Updates)
    taken = d_Out.at[sequence, ids].get(mode="fill", fill_value=0)
    return d_Out, taken.reshape(Updates.rows.shape)
