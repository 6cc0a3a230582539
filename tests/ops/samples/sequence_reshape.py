"""Ops that give the rows of sequences another form."""

from ..sample import Sample, f32, ints

LOD = {"X": [[2, 4, 2]]}
EMPTY = {"X": [[0, 2, 0, 4, 0]]}
AGAIN = [[3, 1, 2]]


def scatter(lod, n=3, d=5):
    rows = sum(lod[0])
    return Sample(
        "sequence_scatter",
        {"X": f32(n, d), "Ids": ints(rows, 1, high=d), "Updates": f32(rows, 1)},
        {},
        ["Out"],
        ["X", "Updates"],
        lod={"Ids": lod, "Updates": lod},
    )


SAMPLES = [
    Sample("sequence_reshape", {"X": f32(8, 2)}, {"new_dim": 4}, ["Out"], ["X"], lod=LOD),
    Sample("sequence_reshape", {"X": f32(6, 6)}, {"new_dim": 2}, ["Out"], ["X"], lod=EMPTY),
    Sample("sequence_reshape", {"X": ints(6, 4, high=9)}, {"new_dim": 8}, ["Out"], lod=EMPTY),
    Sample(
        "sequence_reshape", {"X": f32(3, 2)}, {"new_dim": 2}, ["Out"], ["X"], lod={"X": [[1, 2]]}
    ),
    Sample(
        "sequence_enumerate",
        {"X": ints(8, 1, high=9)},
        {"win_size": 2, "pad_value": 7},
        ["Out"],
        lod=LOD,
    ),
    Sample(
        "sequence_enumerate",
        {"X": ints(6, 1, high=9, dtype="int32")},
        {"win_size": 5},
        ["Out"],
        lod=EMPTY,
    ),
    scatter(AGAIN),
    scatter([[4, 1, 1]]),
    scatter([[1]], n=1, d=2),
]
