"""Ops that choose rows of sequences: erase, slice, unpad. The number of remaining rows is data, so
the results have a bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet, ShapeError
from .checking import VALUE, Objection
from .concrete import known
from .greatest import first_greatest
from .infer import Spec
from .lengths import Lengths, unpadded
from .ragged import Ragged, bounded, chosen, rows_of, segments, sequences_of, view
from .registry import Array, Ints, grad_of, op
from .traits import Attrs, knows_rows, rows_by


def _rows_spec(X: Spec, *_: Any, **__: Any) -> Spec:
    return Spec((-1, *X.shape[1:]), X.dtype)


@op(
    outs="Out",
    infer=_rows_spec,
    rows=knows_rows(Out="X", by_offsets=True),
    chosen=rows_by("X", "all rows of X", exact=False),
)
def sequence_erase(X: Ragged, *, tokens: Ints):
    """Out = X without the rows that hold one of `tokens`; sequences may become empty. X integers
    [rows, 1], one LoD level.
    """
    x = sequences_of("sequence_erase", "X", X, 1)
    if any(n != 1 for n in x.rows.shape[1:]):
        raise EnforceNotMet(
            f"op 'sequence_erase' takes one token a row, not X of shape {list(x.rows.shape)}"
        )
    if not x.capacity:
        return x
    return chosen(x, ~jnp.isin(x.rows.reshape(-1), np.asarray(tokens, x.dtype)))


def _bounds(op: str, slot: str, value: Any, count: int) -> Any:
    """A number for each sequence, [N] int32."""
    rows = rows_of(value).reshape(-1)
    if rows.shape[0] != count:
        raise EnforceNotMet(
            f"op '{op}' takes one {slot} for each of the {count} sequences, not {rows.shape[0]}"
        )
    return rows.astype(np.int32)


def _sliced(x: Ragged, offset: Any, length: Any) -> tuple[Any, Any]:
    """The row of X behind each row of the slice [capacity], and the slice's offsets."""
    begin, size = (
        _bounds("sequence_slice", "Offset", offset, x.sequences),
        _bounds("sequence_slice", "Length", length, x.sequences),
    )
    offsets_known, sizes_known = known(begin), known(size)
    if (
        offsets_known is not None
        and sizes_known is not None
        and ((offsets_known < 0) | (sizes_known <= 0)).any()
    ):
        raise EnforceNotMet(
            "op 'sequence_slice' takes offsets from 0 and lengths from 1, not"
            f" {offsets_known.tolist()} and {sizes_known.tolist()}"
        )
    offsets = jnp.concatenate([jnp.zeros((1,), jnp.int32), jnp.cumsum(size, dtype=jnp.int32)])
    at = jnp.arange(x.capacity, dtype=jnp.int32)
    sequence = jnp.minimum(segments(offsets, x.capacity), x.sequences - 1)
    return x.offsets[-1][sequence] + jnp.asarray(begin)[sequence] + at - offsets[sequence], offsets


def _outside(inputs: Mapping[str, Any], attrs: Attrs) -> Iterator[Objection]:
    """Offsets and lengths that leave their sequence."""
    x = inputs["X"]
    if not isinstance(x, Ragged) or not x.sequences:
        return
    begin, size = (
        _bounds("sequence_slice", slot, inputs[slot], x.sequences) for slot in ("Offset", "Length")
    )
    bad = (begin < 0) | (size <= 0) | (begin + size > x.lengths)
    worst = first_greatest(bad)
    yield (
        bad.any(),
        f"takes rows of each sequence, but Offset and Length name others of sequence {VALUE}",
        worst,
    )


@op(
    outs="Out",
    grad="X Offset Length",
    nograd="Offset Length",
    infer=_rows_spec,
    rows=knows_rows(by_offsets=True),
    chosen=rows_by("Length", "all rows of X", exact=False),
    refuses=_outside,
)
def sequence_slice(X: Ragged, Offset: Array | Ragged, Length: Array | Ragged):
    """Out = rows Offset[n] to Offset[n] + Length[n] - 1 of sequence n. X one LoD level; Offset,
    Length [N, 1] integers.
    """
    x = sequences_of("sequence_slice", "X", X, 1)
    if not x.capacity or not x.sequences:
        return x
    source, offsets = _sliced(x, Offset, Length)
    return bounded(jnp.take(x.rows, source, axis=0, mode="clip"), offsets, x.longest[0])


