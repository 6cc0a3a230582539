"""LSTMs with a projection over ragged sequences."""

from ..sample import Sample, f32

LODS = ([[3, 1, 4]], [[0, 5, 0, 3]], [[1, 1, 2, 4]])
OUTS = ["Projection", "Cell", "BatchGate", "BatchCellPreAct", "BatchHidden"]


def lstmp(lod, d=3, p=2, states=False, grad=True, note="", **attrs):
    n, wide = len(lod[0]), 7 if attrs.get("use_peepholes", True) else 4
    inputs = {
        "Input": f32(sum(lod[0]), 4 * d),
        "Weight": f32(p, 4 * d),
        "ProjWeight": f32(d, p),
        "Bias": f32(1, wide * d),
    }
    if states:
        inputs.update(H0=f32(n, p), C0=f32(n, d))
    return Sample(
        "lstmp",
        inputs,
        attrs,
        OUTS,
        sorted(inputs) if grad else [],
        lod={"Input": lod},
        of=["Projection"],
        paddle=not note,
        note=note,
    )


SAMPLES = [
    lstmp(LODS[0]),
    lstmp(LODS[0], use_peepholes=False),
    lstmp(LODS[2], is_reverse=True, states=True),
    lstmp(
        LODS[2],
        use_peepholes=False,
        states=True,
        gate_activation="sigmoid",
        cell_activation="identity",
        candidate_activation="sigmoid",
        proj_activation="identity",
    ),
    lstmp([[7]], d=2, p=4, grad=False, proj_activation="sigmoid"),
    lstmp(LODS[0], cell_clip=0.1),
    lstmp(LODS[0], proj_clip=0.05),
    lstmp(LODS[1]),
    lstmp(
        [[3, 2]],
        d=2,
        note="1.8.5's gradient is of another activation than its output",
        proj_activation="sigmoid",
    ),
]
