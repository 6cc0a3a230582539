"""positive_negative_pair: how often scores and labels order the documents of a query in the same
way.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ..errors import ShapeError
from .ragged import Ragged, counted, rows_of
from .registry import Array, op
from .traits import FREE, knows_rows


@op(outs="PositivePair NegativePair NeutralPair?", rows=knows_rows(each=""), bounds=FREE)
def positive_negative_pair(
    Score: Array | Ragged, Label: Array | Ragged, QueryID: Array | Ragged, AccumulatePositivePair: Array | None,
    AccumulateNegativePair: Array | None, AccumulateNeutralPair: Array | None, Weight: Array | Ragged | None, *, column: int = 0,
) -> Any:  # fmt: skip
    """PositivePair, NegativePair and NeutralPair [1] = the weights of pairs of rows of one query
    with different labels:

    those that Score[:, column] orders like Label, the others, and those with equal scores, which
    also count as negative. Score [N, D], Label [N, 1], QueryID [N, 1], Weight [N, 1] (a pair weighs
    the mean of its rows', 1 without it). The three Accumulate* [1] are added if given.
    """
    padded = counted(
        "positive_negative_pair", Score=Score, Label=Label, QueryID=QueryID, Weight=Weight
    )
    scores: Any = rows_of(Score)
    labels: Any = rows_of(Label)
    queries: Any = rows_of(QueryID)
    weights_of: Any = rows_of(Weight)
    given = [AccumulatePositivePair, AccumulateNegativePair, AccumulateNeutralPair]
    if scores.ndim != 2 or not -scores.shape[1] <= column < scores.shape[1]:
        raise ShapeError(
            f"op 'positive_negative_pair' takes Score [N, D] with a column {column}, not"
            f" {list(scores.shape)}"
        )
    if len({v is None for v in given}) > 1:
        raise ShapeError("op 'positive_negative_pair' takes all three Accumulate slots or none")
    score, label, query = scores[:, column], labels.reshape(-1), queries.reshape(-1)
    weight = jnp.ones(score.shape[0], scores.dtype) if Weight is None else weights_of.reshape(-1)
    place = np.arange(score.shape[0])
    pair = (place[:, None] < place) & (query[:, None] == query) & (label[:, None] != label)
    if padded is not None:
        pair &= padded.kept()  # padded rows follow the true ones
    weights = (weight[:, None] + weight) * np.asarray(0.5, weight.dtype)
    same = score[:, None] == score
    ordered = (score[:, None] - score) * (label[:, None] - label) > 0
    sums = [
        jnp.sum(jnp.where(pair & which, weights, 0)).reshape(1)
        for which in (ordered, ~ordered, same)
    ]
    return tuple(
        s if before is None else before.reshape(1) + s
        for s, before in zip(sums, given, strict=True)
    )
