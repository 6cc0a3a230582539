"""Which true box each prior is trained on: bipartite_match, target_assign, mine_hard_examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...errors import EnforceNotMet, FluidValueError, ShapeError
from .. import loops
from ..checking import VALUE, Objection
from ..greatest import first_greatest
from ..infer import Spec
from ..outside import outside
from ..ragged import Ragged, bounded, mask, rows_of, sequences_of, view
from ..registry import Array, op
from ..traits import Attrs, knows_rows, mixes, rows_by

NONE = -1  # a prior that no box matches
LEAST = 1e-6  # distances below count as none
MANY = 130  # with this many boxes or more, every distance above 0 counts
MATCHES = ("bipartite", "per_prediction")
MININGS = ("max_negative", "hard_example")


def _match_spec(DistMat: Spec, *, match_type: str, **_: Any) -> tuple[Spec, Spec]:
    if match_type not in MATCHES:
        raise FluidValueError(
            f"op 'bipartite_match' has the match_type {' or '.join(MATCHES)}, not {match_type!r}"
        )
    if DistMat.ndim != 2:
        raise ShapeError(
            f"op 'bipartite_match' takes DistMat [boxes, priors], not {list(DistMat.shape)}"
        )
    return Spec((-1, DistMat.shape[1]), "int32"), Spec((-1, DistMat.shape[1]), DistMat.dtype)


@op(outs="ColToRowMatchIndices ColToRowMatchDist", infer=_match_spec, rows=knows_rows())
def bipartite_match(
    DistMat: Ragged | Array, *, match_type: str = MATCHES[0], dist_threshold: float = 0.5
):
    """ColToRowMatchIndices [N, M] int32 = the box (row of its image) that each column of DistMat
    matches, -1 for none.

    DistMat [boxes, M], one LoD level, a sequence an image; without a LoD, one image. Greedy: the
    largest value whose row and column are free is a match; between equal ones the first column
    wins, then the first row. Values below 1e-6 do not match. per_prediction: other columns also
    match their largest value if it is at least dist_threshold. ColToRowMatchDist: the values, 0 for
    none.
    """
    if isinstance(DistMat, Ragged) and not DistMat.bare:
        x = sequences_of("bipartite_match", "DistMat", DistMat, 1)
        cells, alive, counts = view(x), mask(x), x.lengths
    else:
        rows = rows_of(DistMat)
        cells, alive = rows[None], jnp.ones((1, rows.shape[0]), bool)
        counts = jnp.full((1,), rows.shape[0], jnp.int32)
    if not cells.shape[1] or not cells.shape[2]:
        return jnp.full((cells.shape[0], cells.shape[2]), NONE, jnp.int32), jnp.zeros(
            (cells.shape[0], cells.shape[2]), cells.dtype
        )
    found, distance = jax.vmap(_greedy)(cells, alive, counts)
    if match_type == MATCHES[1]:
        allowed = (
            alive[..., None] & (cells >= LEAST) & (cells >= np.asarray(dist_threshold, np.float32))
        )
        best = jnp.where(allowed, cells, -1)
        more = (found == NONE) & allowed.any(1)
        found = jnp.where(more, first_greatest(best, 1), found)
        distance = jnp.where(more, best.max(1), distance)
    return found, distance


def _greedy(cells: Any, alive: Any, count: Any) -> tuple[Any, Any]:
    """Matches of one image: the row of each column, and its value. cells [rows, columns]."""
    columns = cells.shape[1]
    allowed = alive[:, None] & jnp.where(count < MANY, cells >= LEAST, cells > 0)
    left = jnp.where(allowed, cells, -1)

    def going(state: tuple[Any, ...]) -> Any:
        return state[0].max() >= 0

    def take(state: tuple[Any, ...]) -> tuple[Any, ...]:
        best, at, left, found, distance = state
        most = best == best.max()
        column = jnp.min(jnp.where(most, at, columns))
        row = first_greatest(most & (at == column))
        found, distance = found.at[column].set(row), distance.at[column].set(best[row])
        left = left.at[:, column].set(-1).at[row].set(-1)
        return left.max(1), first_greatest(left, 1), left, found, distance

    start = (
        left.max(1),
        first_greatest(left, 1),
        left,
        jnp.full((columns,), NONE, jnp.int32),
        jnp.zeros((columns,), cells.dtype),
    )
    return loops.while_loop(going, take, start)[3:]


def _assign_spec(
    X: Spec, MatchIndices: Spec, NegIndices: Spec | None, **_: Any
) -> tuple[Spec, Spec]:
    if X.ndim != 3 or MatchIndices.ndim != 2:
        shapes = f"{list(X.shape)} and {list(MatchIndices.shape)}"
        raise ShapeError(
            f"op 'target_assign' takes X [boxes, P, K] and MatchIndices [N, M], not {shapes}"
        )
    if NegIndices is not None and NegIndices.ndim != 2:
        raise ShapeError(
            f"op 'target_assign' takes NegIndices [rows, 1], not {list(NegIndices.shape)}"
        )
    return Spec((*MatchIndices.shape, X.shape[2]), X.dtype), Spec(
        (*MatchIndices.shape, 1), "float32"
    )


def _no_boxes(inputs: Mapping[str, Any], attrs: Attrs) -> Iterator[Objection]:
    """Matches with boxes that an image does not have, and numbers that are not priors."""
    x, matches, negative = inputs["X"], inputs["MatchIndices"], inputs.get("NegIndices")
    if (
        isinstance(x, Ragged)
        and len(x.offsets) == 1
        and x.sequences == matches.shape[0]
        and matches.size
    ):
        bad = (matches < NONE) | (matches >= x.lengths[:, None])
        yield (
            bad.any(),
            f"takes boxes of each image, or -1, but MatchIndices names box {VALUE}",
            matches.reshape(-1)[first_greatest(bad)],
        )
    if negative is not None:
        yield from outside("prior", negative, 0, matches.shape[1])


@op(outs="Out OutWeight", infer=_assign_spec, rows=knows_rows(), refuses=_no_boxes)
def target_assign(
    X: Ragged, MatchIndices: Array, NegIndices: Ragged | None, *, mismatch_value: int = 0
):
    """Out[n, m] = row MatchIndices[n, m] of image n in X, at m % P, [N, M, K]; mismatch_value if
    the index is -1.

    X [boxes, P, K], one LoD level, a sequence an image; MatchIndices [N, M] int32. OutWeight [N, M,
    1] float32: 1 where a box is assigned and for the priors in NegIndices [rows, 1] (one LoD
    level), which get mismatch_value; else 0.
    """
    x = sequences_of("target_assign", "X", X, 1)
    if x.sequences != MatchIndices.shape[0]:
        raise EnforceNotMet(
            "op 'target_assign' takes a row of MatchIndices for each image, not"
            f" {MatchIndices.shape[0]} for {x.sequences}"
        )
    there = MatchIndices > NONE
    missing = np.asarray(mismatch_value, x.dtype)
    if x.capacity:
        at = x.offsets[-1][:-1, None] + MatchIndices
        place = jnp.arange(MatchIndices.shape[1]) % x.rows.shape[1]
        out = jnp.where(there[..., None], x.rows[jnp.clip(at, 0, x.capacity - 1), place], missing)
    else:
        out = jnp.full((*MatchIndices.shape, x.rows.shape[2]), missing)
    weight = there.astype(jnp.float32)
    if NegIndices is not None:
        negative = sequences_of("target_assign", "NegIndices", NegIndices, 1)
        named = (
            jnp.zeros(MatchIndices.shape, bool)
            .at[negative.sequence(), negative.rows.reshape(-1)]
            .set(True, mode="drop")
        )
        out, weight = jnp.where(named[..., None], missing, out), jnp.where(named, 1, weight)
    return out, weight[..., None]


def _mining_spec(
    ClsLoss: Spec, LocLoss: Spec | None, MatchIndices: Spec, MatchDist: Spec, **attrs: Any
) -> tuple[Spec, Spec]:
    given = {
        "ClsLoss": ClsLoss,
        "LocLoss": LocLoss,
        "MatchIndices": MatchIndices,
        "MatchDist": MatchDist,
    }
    for slot, spec in given.items():
        if spec is not None and spec.ndim != 2:
            raise ShapeError(
                f"op 'mine_hard_examples' takes {slot} [N, priors], not {list(spec.shape)}"
            )
    kind, ratio, threshold = (
        attrs["mining_type"],
        attrs["neg_pos_ratio"],
        attrs["neg_dist_threshold"],
    )
    if kind not in MININGS:
        raise FluidValueError(
            f"op 'mine_hard_examples' has the mining_type {' or '.join(MININGS)}, not {kind!r}"
        )
    if kind == MININGS[0] and not (ratio > 0 and 0 < threshold < 1):
        raise FluidValueError(
            "op 'mine_hard_examples' takes a neg_pos_ratio above 0 and a neg_dist_threshold"
            f" between 0 and 1, not {ratio} and {threshold}"
        )
    if kind == MININGS[1] and attrs["sample_size"] <= 0:
        raise FluidValueError(
            "op 'mine_hard_examples' takes a sample_size above 0 for hard_example, not"
            f" {attrs['sample_size']}"
        )
    return Spec((-1, 1), "int32"), MatchIndices


@op(
    outs="NegIndices UpdatedMatchIndices",
    infer=_mining_spec,
    rows=mixes(),
    chosen=rows_by(
        "ClsLoss MatchIndices MatchDist", "as many rows as there are priors", exact=False
    ),
)
def mine_hard_examples(
    ClsLoss: Array, LocLoss: Array | None, MatchIndices: Array, MatchDist: Array, *, neg_pos_ratio: float = 1.0,
    neg_dist_threshold: float = 0.5, sample_size: int = 0, mining_type: str = MININGS[0],
):  # fmt: skip
    """NegIndices [rows, 1] int32, one sequence per image = the priors that are trained as background,
    in order. All inputs [N, M].

    max_negative: the unmatched priors with MatchDist below neg_dist_threshold and the largest
    ClsLoss, neg_pos_ratio times as many as matches. hard_example: the unmatched ones among the
    sample_size priors with the largest ClsLoss + LocLoss. UpdatedMatchIndices: MatchIndices; for
    hard_example, -1 where a match is not among those priors.
    """
    count, width = MatchIndices.shape
    loss = ClsLoss.reshape(count, width)
    hard = mining_type == MININGS[1]
    if hard:
        loss = loss if LocLoss is None else loss + LocLoss
        eligible = jnp.ones(MatchIndices.shape, bool)
        most = jnp.full((count, 1), sample_size, jnp.int32)
    else:
        eligible = (MatchIndices == NONE) & (
            MatchDist.astype(jnp.float32) < np.float32(neg_dist_threshold)
        )
        matched = (MatchIndices != NONE).sum(1, keepdims=True)
        most = (matched.astype(jnp.float32) * np.float32(neg_pos_ratio)).astype(jnp.int32)
    at = lax.broadcasted_iota(jnp.int32, MatchIndices.shape, 1)
    order = lax.sort((~eligible, -jnp.asarray(loss, jnp.float32), at), num_keys=2, is_stable=True)[
        2
    ]
    image = lax.broadcasted_iota(jnp.int32, MatchIndices.shape, 0)
    chosen = jnp.zeros(MatchIndices.shape, bool).at[image, order].set(at < most) & eligible
    updated = (
        jnp.where((MatchIndices > NONE) & ~chosen, NONE, MatchIndices) if hard else MatchIndices
    )
    negative = chosen & (MatchIndices <= NONE)
    offsets = jnp.concatenate(
        [jnp.zeros((1,), jnp.int32), jnp.cumsum(negative.sum(1), dtype=jnp.int32)]
    )
    (places,) = jnp.nonzero(negative.reshape(-1), size=count * width, fill_value=0)
    return bounded((places % width).astype(jnp.int32)[:, None], offsets, width), updated
