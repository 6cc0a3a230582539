"""One step of a GRU and of an LSTM."""

from ..sample import Sample, away_from_zero, f32

OUTS = ["Gate", "ResetHiddenPrev", "Hidden"]


def gru_unit(n=4, d=3, bias=True, make=f32, **attrs):
    inputs = {"Input": make(n, 3 * d), "HiddenPrev": f32(n, d), "Weight": f32(d, 3 * d)}
    if bias:
        inputs["Bias"] = f32(1, 3 * d)
    return Sample("gru_unit", inputs, attrs, OUTS, sorted(inputs), of=["Hidden"])


SAMPLES = [
    gru_unit(),
    gru_unit(origin_mode=True),
    gru_unit(bias=False),
    gru_unit(n=1, d=1),
    gru_unit(n=3, d=8, origin_mode=True, bias=False),
    gru_unit(activation=1, gate_activation=2),
    gru_unit(activation=0, gate_activation=0, n=2, d=2),
    gru_unit(activation=3, gate_activation=1, bias=False, make=away_from_zero, n=2, d=2),
    Sample("lstm_unit", {"X": f32(4, 12), "C_prev": f32(4, 3)}, {}, ["C", "H"], ["X", "C_prev"]),
    Sample(
        "lstm_unit",
        {"X": f32(2, 4, lo=-9, hi=9), "C_prev": f32(2, 1)},
        {"forget_bias": 1.5},
        ["C", "H"],
        ["X", "C_prev"],
    ),
]
SAMPLES += [Sample("rnn_memory_helper", {"X": f32(3, 2)}, {}, ["Out"], ["X"])]
