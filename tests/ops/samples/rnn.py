"""Recurrences over ragged sequences."""

from ..sample import Sample, f32, f64

LODS = ([[3, 1, 4]], [[0, 5, 0, 3]], [[1, 1, 2, 4]])
STATES = ["BatchGate", "BatchResetHiddenPrev", "BatchHidden", "Hidden"]


def gru(lod, d=3, h0=False, bias=True, **attrs):
    n = len(lod[0])
    inputs = {"Input": f32(sum(lod[0]), 3 * d), "Weight": f32(d, 3 * d)}
    if h0:
        inputs["H0"] = f32(n, d)
    if bias:
        inputs["Bias"] = f32(1, 3 * d)
    return Sample("gru", inputs, attrs, STATES, sorted(inputs), lod={"Input": lod}, of=["Hidden"])


def lstm(lod, d=3, states=False, **attrs):
    n = len(lod[0])
    wide = 7 if attrs.get("use_peepholes", True) else 4
    inputs = {"Input": f32(sum(lod[0]), 4 * d), "Weight": f32(d, 4 * d), "Bias": f32(1, wide * d)}
    if states:
        inputs.update(H0=f32(n, d), C0=f32(n, d))
    return Sample(
        "lstm",
        inputs,
        attrs,
        ["Hidden", "Cell", "BatchGate", "BatchCellPreAct"],
        sorted(inputs),
        lod={"Input": lod},
        of=["Hidden"],
    )


SAMPLES = [
    gru(LODS[0]),
    gru(LODS[0], is_reverse=True),
    gru(LODS[0], origin_mode=True),
    gru(LODS[0], origin_mode=True, is_reverse=True, h0=True),
    gru(LODS[2], h0=True, is_reverse=True),
    gru(LODS[2], bias=False, activation="relu", gate_activation="identity"),
    gru(LODS[0], activation="sigmoid", gate_activation="tanh", h0=True),
    gru([[7]], d=2),
    gru(LODS[1]),
    lstm(LODS[0]),
    lstm(LODS[0], use_peepholes=False),
    lstm(LODS[0], is_reverse=True, states=True),
    lstm(
        LODS[2],
        use_peepholes=False,
        states=True,
        gate_activation="relu",
        cell_activation="identity",
        candidate_activation="sigmoid",
    ),
    lstm(LODS[2], is_reverse=True),
]


def saturated(kind, make, low, high, note="gates are held within [-40, 13]", **attrs):
    """Gates far beyond their bounds; their slope there is y * (1 - y), which is not a derivative."""
    wide = 9 if kind == "gru" else 12
    inputs = {"Input": make(5, wide, lo=low, hi=high), "Weight": make(3, wide)}
    if kind == "lstm":
        inputs["Bias"] = make(1, 21)
    outputs = ["Hidden"] if kind == "gru" else ["Hidden", "Cell"]
    return Sample(
        kind,
        inputs,
        attrs,
        outputs,
        sorted(inputs),
        lod={"Input": [[2, 3]]},
        of=["Hidden"],
        note=note,
        tol=1e-10 if make is f64 else None,
        grad_tol=1e-10 if make is f64 else None,
        skip={"numeric": "beyond the bounds Paddle's gradient is not the derivative"},
    )


SAMPLES += [
    saturated("gru", f64, -30, 30),
    saturated("gru", f64, -1000, 1000, activation="relu"),
    saturated("gru", f32, -100, 100),
    saturated("lstm", f64, -30, 30),
    saturated("lstm", f32, -1000, 1000),
]
