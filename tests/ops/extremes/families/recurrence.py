"""What belongs to sequences beside sequence.py and rnn.py: units at their bounds, windows beyond
ends, empty sequences, nan.
"""

import numpy as np

from ..case import Extreme

NAN, INF = np.nan, np.inf
GATES = np.array([[0.0] * 8, [1e4] * 8, [-1e4] * 8, [NAN] + [0.5] * 7, [INF, -INF] * 4, [3e38] * 8])
ROWS = np.array([[1, 1], [NAN, 2], [0, -0.0], [INF, 1], [2, -INF], [3e38, 1]])
LODS = {"plain": [[2, 4]], "single": [[1] * 6], "one": [[6]]}
CASES = []


def column(values, dtype="int64"):
    return np.array(values, dtype).reshape(-1, 1)


for dtype in ("float32", "float64"):
    n = len(GATES)
    prev, weight = np.linspace(-1, 1, 2 * n).reshape(n, 2), np.linspace(-0.5, 0.5, 12).reshape(2, 6)
    CASES += [
        Extreme(
            dtype + " bounds",
            "lstm_unit",
            {"X": GATES.astype(dtype), "C_prev": prev.astype(dtype)},
            {},
            ["C", "H"],
            ["X", "C_prev"],
        ),
        Extreme(
            dtype + " bounds",
            "gru_unit",
            {
                "Input": GATES[:, :6].astype(dtype),
                "HiddenPrev": prev.astype(dtype),
                "Weight": weight.astype(dtype),
            },
            {},
            ["Hidden"],
            ["HiddenPrev", "Input"],
            of=["Hidden"],
        ),
    ]
    for what, lod in sorted(LODS.items()):
        name, x, w = (
            "%s %s" % (dtype, what),
            ROWS.astype(dtype),
            np.array([[1, 0], [0, 2.0]], dtype),
        )
        given = {"lod": {"X": lod}}
        CASES.append(
            Extreme(
                name,
                "sequence_conv",
                {"X": x, "Filter": np.concatenate([w, w, w])},
                {"contextLength": 3, "contextStart": -1},
                ["Out"],
                **given,
            )
        )
        if dtype == "float32":
            CASES.append(Extreme(name, "row_conv", {"X": x, "Filter": w}, {}, ["Out"], **given))
    CASES += [
        Extreme(
            dtype + " width",
            "sequence_reshape",
            {"X": ROWS.astype(dtype)},
            {"new_dim": 1},
            ["Out"],
            ["X"],
            lod={"X": [[2, 4]]},
        ),
        Extreme(
            dtype + " ids twice",
            "sequence_scatter",
            {
                "X": ROWS[:2].astype(dtype),
                "Ids": column([0, 0, 1]),
                "Updates": column([NAN, 1, INF], dtype),
            },
            {},
            ["Out"],
            ["X", "Updates"],
            lod={"Ids": [[2, 1]], "Updates": [[2, 1]]},
        ),
        Extreme(
            dtype + " nan",
            "sequence_slice",
            {"X": ROWS.astype(dtype), "Offset": column([1, 0]), "Length": column([1, 4])},
            {},
            ["Out"],
            ["X"],
            lod={"X": [[2, 4]]},
            rows={"Out": 5},
        ),
        Extreme(
            dtype + " nan",
            "sequence_unpad",
            {"X": ROWS.reshape(2, 3, 2).astype(dtype), "Length": np.array([3, 1], "int64")},
            {},
            ["Out"],
            rows={"Out": 4},
        ),
    ]
    lod = {"Input": [[2, 3]]}
    gates = np.array([[0.0] * 8, [0.1] * 8, [-40.0, 13.0] * 4, [1e4] * 8, [-1e4] * 8], dtype)
    CASES.append(
        Extreme(
            dtype + " bounds",
            "lstmp",
            {
                "Input": gates,
                "Weight": np.linspace(-1, 1, 16).reshape(2, 8).astype(dtype),
                "ProjWeight": np.array([[1, 0.5], [-0.5, 2]], dtype),
                "Bias": np.zeros((1, 14), dtype),
            },
            {},
            ["Projection", "Cell"],
            lod=lod,
            of=["Projection"],
        )
    )
CASES += [
    Extreme(
        "float32 special values",
        "im2sequence",
        {"X": ROWS.reshape(2, 1, 2, 3).astype("float32")},
        {"kernels": [2, 2], "paddings": [1, 0, 0, 1]},
        ["Out"],
    ),
    Extreme(
        "int64 all",
        "sequence_erase",
        {"X": column([1, 1, 2, 1])},
        {"tokens": [1]},
        ["Out"],
        lod={"X": [[2, 2]]},
        rows={"Out": 1},
    ),
    Extreme(
        "int64 long window",
        "sequence_enumerate",
        {"X": column([1, 2, 3])},
        {"win_size": 4, "pad_value": -1},
        ["Out"],
        lod={"X": [[0, 3]]},
    ),
    Extreme(
        "int64 all blank",
        "ctc_align",
        {
            "Input": column([0, 0, 0]),
        },
        {},
        ["Output"],
        lod={"Input": [[2, 1]]},
        rows={"Output": 0},
    ),
    Extreme(
        "int64 none left",
        "ctc_align",
        {"Input": np.zeros((2, 3), "int64"), "InputLength": column([3, 0])},
        {"padding_value": -1},
        ["Output", "OutputLength"],
    ),
    Extreme(
        "float32 great",
        "warpctc",
        {
            "Logits": np.array([[80, -80, 0], [0, 80, -80], [5, 5, 5.0]], "float32"),
            "Label": column([1], "int32"),
        },
        {},
        ["Loss"],
        ["Logits"],
        lod={"Logits": [[3]], "Label": [[1]]},
    ),
    Extreme(
        "int64 empty",
        "edit_distance",
        {"Hyps": column([1, 2]), "Refs": column([3])},
        {},
        ["SequenceNum", "Out"],
        lod={"Hyps": [[0, 2]], "Refs": [[1, 0]]},
    ),
    Extreme(
        "int64 no chunk",
        "chunk_eval",
        {"Inference": column([4, 4]), "Label": column([4, 4])},
        {"num_chunk_types": 2},
        ["Precision", "Recall", "F1-Score", "NumInferChunks", "NumLabelChunks", "NumCorrectChunks"],
        lod={"Inference": [[1, 1]], "Label": [[1, 1]]},
    ),
]
