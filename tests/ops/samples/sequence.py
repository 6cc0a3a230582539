"""Ops on whole ragged sequences."""

from ..sample import Sample, distinct, f32, ints

LOD = {"X": [[2, 3, 1]]}
EMPTY = {"X": [[0, 2, 0, 4, 0]]}
DEEP = {"X": [[2, 0, 1], [3, 0, 2]]}
POOLS = ("SUM", "AVERAGE", "SQRT", "MAX", "LAST", "FIRST")


def pool(kind, x, lod, **more):
    return Sample("sequence_pool", {"X": x}, dict(more, pooltype=kind), ["Out"], ["X"], lod=lod)


SAMPLES = (
    [pool(kind, distinct(6, 3), LOD) for kind in POOLS]
    + [pool(kind, distinct(6, 2, 2), EMPTY, pad_value=7.5) for kind in POOLS]
    + [pool(kind, distinct(5, 2), DEEP) for kind in POOLS]
    + [
        Sample(
            "sequence_pool",
            {"X": distinct(6, 3)},
            {"pooltype": "MAX"},
            ["Out", "MaxIndex"],
            lod=LOD,
        ),
        Sample("sequence_softmax", {"X": f32(6, 1)}, {}, ["Out"], ["X"], lod=LOD),
        Sample("sequence_softmax", {"X": f32(6, lo=-9, hi=9)}, {}, ["Out"], ["X"], lod=EMPTY),
        Sample("sequence_softmax", {"X": f32(5, 1)}, {}, ["Out"], ["X"], lod=DEEP),
        Sample("sequence_reverse", {"X": f32(6, 3)}, {}, ["Y"], lod=LOD),
        Sample("sequence_reverse", {"X": ints(6, 1, high=50)}, {}, ["Y"], lod=EMPTY),
        Sample("sequence_reverse", {"X": f32(6, 2, 2)}, {}, ["Y"], lod=EMPTY),
        Sample(
            "sequence_expand",
            {"X": f32(3, 2), "Y": f32(6, 1)},
            {},
            ["Out"],
            ["X"],
            lod={"Y": [[2, 3, 1]]},
        ),
        Sample(
            "sequence_expand",
            {"X": f32(5, 2), "Y": f32(6, 1)},
            {"ref_level": 0},
            ["Out"],
            ["X"],
            lod={"Y": [[0, 2, 0, 4, 0]]},
        ),
        Sample(
            "sequence_expand",
            {"X": f32(3, 2), "Y": f32(5, 1)},
            {"ref_level": 0},
            ["Out"],
            ["X"],
            lod={"Y": [[2, 0, 1], [3, 0, 2]]},
        ),
        Sample(
            "sequence_expand",
            {"X": f32(3, 2), "Y": f32(5, 1)},
            {"ref_level": 1},
            ["Out"],
            ["X"],
            lod={"Y": [[2, 0, 1], [3, 0, 2]]},
        ),
        Sample(
            "sequence_expand_as",
            {"X": f32(3, 2), "Y": f32(6, 1)},
            {},
            ["Out"],
            ["X"],
            lod={"Y": [[2, 3, 1]]},
        ),
        Sample(
            "sequence_expand_as",
            {"X": f32(3, 2, 2), "Y": f32(6, 1)},
            {},
            ["Out"],
            ["X"],
            lod={"Y": [[0, 6, 0]]},
        ),
        Sample(
            "sequence_concat",
            {"X": [f32(6, 2), f32(4, 2)]},
            {},
            ["Out"],
            ["X"],
            lod={"X": [[[2, 3, 1]], [[1, 2, 1]]]},
        ),
        Sample(
            "sequence_concat",
            {"X": [f32(6, 2), f32(4, 2), f32(3, 2)]},
            {},
            ["Out"],
            ["X"],
            lod={"X": [[[2, 3, 1]], [[4, 0, 0]], [[0, 0, 3]]]},
        ),
        Sample(
            "sequence_pad",
            {"X": f32(6, 2), "PadValue": f32(1)},
            {},
            ["Out", "Length"],
            ["X"],
            lod=LOD,
        ),
        Sample(
            "sequence_pad",
            {"X": f32(6, 2), "PadValue": f32(2)},
            {"padded_length": 5},
            ["Out", "Length"],
            ["X"],
            lod=EMPTY,
        ),
        Sample(
            "sequence_pad",
            {"X": ints(6, 1, high=9), "PadValue": ints(1, high=9)},
            {"padded_length": 3},
            ["Out", "Length"],
            lod=LOD,
        ),
        Sample("lod_reset", {"X": f32(6, 2)}, {"target_lod": [0, 1, 6]}, ["Out"], ["X"]),
        Sample("lod_reset", {"X": f32(6, 2)}, {"target_lod": [0, 4, 6]}, ["Out"], ["X"], lod=LOD),
        Sample(
            "lod_reset",
            {"X": f32(6, 2), "Y": f32(6, 1)},
            {},
            ["Out"],
            ["X"],
            lod={"X": [[6]], "Y": [[2, 3, 1]]},
        ),
        Sample(
            "lod_reset",
            {"X": f32(6, 2)},
            {"target_lod": [0, 1, 2, 4, 4, 5, 6], "append": True},
            ["Out"],
            ["X"],
            lod=LOD,
            paddle=False,
            note="1.8.5 makes a LoD of it that does not fit itself",
        ),
    ]
)
SAMPLES += [
    Sample(
        "sequence_expand",
        {"X": f32(4, 2), "Y": f32(5, 1)},
        {},
        ["Out"],
        ["X"],
        lod={"X": [[3, 1]], "Y": [[2, 3]]},
        rows={"Out": 9},
    ),
    Sample(
        "sequence_expand",
        {"X": f32(4, 2), "Y": f32(6, 1)},
        {"ref_level": 0},
        ["Out"],
        ["X"],
        lod={"X": [[2, 0, 2]], "Y": [[2, 0, 1], [3, 0, 3]]},
        rows={"Out": 6},
    ),
]
