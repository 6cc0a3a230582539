"""Elements moved about: zeros of both signs, nan and infinities travel, also back; single elements,
offsets beyond the ends.
"""

import numpy as np

from ..case import Extreme, limits

NAN, INF = np.nan, np.inf
MOST = 2**31 - 1
X = np.array([0, -0.0, NAN, INF, -INF, 3e38, -3e38, 1e-30, 1, 2, -1, 4, 5, 6, 7, 8])
CASES = []
for dtype in ("float32", "float64"):
    x = X.astype(dtype)
    square, planes, one = x.reshape(4, 4), x.reshape(1, 4, 2, 2), np.full((1, 1, 1, 1), NAN, dtype)
    CASES += [
        Extreme(
            "%s by %s" % (dtype, s), "roll", {"X": square}, {"shifts": [s], "dims": [0]}, grad=["X"]
        )
        for s in (0, 4, -1, 2**31 + 1, -(2**40))
    ]
    CASES += [
        Extreme(
            "%s both" % dtype,
            "roll",
            {"X": square},
            {"shifts": [1, -1], "dims": [-1, 0]},
            grad=["X"],
        ),
        Extreme(
            dtype, "space_to_depth", {"X": x.reshape(1, 4, 2, 2)}, {"blocksize": 2}, grad=["X"]
        ),
        Extreme(dtype, "pixel_shuffle", {"X": planes}, {"upscale_factor": 2}, grad=["X"]),
        Extreme(dtype + " one", "pixel_shuffle", {"X": one}, {"upscale_factor": 1}, grad=["X"]),
    ]
    CASES += [
        Extreme(
            "%s group %d" % (dtype, g), "shuffle_channel", {"X": planes}, {"group": g}, grad=["X"]
        )
        for g in (1, 2, 4)
    ]
    CASES += [
        Extreme(
            "%s ratio %g" % (dtype, r),
            "temporal_shift",
            {"X": x.reshape(4, 4, 1, 1)},
            {"seg_num": n, "shift_ratio": r},
            grad=["X"],
        )
        for r, n in ((0.25, 2), (0.49, 4), (0.0, 1))
    ]
    window = {
        "kernel_sizes": [2, 2],
        "strides": [1, 1],
        "paddings": [1, 1, 1, 1],
        "dilations": [1, 1],
    }
    CASES += [
        Extreme(dtype, "unfold", {"X": planes}, window, ["Y"], grad=["X"]),
        Extreme(dtype + " one", "unfold", {"X": one}, window, ["Y"], grad=["X"]),
    ]
    CASES += [
        Extreme(
            "%s %d" % (dtype, d),
            "tril_triu",
            {"X": square},
            {"lower": lower, "diagonal": d},
            grad=["X"],
        )
        for d, lower in ((-9, True), (9, False), (MOST, True))
    ]
    CASES += [
        Extreme(dtype, "diag", {"Diagonal": x}),
        Extreme(dtype + " one", "diag", {"Diagonal": x[2:3].copy()}),
    ]
    CASES += [
        Extreme("%s offset %d" % (dtype, o), "diag_embed", {"Input": square}, {"offset": o})
        for o in (0, -3, 9)
    ]
    CASES += [
        Extreme(dtype, "meshgrid", {"X": [x[:4].copy(), x[4:6].copy()]}, {}, ["Out*2"], grad=["X"]),
        Extreme(
            dtype + " one",
            "meshgrid",
            {"X": [x[2:3].copy(), x[4:5].copy()]},
            {},
            ["Out*2"],
            grad=["X"],
        ),
    ]
for dtype in ("int32", "int64"):
    x = limits(dtype)
    CASES += [
        Extreme(dtype, "roll", {"X": x.reshape(4, 4)}, {"shifts": [-5], "dims": [1]}),
        Extreme(dtype, "diag", {"Diagonal": x}),
        Extreme(dtype, "diag_embed", {"Input": x.reshape(4, 4)}, {"offset": -1}),
        Extreme(dtype, "meshgrid", {"X": [x, x[:2].copy()]}, {}, ["Out*2"]),
        Extreme(dtype, "tril_triu", {"X": x.reshape(4, 4)}, {"lower": False, "diagonal": 1}),
    ]
