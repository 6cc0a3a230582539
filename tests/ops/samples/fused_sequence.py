"""Ops that stand for several others on sequences."""

from ..sample import Sample, f32, ints, positive

LOD = [[3, 1, 4]]
GAPS = [[0, 5, 0, 3]]


def conv(lod, length, start, wide=3):
    return Sample(
        "fusion_seqconv_eltadd_relu",
        {"X": f32(sum(lod[0]), wide), "Filter": f32(length * wide, 4), "Bias": f32(1, 4)},
        {"contextLength": length, "contextStart": start},
        ["Out"],
        lod={"X": lod},
    )


def expand(lod, widths, act="identity", bias=True):
    rows = len(lod[0])
    x = [f32(sum(lod[0]), widths[0])] + [f32(rows, w) for w in widths[1:]]
    inputs = {"X": x, "FCWeight": f32(sum(widths), 5)}
    if bias:
        inputs["FCBias"] = f32(1, 5)
    return Sample(
        "fusion_seqexpand_concat_fc",
        inputs,
        {"fc_activation": act},
        ["Out"],
        lod={"X": [lod] + [[[1] * rows]] * (len(widths) - 1)},
    )


def pool(pooltype, lods, wide=3):
    return Sample(
        "fusion_seqpool_concat",
        {"X": [f32(sum(lod[0]), wide) for lod in lods]},
        {"pooltype": pooltype},
        ["Out"],
        lod={"X": list(lods)},
    )


def cvm(pooltype, lods, wide=4):
    return Sample(
        "fusion_seqpool_cvm_concat",
        {"X": [positive(sum(lod[0]), wide) for lod in lods], "CVM": f32(len(lods[0][0]), 2)},
        {"pooltype": pooltype},
        ["Out"],
        lod={"X": list(lods)},
    )


def bag(lod, grad=True, **attrs):
    return Sample(
        "fused_embedding_seq_pool",
        {"W": f32(7, 3), "Ids": ints(sum(lod[0]), 1, high=7)},
        attrs,
        ["Out"],
        ["W"] if grad else [],
        lod={"Ids": lod},
    )


SAMPLES = [
    conv(LOD, 3, -1),
    conv(LOD, 2, 0),
    conv([[1, 6]], 5, -2, wide=2),
    expand(LOD, [3, 2]),
    expand(LOD, [3, 2, 4], act="relu"),
    expand([[2, 2]], [2, 2], act="tanh", bias=False),
    expand(LOD, [3, 2], act="sigmoid"),
    pool("SUM", [LOD, [[2, 2, 1]]]),
    pool("AVERAGE", [LOD, [[2, 2, 1]], LOD]),
    pool("SQRT", [LOD]),
    cvm("SUM", [LOD, [[2, 2, 1]]]),
    cvm("AVERAGE", [LOD]),
    bag(LOD),
    bag(LOD, padding_idx=3),
    bag([[2, 6]]),
]
