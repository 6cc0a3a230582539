"""Pieces of one rank alone: the array, flat; tests/dist has them on several."""

from ..sample import Sample, f32

NOTE = "1.8.5 has no such ops"
SAMPLES = [
    Sample("c_piece", {"X": f32(4, 3)}, {"nranks": 1}, ["Out"], paddle=False, note=NOTE),
    Sample(
        "c_fused_reducescatter",
        {"X": [f32(4, 3), f32(2)]},
        {"nranks": 1},
        ["Out*2"],
        paddle=False,
        note=NOTE,
    ),
    Sample(
        "c_fused_allgather",
        {"X": [f32(12), f32(2)]},
        {"nranks": 1, "shapes": [2, 4, 3, 1, 2]},
        ["Out*2"],
        paddle=False,
        note=NOTE,
        skip={"unknown": "a piece has a fixed size"},
    ),
]