def _unpad_spec(X: Spec, Length: Spec) -> Spec:
    if len(X.shape) < 2 or len(Length.shape) != 1:
        raise ShapeError(
            f"op 'sequence_unpad' takes X [N, longest, ...] and Length [N], not {list(X.shape)} and"
            f" {list(Length.shape)}"
        )
    return Spec((-1, *X.shape[2:]) if len(X.shape) > 2 else (-1, 1), X.dtype)


def _one_level(levels: Any, attrs: Attrs) -> dict[str, int]:
    return {"Out": 1}


def _offsets(X: Any, Length: Any) -> tuple[Any, np.ndarray | None]:
    """Offsets of the rows that Length keeps, as NumPy too if they are known. Raises EnforceNotMet
    for known lengths that do not fit.
    """
    lengths = rows_of(Length).reshape(-1)
    if lengths.shape[0] != X.shape[0]:
        raise EnforceNotMet(
            f"op 'sequence_unpad' takes a Length for each of the {X.shape[0]} sequences, not"
            f" {lengths.shape[0]}"
        )
    found = known(lengths)
    if found is None:
        return (
            jnp.concatenate([jnp.zeros((1,), jnp.int32), jnp.cumsum(lengths, dtype=jnp.int32)]),
            None,
        )
    if found.size and (found.min() < 0 or found.max() > X.shape[1]):
        raise EnforceNotMet(
            f"op 'sequence_unpad' takes lengths from 0 to {X.shape[1]}, not {found.tolist()[:10]}"
        )
    offsets = np.concatenate([[0], np.cumsum(found)]).astype(np.int32)
    return offsets, offsets


def _too_long(inputs: Mapping[str, Any], attrs: Attrs) -> Iterator[Objection]:
    """Lengths that X has no room for."""
    longest, given = inputs["X"].shape[1], inputs["Length"]
    if isinstance(given, Lengths) and given.of.longest[-1] <= longest:
        return
    lengths = rows_of(given.array if isinstance(given, Lengths) else given).reshape(-1)
    if known(lengths) is None and lengths.size:
        bad = (lengths < 0) | (lengths > longest)
        yield (
            bad.any(),
            f"takes lengths from 0 to {longest}, but gets {VALUE}",
            lengths[first_greatest(bad)],
        )


def _fits(X: Any, of: Ragged) -> bool:
    return of.sequences == X.shape[0] and (of.padded or of.longest[-1] <= X.shape[1])


@op(
    outs="Out",
    infer=_unpad_spec,
    rows=knows_rows(_one_level),
    chosen=rows_by("Length", "all cells of X"),
    refuses=_too_long,
    lengths="Length",
)
def sequence_unpad(X: Array, Length: Array | Lengths):
    """Out = the first Length[n] rows of each X[n], with that LoD. X [N, longest, ...]; Length [N]
    integers.

    If Length is an unchanged output of `sequence_pad`, the LoD is that of the padded sequences.
    """
    if isinstance(Length, Lengths) and _fits(X, Length.of):
        return unpadded(X, Length.of)
    Length = Length.array if isinstance(Length, Lengths) else Length
    rows, longest = X.shape[0] * X.shape[1], X.shape[1]
    flat = X.reshape(rows, *(X.shape[2:] or (1,)))
    offsets, exact = _offsets(X, Length)
    capacity = rows if exact is None else int(exact[-1])
    at = jnp.arange(capacity, dtype=jnp.int32)
    sequence = jnp.clip(segments(jnp.asarray(offsets), capacity), 0, max(X.shape[0] - 1, 0))
    source = sequence * longest + at - jnp.asarray(offsets)[sequence]
    taken = jnp.take(flat, source, axis=0, mode="clip") if rows else flat
    if exact is None:
        return bounded(taken, offsets, longest)
    return Ragged(
        taken,
        (jnp.asarray(exact),),
        (int(np.diff(exact).max(initial=0)),),
        ("lengths", tuple(exact.tolist())),
    )


@grad_of("sequence_unpad", "X", nograd="Length", ragged="Out@GRAD")
def sequence_unpad_grad(X: Array, d_Out: Ragged):
    """X@GRAD = the rows of Out@GRAD at their positions, 0 beyond the end of each sequence."""
    d = sequences_of("sequence_unpad_grad", "Out@GRAD", d_Out, 1)
    cells = view(d)[:, : X.shape[1]]
    rest = jnp.zeros((d.sequences, X.shape[1] - cells.shape[1], *cells.shape[2:]), cells.dtype)
    return jnp.concatenate([cells, rest], 1).reshape(X.shape)
