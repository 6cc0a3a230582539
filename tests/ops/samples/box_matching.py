"""Matches of priors and true boxes."""

import numpy as np

from ..sample import Sample, distinct, f32, ints, uniform


def match(values, lod=None, **attrs):
    return Sample(
        "bipartite_match",
        {"DistMat": values},
        attrs,
        ["ColToRowMatchIndices", "ColToRowMatchDist"],
        lod={"DistMat": lod} if lod else None,
    )


def assign(x, lod, matches, negative=None, neg_lod=None, **attrs):
    inputs, lods = {"X": x, "MatchIndices": np.array(matches, "int32")}, {"X": [lod]}
    if negative is not None:
        inputs["NegIndices"], lods["NegIndices"] = (
            np.array(negative, "int32").reshape(-1, 1),
            [neg_lod],
        )
    return Sample("target_assign", inputs, attrs, ["Out", "OutWeight"], lod=lods)


def mine(loss, matches, distance, left, loc=None, **attrs):
    inputs = {
        "ClsLoss": loss,
        "MatchIndices": np.array(matches, "int32"),
        "MatchDist": np.array(distance, loss.dtype),
    }
    if loc is not None:
        inputs["LocLoss"] = loc
    return Sample(
        "mine_hard_examples",
        inputs,
        attrs,
        ["NegIndices", "UpdatedMatchIndices"],
        rows={"NegIndices": left},
    )


TIES = np.array([[0.5, 0.5, 0.2, 0.5], [0.5, 0.7, 0.7, 0.5], [0.0, 0.7, 0.7, 0.1]], "float32")
ODD = np.array(
    [[np.nan, 0.9, 1e-7, -1.0], [0.8, np.nan, 1e-6, 0.3], [np.inf, 0.2, 0.0, np.nan]], "float32"
)
MATCHES = [[0, -1, 1, -1, -1], [-1, -1, 0, -1, -1]]
DISTANCE = [[0.9, 0.1, 0.6, 0.6, 0.2], [0.3, 0.0, 0.7, 0.1, 0.4]]
SAMPLES = [
    match(distinct(5, 6, lo=0.0), [[2, 3]]),
    match(distinct(5, 6, lo=0.0), [[2, 3]], match_type="per_prediction", dist_threshold=0.5),
    match(distinct(5, 3, lo=-0.5), [[4, 1]], match_type="per_prediction", dist_threshold=0.1),
    match(distinct(3, 4, lo=0.0, dtype="float64"), match_type="per_prediction", dist_threshold=0.3),
    match(TIES),
    match(TIES, [[2, 1]], match_type="per_prediction", dist_threshold=0.5),
    match(ODD, match_type="per_prediction", dist_threshold=0.1),
    match(distinct(4, 3, lo=0.0), [[3, 1]], match_type="per_prediction", dist_threshold=0.2),
    match(np.zeros((3, 2), "float32"), [[2, 1]]),
    match(distinct(140, 3, lo=0.0), match_type="per_prediction", dist_threshold=0.4),
    assign(f32(3, 1, 2), [2, 1], [[0, -1, 1, 1], [-1, 0, 0, -1]], mismatch_value=7),
    assign(f32(3, 4, 2), [2, 1], [[0, -1, 1, 1], [-1, 0, 0, -1]]),
    assign(
        ints(3, 1, 1, high=9, dtype="int32"),
        [2, 1],
        [[0, -1, 1, 1], [-1, 0, 0, -1]],
        [1, 2, 3],
        [1, 2],
        mismatch_value=4,
    ),
    assign(
        f32(3, 1, 2), [2, 1], [[0, -1, 1, 1], [-1, 0, 0, -1]], [0, 1], [2, 0], mismatch_value=-2
    ),
    mine(distinct(2, 5), MATCHES, DISTANCE, 3),
    mine(distinct(2, 5), MATCHES, DISTANCE, 5, neg_pos_ratio=3.0, neg_dist_threshold=0.35),
    mine(distinct(2, 5, dtype="float64"), MATCHES, DISTANCE, 3, neg_pos_ratio=1.5),
    mine(
        distinct(2, 5),
        MATCHES,
        DISTANCE,
        4,
        loc=uniform((2, 5)),
        mining_type="hard_example",
        sample_size=3,
    ),
    mine(distinct(2, 5), MATCHES, DISTANCE, 4, mining_type="hard_example", sample_size=9),
    mine(np.ones((2, 5), "float32"), MATCHES, DISTANCE, 3),
    mine(distinct(2, 5), [[-1] * 5, MATCHES[0]], DISTANCE, 2),
]
