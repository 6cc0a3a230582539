"""filter_by_instag: the instances of a batch that have one of some tags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet, ShapeError
from .infer import Spec
from .ragged import Ragged, made_key, rows_of, segments, sequences_of
from .registry import Array, Int64, grad_of, op
from .traits import Attrs, knows_rows, rows_by


def _specs(
    Ins: Spec, Ins_tag: Spec, Filter_tag: Spec, *, is_lod: bool, out_val_if_empty: int
) -> tuple[Spec, Spec, Spec]:
    if Ins.ndim != 2:
        raise ShapeError(f"op 'filter_by_instag' takes Ins [rows, D], not {list(Ins.shape)}")
    return Spec((-1, Ins.shape[1]), Ins.dtype), Spec((-1, 1), "float32"), Spec((-1, 3), "int64")


def _no_levels(levels: Mapping[str, int], attrs: Attrs) -> dict[str, int]:
    """The variables are declared without a LoD, as in 1.8.5, though their values have one."""
    return dict.fromkeys(("Out", "LossWeight", "IndexMap"), 0)


def _begins(Ins: Array | Ragged, is_lod: bool) -> Any:
    """The beginning of each instance, and the end: int32 [N + 1]."""
    if is_lod:
        return sequences_of("filter_by_instag", "Ins", Ins, 1).offsets[-1]
    return jnp.arange(rows_of(Ins).shape[0] + 1, dtype=jnp.int32)


def _has_one_of(tags: Ragged, wanted: Any, instances: int, exact: bool) -> Any:
    """Which instances have one of the tags, bool [N]. exact: Ins has no padding, so each has tags."""
    if exact and tags.alive is None and tags.sequences != instances:
        raise EnforceNotMet(
            f"op 'filter_by_instag' takes a sequence of tags for each of the {instances} instances"
            f" in Ins, but Ins_tag has {tags.sequences}"
        )
    hit = (
        jnp.any(tags.rows.reshape(tags.capacity, 1) == rows_of(wanted).reshape(1, -1), axis=1)
        & tags.kept()
    )
    counts = jnp.concatenate([jnp.zeros((1,), jnp.int32), jnp.cumsum(hit, dtype=jnp.int32)])[
        tags.offsets[-1]
    ]
    found = (counts[1:] > counts[:-1])[:instances]
    return jnp.pad(found, (0, instances - found.shape[0]))


@op(
    outs="Out LossWeight IndexMap",
    infer=_specs,
    rows=knows_rows(_no_levels, each=""),
    chosen=rows_by("Ins_tag Filter_tag", "all rows of Ins", exact=False),
)
def filter_by_instag(
    Ins: Array | Ragged, Ins_tag: Ragged, Filter_tag: Array, *, is_lod: bool, out_val_if_empty: Int64 = 0,
):  # fmt: skip
    """Out = the instances of Ins with a tag in Filter_tag, with their LoD; LossWeight [n, 1] = 1
    for each of them.

    An instance is a sequence of Ins [rows, D], or a row without is_lod; Ins_tag has a sequence of
    tags for each. IndexMap [n, 3] (int64): the beginning of the instance in Out and in Ins, and its
    number of rows. If none is chosen, Out is one row of out_val_if_empty, LossWeight [[0]] and
    IndexMap [[0, 1, 1]].
    """
    begins, x = _begins(Ins, is_lod), rows_of(Ins)
    x = x if x.shape[0] else jnp.zeros((1, x.shape[1]), x.dtype)
    count, capacity = begins.shape[0] - 1, x.shape[0]
    tags = sequences_of("filter_by_instag", "Ins_tag", Ins_tag, 1)
    keep = _has_one_of(
        tags, Filter_tag, count, is_lod or not (isinstance(Ins, Ragged) and Ins.padded)
    )
    chosen = jnp.sum(keep, dtype=jnp.int32)
    nothing = chosen == 0
    # The chosen instances first, then empty ones.
    which = jnp.nonzero(keep, size=count, fill_value=0)[0].astype(jnp.int32)
    true = jnp.arange(count, dtype=jnp.int32) < chosen
    first, length = begins[which], jnp.where(true, begins[which + 1] - begins[which], 0)
    offsets = jnp.concatenate([jnp.zeros((1,), jnp.int32), jnp.cumsum(length, dtype=jnp.int32)])
    offsets = jnp.where(nothing, jnp.minimum(jnp.arange(count + 1, dtype=jnp.int32), 1), offsets)
    instance = jnp.clip(segments(offsets, capacity), 0, max(count - 1, 0))
    at = first[instance] + jnp.arange(capacity, dtype=jnp.int32) - offsets[instance]
    rows = jnp.where(
        nothing, np.asarray(out_val_if_empty, x.dtype), jnp.take(x, at, axis=0, mode="clip")
    )
    places = jnp.stack([offsets[:-1], first, length], 1).astype(np.int64)
    places = jnp.where(nothing, np.array([0, 1, 1], np.int64), places)
    weight = jnp.broadcast_to(jnp.where(nothing, 0, 1).astype(np.float32), (count, 1))
    return _shown(Ins if is_lod else None, rows, offsets, jnp.maximum(chosen, 1), weight, places)


def _shown(
    like: Any, rows: Any, offsets: Any, alive: Any, weight: Any, places: Any
) -> tuple[Ragged, Ragged, Ragged]:
    """Out, LossWeight and IndexMap. like: Ins, if its sequences are the instances; None: rows are,
    so all three have one LoD.
    """
    each, number = made_key(), offsets.shape[0] - 1
    ones = jnp.minimum(jnp.arange(number + 1, dtype=jnp.int32), alive)

    def by_instance(values: Any) -> Ragged:
        return Ragged(values, (ones,), (1,), each, padded=True, each=each, alive=alive)

    if like is None:
        return by_instance(rows), by_instance(weight), by_instance(places)
    out = Ragged(
        rows,
        (offsets,),
        (max(like.longest[-1], 1),),
        made_key(),
        padded=True,
        each=each,
        alive=alive,
    )
    return out, by_instance(weight), by_instance(places)


@grad_of(
    "filter_by_instag", "IndexMap LossWeight Ins", nograd="Ins_tag Filter_tag", grad_outs="Out"
)
def filter_by_instag_grad(IndexMap: Array, LossWeight: Array, Ins: Any, d_Out: Array):
    """Ins@GRAD = Out@GRAD where a row was chosen, 0 elsewhere."""
    x = rows_of(Ins)
    if d_Out is None:
        return jnp.zeros_like(x)
    gradient, places = rows_of(d_Out), rows_of(IndexMap).astype(jnp.int32)
    begin, source, length = (places[:, i] for i in range(3))
    number = jnp.arange(gradient.shape[0], dtype=jnp.int32)
    ends = begin + length
    instance = jnp.minimum(
        segments(jnp.concatenate([jnp.zeros((1,), jnp.int32), ends]), gradient.shape[0]),
        begin.shape[0] - 1,
    )
    true = (number < jnp.max(ends)) & (rows_of(LossWeight).reshape(-1)[0] != 0)
    at = jnp.where(true, source[instance] + number - begin[instance], x.shape[0])
    return jnp.zeros_like(x).at[at].add(gradient, mode="drop")
