"""Recurrences with the projection of their inputs."""

from ..sample import Sample, f32, ints

LOD = [[3, 1, 4]]
EQUAL = [[2, 2]]


def states(inputs, lod, width, *slots):
    inputs.update({s: f32(len(lod[0]), width) for s in slots})
    return inputs


def gru(lod, first=False, bias=True, m=4, d=3, **attrs):
    inputs = {"X": f32(sum(lod[0]), m), "WeightX": f32(m, 3 * d), "WeightH": f32(d, 3 * d)}
    if bias:
        inputs["Bias"] = f32(1, 3 * d)
    return Sample(
        "fusion_gru",
        states(inputs, lod, d, *(["H0"] if first else [])),
        attrs,
        ["Hidden"],
        lod={"X": lod},
    )


def lstm(lod, first=False, m=4, d=3, **attrs):
    wide = 7 if attrs.get("use_peepholes", True) else 4
    inputs = {
        "X": f32(sum(lod[0]), m),
        "WeightX": f32(m, 4 * d),
        "WeightH": f32(d, 4 * d),
        "Bias": f32(1, wide * d),
    }
    return Sample(
        "fusion_lstm",
        states(inputs, lod, d, *(["H0", "C0"] if first else [])),
        attrs,
        ["Hidden", "Cell"],
        lod={"X": lod},
    )


def embedded(lod, first=False, d=3, **attrs):
    wide = 7 if attrs.get("use_peepholes", True) else 4
    inputs = {
        "Ids": ints(sum(lod[0]), 1, high=6),
        "Embeddings": f32(6, 4 * d),
        "WeightH": f32(d, 4 * d),
        "Bias": f32(1, wide * d),
    }
    return Sample(
        "fused_embedding_fc_lstm",
        states(inputs, lod, d, *(["H0", "C0"] if first else [])),
        attrs,
        ["Hidden", "Cell"],
        lod={"Ids": lod},
    )


def attention(lod, *more, m=4, d=3, **attrs):
    inputs = {
        "X": f32(sum(lod[0]), m),
        "C0": f32(len(lod[0]), d),
        "AttentionWeight": f32(m + d, 1),
        "LSTMWeight": f32(m + d, 4 * d),
        "LSTMBias": f32(1, 4 * d),
    }
    for slot in more:
        inputs[slot] = f32(len(lod[0]), d) if slot == "H0" else f32(1, 1)
    return Sample("attention_lstm", inputs, attrs, ["Hidden", "Cell"], lod={"X": lod})


SAMPLES = [
    gru(LOD),
    gru(LOD, first=True, is_reverse=True),
    gru(EQUAL, bias=False, use_seq=False),
    gru(LOD, first=True, use_seq=False, is_reverse=True, origin_mode=True),
    gru(LOD, activation="relu", gate_activation="sigmoid", origin_mode=True),
    lstm(LOD),
    lstm(LOD, use_peepholes=False, first=True, is_reverse=True),
    lstm(LOD, first=True, use_seq=False),
    lstm(EQUAL, use_peepholes=False, use_seq=False, candidate_activation="relu", is_reverse=True),
    embedded(LOD),
    embedded(LOD, use_peepholes=False, first=True, is_reverse=True),
    embedded(LOD, first=True, use_seq=False),
    attention(LOD),
    attention(LOD, "H0", "AttentionBias"),
    attention(EQUAL, "H0", "AttentionBias", "AttentionScalar", "AttentionScalarBias"),
    attention(LOD, "AttentionScalar", candidate_activation="relu", cell_activation="sigmoid"),
]
