"""Blocks dealt to one rank alone: the arrays, one after another; tests/dist/test_block_partition.py
has them on several.
"""

from ..sample import Sample, f32, ints

NOTE = "1.8.5 has no such ops"
SPANS = [0, 0, 0, 0, 0, 12, 1, 0, 0, 12, 0, 2]
SAMPLES = [
    Sample(
        "c_deal",
        {"X": [f32(4, 3), f32(2)]},
        {"nranks": 1, "widths": [14], "spans": SPANS},
        ["Out*1"],
        paddle=False,
        note=NOTE,
        skip={"unknown": "a block has a fixed size"},
    ),
    Sample(
        "c_deal_reducescatter",
        {"X": [f32(4, 3), f32(2)]},
        {"nranks": 1, "widths": [14], "spans": SPANS},
        ["Out*1"],
        paddle=False,
        note=NOTE,
        skip={"unknown": "a block has a fixed size"},
    ),
    Sample(
        "c_deal_allgather",
        {"X": [f32(14)]},
        {"nranks": 1, "shapes": [2, 4, 3, 1, 2], "spans": SPANS},
        ["Out*2"],
        paddle=False,
        note=NOTE,
        skip={"unknown": "a block has a fixed size"},
    ),
    Sample(
        "c_deal_alltoall",
        {"X": [f32(4, 3), f32(2)]},
        {"nranks": 1, "widths": [14], "spans": SPANS},
        ["Out*1"],
        paddle=False,
        note=NOTE,
        skip={"unknown": "a block has a fixed size"},
    ),
    Sample(
        "c_deal_answer",
        {"X": [f32(1, 14)], "Order": ints(1, high=1)},
        {"nranks": 1, "shapes": [2, 4, 3, 1, 2], "spans": SPANS},
        ["Out*2"],
        paddle=False,
        note=NOTE,
        skip={"unknown": "a block has a fixed size"},
    ),
    Sample(
        "c_arrived",
        {"X": f32(3, 4), "Order": ints(3, high=3)},
        {"at": 1},
        ["Out"],
        paddle=False,
        note=NOTE,
    ),
]
