"""Convolutions along ragged sequences."""

from ..sample import Sample, f32

LODS = ([[2, 3, 1]], [[0, 2, 0, 4, 0]], [[1, 1, 1, 1, 1, 1]])


def conv(lod, d=2, m=3, length=3, start=-1, padding=None, **attrs):
    inputs = {"X": f32(sum(lod[0]), d), "Filter": f32(length * d, m)}
    if padding:
        inputs["PaddingData"] = f32(padding, d)
        attrs["paddingTrainable"] = True
    attrs.update(contextLength=length, contextStart=start)
    return Sample("sequence_conv", inputs, attrs, ["Out"], sorted(inputs), lod={"X": lod})


SAMPLES = [
    conv(LODS[0]),
    conv(LODS[1]),
    conv(LODS[2]),
    conv(LODS[0], length=1, start=0),
    conv(LODS[0], length=5, start=-2),
    conv(LODS[1], length=2, start=1),
    conv([[9]], d=3, m=2, length=4, start=-3),
    conv([[4, 5]], padding=2),
    conv([[4, 5]], length=2, start=-1, padding=1),
    Sample(
        "row_conv",
        {"X": f32(6, 3), "Filter": f32(3, 3)},
        {},
        ["Out"],
        ["X", "Filter"],
        lod={"X": LODS[0]},
    ),
    Sample(
        "row_conv",
        {"X": f32(6, 3), "Filter": f32(2, 3)},
        {},
        ["Out"],
        ["X", "Filter"],
        lod={"X": LODS[1]},
        paddle=False,
        note="1.8.5 refuses an empty sequence",
    ),
    Sample(
        "row_conv",
        {"X": f32(6, 2), "Filter": f32(1, 2)},
        {},
        ["Out"],
        ["X", "Filter"],
        lod={"X": LODS[2]},
    ),
    Sample("row_conv", {"X": f32(2, 4, 3), "Filter": f32(3, 3)}, {}, ["Out"], ["X", "Filter"]),
]
