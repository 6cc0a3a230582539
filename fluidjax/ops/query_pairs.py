"""positive_negative_pair: how often scores order the documents of a query as labels do."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ..errors import ShapeError
from .registry import Array, op
from .traits import FREE, mixes


@op(outs="PositivePair NegativePair NeutralPair?", rows=mixes(), bounds=FREE)
def positive_negative_pair(
    Score: Array, Label: Array, QueryID: Array, AccumulatePositivePair: Array | None, AccumulateNegativePair: Array | None,
    AccumulateNeutralPair: Array | None, Weight: Array | None, *, column: int = 0,
) -> Any:  # fmt: skip
    """PositivePair, NegativePair and NeutralPair [1] = the weights of pairs of rows of one query with different labels:

    those that Score[:, column] orders as Label does, the others, and those with equal scores, which count as negative too. Score [N, D],
    Label [N, 1], QueryID [N, 1], Weight [N, 1] (a pair weighs the mean of its rows', 1 without it). The Accumulate* [1] are added where
    they are given, all three.
    """
    given = [AccumulatePositivePair, AccumulateNegativePair, AccumulateNeutralPair]
    if Score.ndim != 2 or not -Score.shape[1] <= column < Score.shape[1]:
        raise ShapeError(f"op 'positive_negative_pair' takes Score [N, D] with a column {column}, not {list(Score.shape)}")
    if len({v is None for v in given}) > 1:
        raise ShapeError("op 'positive_negative_pair' takes all three Accumulate slots or none")
    score, label, query = Score[:, column], Label.reshape(-1), QueryID.reshape(-1)
    weight = jnp.ones(score.shape[0], Score.dtype) if Weight is None else Weight.reshape(-1)
    place = np.arange(score.shape[0])
    pair = (place[:, None] < place) & (query[:, None] == query) & (label[:, None] != label)
    weights = (weight[:, None] + weight) * np.asarray(0.5, weight.dtype)
    same = score[:, None] == score
    ordered = (score[:, None] - score) * (label[:, None] - label) > 0
    sums = [jnp.sum(jnp.where(pair & which, weights, 0)).reshape(1) for which in (ordered, ~ordered, same)]
    return tuple(s if before is None else before.reshape(1) + s for s, before in zip(sums, given, strict=True))
