"""Convolutions along sequences: sequence_conv, row_conv. A window never reaches beyond its
sequence.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ..errors import EnforceNotMet, ShapeError
from .infer import Spec
from .ragged import Ragged, copied, sequences_of
from .registry import Array, op
from .traits import knows_rows


def _shifted(rows: Any, by: int) -> Any:
    """The rows shifted: row i is row i + by; rows beyond the ends repeat the outermost."""
    at = jnp.clip(jnp.arange(rows.shape[0], dtype=jnp.int32) + by, 0, rows.shape[0] - 1)
    return jnp.take(rows, at, axis=0, mode="clip") if by else rows


def _neighbours(x: Ragged, begin: int, count: int) -> list[tuple[Any, Any, Any]]:
    """For each of `count` positions of a window that begins `begin` rows away: the rows there,
    which of them are in the sequence, and the distance before its first row (negative) or after its
    last (from 0 up).
    """
    sequence = jnp.minimum(x.sequence(), x.sequences - 1)
    first, end = x.offsets[-1][sequence], x.offsets[-1][sequence + 1]
    found = []
    for by in range(begin, begin + count):
        at = jnp.arange(x.capacity, dtype=jnp.int32) + by
        within = (at >= first) & (at < end)
        found.append((_shifted(x.rows, by), within, jnp.where(at < first, at - first, at - end)))
    return found


def _conv_specs(
    X: Spec,
    PaddingData: Spec | None,
    Filter: Spec,
    *,
    contextLength: int,
    contextStride: int,
    **_: Any,
) -> Spec:
    if contextStride != 1:
        raise EnforceNotMet(f"op 'sequence_conv' takes a contextStride of 1, not {contextStride}")
    if contextLength < 1:
        raise EnforceNotMet(
            f"op 'sequence_conv' takes a contextLength of 1 or more, not {contextLength}"
        )
    if (
        len(X.shape) != 2
        or len(Filter.shape) != 2
        or (X.shape[1] >= 0 and Filter.shape[0] != contextLength * X.shape[1])
    ):
        raise ShapeError(
            f"op 'sequence_conv' takes X [rows, D] and Filter [{contextLength} * D, M], not"
            f" {list(X.shape)} and {list(Filter.shape)}"
        )
    return Spec((X.shape[0], Filter.shape[1]), X.dtype)


@op(
    outs="Out",
    grad="X PaddingData Filter",
    infer=_conv_specs,
    rows=knows_rows(Out="X", each="", by_offsets=True),
    heavy=True,
    when={"PaddingData": "paddingTrainable"},
    needs={"PaddingData@GRAD": "PaddingData"},
)
def sequence_conv(
    X: Ragged,
    PaddingData: Array | None,
    Filter: Array,
    *,
    paddingTrainable: bool = False,
    contextLength: int,
    contextStart: int = 0,
    contextStride: int = 1,
):
    """Out[t] = [rows t + contextStart, ... (contextLength of them) of the sequence] @ Filter; 0
    beyond its ends.

    X [rows, D], one LoD level; Filter [contextLength * D, M]; Out [rows, M]. With paddingTrainable,
    the rows of PaddingData [before + after, D] replace the 0 beyond the ends.
    """
    x = sequences_of("sequence_conv", "X", X, 1)
    if not x.capacity or not x.sequences:
        return x.with_rows(jnp.zeros((x.capacity, Filter.shape[1]), x.dtype))
    width = x.rows.shape[1]
    if Filter.shape[0] != contextLength * width:
        raise ShapeError(
            f"op 'sequence_conv' takes Filter [{contextLength} * {width}, M] for rows of {width},"
            f" not {list(Filter.shape)}"
        )
    before = max(0, -contextStart)
    cells = []
    for rows, within, away in _neighbours(x, contextStart, contextLength):
        beyond: Any = jnp.zeros((), x.dtype)
        if paddingTrainable:
            if PaddingData is None:
                raise EnforceNotMet("op 'sequence_conv' with paddingTrainable takes PaddingData")
            beyond = jnp.take(PaddingData, before + away, axis=0, mode="clip")
        cells.append(jnp.where(within[:, None], rows, beyond))
    out = x.with_rows(jnp.concatenate(cells, 1) @ Filter)
    return x.with_rows(copied(out))


def _row_conv_spec(X: Spec, Filter: Spec) -> Spec:
    if len(Filter.shape) != 2 or Filter.shape[1] not in (-1, X.shape[-1]):
        raise ShapeError(
            f"op 'row_conv' takes X [..., D] and Filter [steps, D], not {list(X.shape)} and"
            f" {list(Filter.shape)}"
        )
    return X


@op(
    outs="Out",
    grad="X Filter",
    infer=_row_conv_spec,
    rows=knows_rows(Out="X", each="", by_offsets=True),
    heavy=True,
)
def row_conv(X: Array | Ragged, Filter: Array):
    """Out[t] = sum over j of X[t + j] * Filter[j], j < the rows of Filter, up to the end of the
    sequence.

    X [rows, D] with one LoD level, or a batch [N, T, D] of sequences of one length; Filter [future
    + 1, D].
    """
    steps = Filter.shape[0]
    if not isinstance(X, Ragged) or X.bare:
        rows = X.rows if isinstance(X, Ragged) else X
        if rows.ndim != 3:
            raise EnforceNotMet(
                "op 'row_conv' takes an X with a LoD, or [N, T, D], not a plain one of shape"
                f" {list(rows.shape)}"
            )
        ahead = jnp.pad(rows, ((0, 0), (0, steps - 1), (0, 0)))
        return sum(
            (ahead[:, j : j + rows.shape[1]] * Filter[j] for j in range(steps)),
            jnp.zeros_like(rows),
        )
    x = sequences_of("row_conv", "X", X, 1)
    if not x.capacity or not x.sequences:
        return x
    total = jnp.zeros_like(x.rows)
    for j, (rows, within, _) in enumerate(_neighbours(x, 0, steps)):
        total = total + jnp.where(within[:, None], rows, 0) * Filter[j]
    return x.with_rows(copied(x.with_rows(total)))
