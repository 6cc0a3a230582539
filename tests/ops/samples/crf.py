"""Linear-chain conditional random fields."""

from ..sample import Sample, f32, ints

LODS = ([[3, 1, 4]], [[0, 5, 0, 3]])
OUTPUTS = ["Alpha", "EmissionExps", "TransitionExps", "LogLikelihood"]


def ragged(op, lod, d, label, outputs, grad=()):
    n = sum(lod[0])
    inputs = {"Emission": f32(n, d, lo=-2, hi=2), "Transition": f32(d + 2, d)}
    if label:
        inputs["Label"] = ints(n, 1, high=d)
    lods = {slot: lod for slot in ("Emission", "Label") if slot in inputs}
    return Sample(op, inputs, {}, outputs, grad, lod=lods, of=["LogLikelihood"] if grad else None)


def padded(op, lengths, size, d, label, outputs, grad=()):
    n = len(lengths)
    inputs = {"Emission": f32(n, size, d, lo=-2, hi=2), "Transition": f32(d + 2, d)}
    inputs["Length"] = ints(n, 1, high=1) + [[k] for k in lengths]
    if label:
        inputs["Label"] = (
            ints(n, size, 1, high=d) if op == "linear_chain_crf" else ints(n, size, high=d)
        )
    return Sample(op, inputs, {}, outputs, grad, of=["LogLikelihood"] if grad else None)


GRAD = ["Emission", "Transition"]
SAMPLES = [
    ragged("crf_decoding", LODS[0], 4, False, ["ViterbiPath"]),
    ragged("crf_decoding", LODS[0], 4, True, ["ViterbiPath"]),
    ragged("crf_decoding", LODS[1], 3, False, ["ViterbiPath"]),
    ragged("crf_decoding", [[9]], 7, False, ["ViterbiPath"]),
    ragged("crf_decoding", [[2, 2, 2]], 11, True, ["ViterbiPath"]),
    padded("crf_decoding", [3, 1, 4], 4, 3, False, ["ViterbiPath"]),
    padded("crf_decoding", [2, 5], 6, 4, True, ["ViterbiPath"]),
    ragged("linear_chain_crf", LODS[0], 4, True, OUTPUTS, GRAD),
    ragged("linear_chain_crf", LODS[1], 3, True, ["LogLikelihood"], GRAD),
    ragged("linear_chain_crf", [[8]], 5, True, OUTPUTS, GRAD),
    padded("linear_chain_crf", [3, 1, 4], 4, 3, True, OUTPUTS, GRAD),
    padded("linear_chain_crf", [2, 5], 6, 4, True, ["LogLikelihood"], GRAD),
]
