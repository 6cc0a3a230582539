"""Recurrences: gates at their bounds and far beyond, infinities, nan, weights of zero, empty
sequences and single rows.
"""

import numpy as np

from ..case import Extreme

NAN, INF = np.nan, np.inf
D = 2
ROWS = {  # the first rows of sequences, all gates of one value; an ordinary row follows each
    "bounds": [0.0, -40.0, 13.0, 1e4, -1e4],
    "zeros": [0.0],
    "great": [3e38],
    "infinite": [INF, -INF],
    "nan": [NAN],
}
LODS = {
    "plain": lambda n: [[2] * n],
    "empty": lambda n: [[0, 2 * n, 0]],
    "single": lambda n: [[1] * (2 * n)],
}
CASES = []
for dtype, what, form in [
    ("float32", what, "plain") for what in ("bounds", "great", "infinite", "nan")
] + [("float64", "bounds", "plain"), ("float32", "zeros", "empty"), ("float32", "nan", "single")]:
    for op, gates in (("gru", 3), ("lstm", 4)):
        n = len(ROWS[what])
        x = np.linspace(-1, 1, 2 * n * gates * D).reshape(2 * n, gates * D)
        x[::2] = np.array(ROWS[what])[:, None]
        inputs = {
            "Input": x.astype(dtype),
            "Weight": np.linspace(-0.5, 0.5, gates * D * D).reshape(D, gates * D).astype(dtype),
        }
        if op == "lstm":
            inputs["Bias"] = np.zeros((1, 7 * D), dtype)
        outs = ["Hidden"] if op == "gru" else ["Hidden", "Cell"]
        for activation in (
            ("tanh", "relu") if what == "bounds" and dtype == "float32" else ("tanh",)
        ):
            attrs = (
                {"activation": activation} if op == "gru" else {"candidate_activation": activation}
            )
            CASES += [
                Extreme(
                    "%s %s, %s, %s" % (dtype, what, form, activation),
                    op,
                    inputs,
                    attrs,
                    outs,
                    sorted(inputs),
                    lod={"Input": LODS[form](n)},
                    of=["Hidden"],
                )
            ]
