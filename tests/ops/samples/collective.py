"""Collectives of one rank alone, where each is the identity; tests/dist has them on several."""

from ..sample import Sample, f32

NOTE = "the CPU build has no rings"
LATER = "of Paddle 2, whose CPU build has no rings"
X = f32(4, 3)
SAMPLES = [
    *(
        Sample(
            "c_allreduce_%s" % kind,
            {"X": X},
            {"ring_id": 1},
            ["Out"],
            grad=["X"] if kind == "sum" else None,
            paddle=False,
            note=NOTE,
        )
        for kind in ("sum", "max", "min", "prod")
    ),
    *(
        Sample("c_reduce_%s" % kind, {"X": X}, {"root_id": 0}, ["Out"], paddle=False, note=LATER)
        for kind in ("sum", "max", "min", "prod")
    ),
    Sample("c_scatter", {"X": X}, {"nranks": 1, "root": 0}, ["Out"], paddle=False, note=LATER),
    Sample("c_share", {"X": X}, {"rows": 3}, ["Out"], paddle=False, note=NOTE),
    Sample("c_broadcast", {"X": X}, {"root": 0, "ring_id": 0}, ["Out"], paddle=False, note=NOTE),
    *(
        Sample("allreduce", {"X": X}, {"reduce_type": kind}, ["Out"], paddle=False, note=NOTE)
        for kind in range(4)
    ),
    Sample("broadcast", {"X": X}, {"root": 0}, ["Out"], paddle=False, note=NOTE),
    Sample("c_allgather", {"X": X}, {"nranks": 1}, ["Out"], grad=["X"], paddle=False, note=NOTE),
    Sample("c_reducescatter", {"X": X}, {"nranks": 1}, ["Out"], paddle=False, note=NOTE),
    Sample("c_sync_calc_stream", {"X": X}, {}, ["Out"], paddle=False, note=NOTE),
    Sample("c_sync_comm_stream", {"X": X}, {"ring_id": 0}, ["Out"], paddle=False, note=NOTE),
    Sample("c_fused_allreduce_sum", {"X": [X, f32(2)]}, {}, ["Out*2"], paddle=False, note=NOTE),
]
