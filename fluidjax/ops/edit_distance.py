"""edit_distance: the number of insertions, deletions and replacements that turn one sequence into
another.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet
from . import loops
from .infer import Spec
from .ragged import Ragged, sequences_of, view
from .registry import Array, op
from .traits import knows_rows


def _specs(
    Hyps: Spec, Refs: Spec, HypsLength: Spec | None, RefsLength: Spec | None, **_: Any
) -> tuple[Spec, Spec]:
    return Spec((1,), "int64"), Spec((-1 if HypsLength is None else Hyps.shape[0], 1), "float32")


def _cells(slot: str, value: Any, length: Any) -> tuple[Any, Any]:
    """[N, longest] and lengths [N]."""
    if length is None:
        x = sequences_of("edit_distance", slot, value, 1)
        return view(x).reshape(x.sequences, x.longest[0]), x.lengths
    if isinstance(value, Ragged):
        raise EnforceNotMet(
            f"input {slot} of op 'edit_distance' has a LoD and a {slot}Length; it takes one of them"
        )
    return value.reshape(value.shape[0], -1), length.reshape(-1).astype(np.int32)


@op(outs="SequenceNum Out", infer=_specs, rows=knows_rows())
def edit_distance(
    Hyps: Array | Ragged,
    Refs: Array | Ragged,
    HypsLength: Array | None,
    RefsLength: Array | None,
    *,
    normalized: bool = False,
):
    """Out[n] = the least number of insertions, deletions and replacements from Hyps[n] to Refs[n],
    float32 [N, 1].

    normalized: over the length of Refs[n]. SequenceNum = N, int64 [1]. Hyps, Refs: ids [rows, 1],
    one LoD level; or [N, T] with their lengths [N, 1].
    """
    hyps, sizes = _cells("Hyps", Hyps, HypsLength)
    refs, targets = _cells("Refs", Refs, RefsLength)
    count = hyps.shape[0]
    if refs.shape[0] != count:
        raise EnforceNotMet(
            f"op 'edit_distance' takes equally many sequences, not {count} in Hyps and"
            f" {refs.shape[0]} in Refs"
        )
    at = jnp.arange(refs.shape[1] + 1, dtype=jnp.int32)

    def forward(row: Any, given: Any) -> tuple[Any, None]:
        token, step = given
        replaced = row[:, :-1] + (token[:, None] != refs)
        least = jnp.minimum(row + 1, jnp.concatenate([row[:, :1] + 1, replaced], 1))
        new = jax.lax.cummin(least - at, axis=1) + at  # insertions, which go along the row
        return jnp.where((step < sizes)[:, None], new, row), None

    first = jnp.broadcast_to(at, (count, refs.shape[1] + 1))
    row, _ = loops.scan(forward, first, (hyps.T, jnp.arange(hyps.shape[1], dtype=jnp.int32)))
    out = jnp.take_along_axis(row, targets[:, None].astype(jnp.int32), 1).astype(jnp.float32)
    if normalized:
        out = out / targets[:, None].astype(jnp.float32)
    return jnp.full((1,), count, np.int64), out
