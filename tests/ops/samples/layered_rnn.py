"""Recurrences in layers over plain batches."""

import numpy as np

from ..sample import LATER, Sample, f32

STATES = {"LSTM": 2, "GRU": 1, "RNN_TANH": 1, "RNN_RELU": 1}
GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def weights(mode, size, width, layers, ways):
    """All matrices, then all biases"""
    wide = GATES[mode] * width
    found = []
    for layer in range(layers):
        for _ in range(ways):
            found += [f32(wide, ways * width if layer else size), f32(wide, width)]
    return found + [f32(wide) for _ in range(2 * layers * ways)]


def rnn(mode, layers=1, both=False, lengths=None, steps=3, size=2, width=2, value=False):
    """value: without gradients"""
    ways, batch = 1 + both, len(lengths) if lengths else 2
    inputs = {
        "Input": f32(steps, batch, size),
        "PreState": [f32(layers * ways, batch, width) for _ in range(STATES[mode])],
        "WeightList": weights(mode, size, width, layers, ways),
    }
    if lengths:
        inputs["SequenceLength"] = np.array(lengths, "int32")
    attrs = {
        "mode": mode,
        "is_bidirec": both,
        "input_size": size,
        "hidden_size": width,
        "num_layers": layers,
    }
    # differences of 3.3.1's own outputs contradict its gradients then
    wrong = lengths and not value
    return Sample(
        "rnn",
        inputs,
        attrs,
        ["Out", "State*%d" % STATES[mode]],
        [] if value else ["Input", "PreState", "WeightList"],
        paddle=False if wrong else LATER,
        note="3.3.1's gradients with SequenceLength are not derivatives" if wrong else "",
    )


def cudnn(layers=1, both=False, plain=False, **attrs):
    """plain: first states [N, H]"""
    ways = 1 + both
    count = sum(w.size for w in weights("LSTM", 3, 2, layers, ways))
    state = (2, 2) if plain else (layers * ways, 2, 2)
    attrs.update(hidden_size=2, input_size=3, num_layers=layers, is_bidirec=both)
    return Sample(
        "cudnn_lstm",
        {"Input": f32(3, 2, 3), "InitH": f32(*state), "InitC": f32(*state), "W": f32(count)},
        attrs,
        ["Out", "last_h", "last_c"],
        ["Input", "InitH", "InitC", "W"],
        paddle=False,
        note="1.8.5 runs it on a GPU only",
    )


SAMPLES = [
    rnn("LSTM", 2, True, [3, 1, 2], value=True),
    rnn("GRU", 2, True),
    rnn("GRU", 1, True, [2, 3]),
    rnn("RNN_TANH"),
    rnn("RNN_RELU", lengths=[2, 3], value=True),
    cudnn(2, True, is_test=True, dropout_prob=0.5),
    cudnn(plain=True),
]
