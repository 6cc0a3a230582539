"""Linear-chain conditional random fields: ties, great scores, impossible transitions, nan; forward
and gradients.
"""

import numpy as np

from ..case import Extreme

NAN, INF = np.nan, np.inf
EMISSIONS = {
    "ties": np.zeros((5, 3)),
    "negative ties": np.full((5, 3), -7.5),
    "far": np.array([[1e4, 0, -1e4]] * 5),
    "beyond exp": np.array([[0, 100, -100]] * 5),
    "impossible": np.array([[0, -INF, 1]] * 5),
    "infinite": np.array([[0, INF, 1]] * 5),
    "nan": np.array([[0, 1, NAN]] + [[0, 1, 2]] * 4),
}
STEPS = {
    "none": np.zeros((5, 3)),
    "far": np.array([[50, -50, 0]] * 5),
    "impossible": np.array([[0, 0, -INF]] + [[0, 0, 0]] * 4),
}
CHOSEN = (
    {("float32", what, "none") for what in EMISSIONS}
    | {("float64", "negative ties", "none"), ("float64", "beyond exp", "none")}
    | {
        ("float32", "far", "far"),
        ("float32", "beyond exp", "far"),
        ("float32", "negative ties", "impossible"),
        ("float32", "infinite", "impossible"),
    }
)
CASES = []
for dtype in ("float32", "float64"):
    for what in sorted(EMISSIONS):
        for step in sorted(STEPS):
            if (dtype, what, step) not in CHOSEN:
                continue
            for lod in (
                ([[3, 2]], [[0, 5, 0]], [[1] * 5])
                if what == "ties" and dtype == "float32"
                else ([[3, 2]],)
            ):
                given = {
                    "Emission": EMISSIONS[what].astype(dtype),
                    "Transition": STEPS[step].astype(dtype),
                }
                label = np.array([[0], [1], [2], [0], [2]], "int64")
                name = "%s %s, transitions %s, %s" % (dtype, what, step, lod[0])
                CASES += [
                    Extreme(
                        name,
                        "linear_chain_crf",
                        dict(given, Label=label),
                        {},
                        ["LogLikelihood"],
                        ["Emission", "Transition"],
                        lod={"Emission": lod, "Label": lod},
                    ),
                    Extreme(
                        name, "crf_decoding", given, {}, ["ViterbiPath"], lod={"Emission": lod}
                    ),
                ]
