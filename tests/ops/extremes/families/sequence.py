"""Sequences: empty ones, of one row, ties, nan, infinities; borders of nan; ties of a CRF."""

import numpy as np

from ..case import Extreme

NAN, INF = np.nan, np.inf
ROWS = np.array([[1, 1], [1, 2], [0, -0.0], [NAN, 1], [2, NAN], [INF, -INF], [3e38, 1], [3e38, 1]])
LODS = {"plain": [[2, 3, 3]], "empty": [[0, 4, 0, 4, 0]], "single": [[1] * 8]}
CASES = []
for dtype in ("float32", "float64"):
    x = ROWS.astype(dtype)
    for what, lod in sorted(LODS.items()):
        name, given = "%s %s" % (dtype, what), {"lod": {"X": lod}}
        # 1.8.5 has no others
        for kind in (
            ("SUM", "AVERAGE", "SQRT", "MAX", "LAST", "FIRST") if dtype == "float32" else ()
        ):
            CASES += [
                Extreme(
                    "%s %s" % (kind, name),
                    "sequence_pool",
                    {"X": x},
                    {"pooltype": kind, "pad_value": 0.5},
                    grad=["X"],
                    **given,
                )
            ]
        CASES += [
            Extreme(name, "sequence_softmax", {"X": x[:, :1].copy()}, grad=["X"], **given),
            Extreme(name, "sequence_reverse", {"X": x}, {}, ["Y"], **given),
        ]
    emission = np.array([[0, 0, 0], [1, 1, 1], [2, 2, 1], [100, 100, -100], [0, 0, 0]], dtype)
    transition = np.zeros((5, 3), dtype)
    CASES += [
        Extreme(
            dtype + " ties",
            "crf_decoding",
            {"Emission": emission, "Transition": transition},
            {},
            ["ViterbiPath"],
            lod={"Emission": [[3, 2]]},
        ),
        Extreme(
            dtype + " ties",
            "linear_chain_crf",
            {
                "Emission": emission,
                "Transition": transition,
                "Label": np.array([[0], [1], [2], [0], [2]], "int64"),
            },
            {},
            ["LogLikelihood"],
            grad=["Emission", "Transition"],
            lod={"Emission": [[3, 2]], "Label": [[3, 2]]},
        ),
    ]
for dtype in ("float32", "float64"):
    x = ROWS[:5].astype(dtype)
    for what, lod in (("plain", [[2, 3]]), ("empty", [[0, 5]]), ("all of one", [[5, 0]])):
        name = "%s %s" % (dtype, what)
        CASES += [
            Extreme(
                name, "sequence_concat", {"X": [x, -x]}, grad=["X"], lod={"X": [lod, [[1, 4]]]}
            ),
            Extreme(
                name,
                "sequence_expand",
                {"X": x[1:3].copy(), "Y": x},
                {"ref_level": 0},
                grad=["X"],
                lod={"Y": lod},
            ),
            Extreme(
                name, "sequence_expand_as", {"X": x[1:3].copy(), "Y": x}, grad=["X"], lod={"Y": lod}
            ),
            Extreme(name, "lod_reset", {"X": x}, {"target_lod": [0, lod[0][0], 5]}, grad=["X"]),
            Extreme(
                name,
                "sequence_pad",
                {"X": x, "PadValue": np.array([NAN], dtype)},
                {"padded_length": 5},
                ["Out", "Length"],
                grad=["X"],
                lod={"X": lod},
                of=["Out"],
            ),
        ]
