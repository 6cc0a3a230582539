"""Normalisations: no deviation, one element, huge and tiny numbers, nan, scales of zero."""

import numpy as np

from ..case import Extreme

NAN, INF = np.nan, np.inf
PLANES = {
    "equal": np.full((2, 4, 2), 3.0),
    "zeros": np.zeros((2, 4, 2)),
    "one": np.array([[[1.0], [2.0], [-3.0], [0.0]]]),
    "great": np.array([3e38, -3e38, 1e30, 1, 1e20, 1e19, -1e19, 2, 1, 2, 3, 4, 5, 6, 7, 9]).reshape(
        2, 4, 2
    ),
    "tiny": np.array(
        [1e-30, -1e-30, 1e-20, 0, 1e-8, -1e-8, 2e-8, 1e-8, 1, 1.5, 0.5, 1, 0, 0, 0, 1e-3]
    ).reshape(2, 4, 2),
    "infinite": np.array([INF, 1, 0, 2, -INF, 1, 2, 3, NAN, 1, 2, 3, 4, 5, 6, 7]).reshape(2, 4, 2),
}
EPSILONS = (1e-5, 0.0)
CASES = []
for dtype in ("float32", "float64"):
    for what, plane in sorted(PLANES.items()):
        x = plane.astype(dtype)
        scale, bias = np.array([1, 0, -2, 0.5], dtype), np.array([0, 1, 0, -1], dtype)
        spread = [np.full(4 * x.shape[2], v, dtype) for v in (2, 1)]
        x4 = x.reshape(x.shape + (1,))
        for epsilon in EPSILONS:
            name, attrs = (
                "%s %s%s" % (dtype, what, "" if epsilon else ", no epsilon"),
                {"epsilon": epsilon},
            )
            given = {"X": x4, "Scale": scale, "Bias": bias}
            # else rounding decides
            params = ["X", "Scale", "Bias"] if what in ("equal", "zeros", "one") else []
            running = dict(given, Mean=np.zeros(4, dtype), Variance=np.ones(4, dtype))
            # passed through: its saved statistics are left uninitialised in 1.8.5
            if what != "one":
                CASES += [
                    Extreme(
                        name,
                        "batch_norm",
                        running,
                        attrs,
                        ["Y", "MeanOut", "VarianceOut"],
                        params,
                        of=["Y"],
                        inplace={"MeanOut": "Mean", "VarianceOut": "Variance"},
                    )
                ]
            CASES += [
                Extreme(
                    name,
                    "layer_norm",
                    {"X": x, "Scale": spread[0], "Bias": spread[1]},
                    attrs,
                    ["Y", "Mean", "Variance"],
                    params,
                    of=["Y"],
                ),
                Extreme(
                    name,
                    "group_norm",
                    given,
                    dict(attrs, groups=2),
                    ["Y", "Mean", "Variance"],
                    params,
                    of=["Y"],
                ),
                Extreme(
                    name,
                    "instance_norm",
                    given,
                    attrs,
                    ["Y", "SavedMean", "SavedVariance"],
                    params,
                    of=["Y"],
                ),
                Extreme(
                    name,
                    "norm",
                    {"X": x},
                    dict(attrs, axis=1),
                    ["Out", "Norm"],
                    params[:1],
                    of=["Out"],
                ),
            ]
        if dtype == "float32":
            CASES += [
                Extreme(
                    "%s %s" % (dtype, what),
                    "lrn",
                    {"X": x4},
                    {},
                    ["Out", "MidOut"],
                    ["X"],
                    of=["Out"],
                )
            ]
    CASES += [
        Extreme(
            dtype,
            "affine_channel",
            {
                "X": PLANES["infinite"].astype(dtype).reshape(2, 4, 2, 1),
                "Scale": np.array([0, 1, -1, 2], dtype),
                "Bias": np.array([0, INF, 0, NAN], dtype),
            },
            {"data_layout": "NCHW"},
            grad=["X", "Scale", "Bias"],
        )
    ]
for dtype in ("float32", "float64"):
    flat = np.array([[0, -0.0, 1], [1e30, 3, -3], [1e-8, 2, 2]], dtype)
    for what, size, total, square in (
        ("usual", 4, 2, 8),
        ("no samples", 0, 0, 1),
        ("no deviation", 4, 2, 0),
        ("infinite", 4, INF, 1),
    ):
        state = {
            "BatchSize": np.full(3, size, dtype),
            "BatchSum": np.full(3, total, dtype),
            "BatchSquareSum": np.full(3, square, dtype),
        }
        CASES += [
            Extreme(
                "%s %s slot_dim=%d" % (dtype, what, slot),
                "data_norm",
                dict(state, X=flat),
                {"slot_dim": slot},
                ["Y", "Means", "Scales"],
            )
            for slot in (-1, 1)
        ]
    for what, weight in (
        ("zeros", np.zeros((2, 3))),
        ("one", np.ones((2, 3))),
        ("infinite", np.full((2, 3), INF)),
        ("tiny", np.full((2, 3), 1e-30)),
    ):
        CASES += [
            Extreme(
                "%s %s" % (dtype, what),
                "spectral_norm",
                {"Weight": weight.astype(dtype), "U": np.ones(2, dtype), "V": np.ones(3, dtype)},
                {"dim": 0},
                grad=["Weight"] if what == "one" else [],
            )
        ]
    for what in ("equal", "zeros", "infinite"):
        given = {
            "X": PLANES[what].astype(dtype)[..., None],
            "Scale": np.array([1, 0.5, -2, 3], dtype),
            "Bias": np.array([0, 1, 0, -1], dtype),
            "Mean": np.zeros(4, dtype),
            "Variance": np.ones(4, dtype),
        }
        CASES += [
            Extreme(
                "%s %s %s" % (dtype, what, activation),
                "inplace_abn",
                given,
                {"activation": activation},
                ["Y", "MeanOut", "VarianceOut"],
                inplace={"Y": "X", "MeanOut": "Mean", "VarianceOut": "Variance"},
            )
            for activation in ("identity", "leaky_relu", "elu")
        ]
