"""What leaves nothing to chance: probabilities of 0 and 1, intervals of one value, no deviation,
one place to draw from.
"""

import numpy as np

from ..case import Extreme, limits, specials

NAN, INF = np.nan, np.inf
FP32, FP64, INT32, INT64 = 5, 6, 2, 3
CASES = []
for dtype, number in (("float32", FP32), ("float64", FP64)):
    x = specials(dtype).reshape(-1, 2)
    for how in ("downgrade_in_infer", "upscale_in_train"):
        CASES += [
            Extreme(
                "%s %s p=%g" % (dtype, how, p),
                "dropout",
                {"X": x},
                {"dropout_prob": p, "dropout_implementation": how},
                ["Out", "Mask"],
                grad=["X"],
                of=["Out"],
            )
            for p in (0.0, 1.0)
        ]
        CASES += [
            Extreme(
                "%s %s p=%g, is_test" % (dtype, how, p),
                "dropout",
                {"X": x},
                {"dropout_prob": p, "dropout_implementation": how, "is_test": True},
            )
            for p in (0.0, 0.3, 1.0)
        ]
    for m in (0.0, -0.0, 3e38, INF, NAN, 0.1):
        attrs = {"shape": [2, 3], "mean": m, "std": 0.0, "dtype": number, "seed": 3}
        CASES += [
            Extreme("%s mean=%g" % (dtype, m), op, {}, attrs)
            for op in ("gaussian_random", "truncated_gaussian_random")
            if dtype == "float32" or op == "gaussian_random"
        ]
        CASES += [
            Extreme(
                "%s mean=%g" % (dtype, m),
                "gaussian_random_batch_size_like",
                {"Input": x[:2].copy()},
                dict(attrs, shape=[-1, 3]),
            )
        ]
    # between two bounds lie many numbers in float64
    for m in (0.0, 3e38, 0.1, -1.0) if dtype == "float32" else ():
        above = float(np.nextafter(np.float32(m), np.float32(np.inf)))
        attrs = {"shape": [2, 3], "min": m, "max": above, "dtype": number, "seed": 3}
        CASES += [
            Extreme("%s min=%g" % (dtype, m), "uniform_random", {}, attrs),
            Extreme(
                "%s min=%g" % (dtype, m),
                "uniform_random_batch_size_like",
                {"Input": x[:2].copy()},
                dict(attrs, shape=[-1, 3]),
            ),
        ]
    CASES += [
        Extreme(
            dtype + " min=max",
            "uniform_random",
            {},
            {"shape": [2], "min": 1.0, "max": 1.0, "dtype": number, "seed": 3},
        )
    ]
    CASES += [
        Extreme(
            dtype,
            "sampling_id",
            {"X": np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1]], dtype)},
            {"seed": 3},
        ),
        Extreme(dtype + " sum below 1", "sampling_id", {"X": np.zeros((2, 3), dtype)}, {"seed": 3}),
        Extreme(
            dtype,
            "random_crop",
            {"X": x[:4].reshape(2, 4).copy(), "Seed": np.array([3], "int64")},
            {"shape": [4]},
        ),
        Extreme(
            dtype,
            "shuffle_batch",
            {"X": x[:4].reshape(1, 8).copy(), "Seed": np.array([3], "int64")},
            {},
            ["Out", "ShuffleIdx"],
            grad=["X"],
            of=["Out"],
        ),
    ]
BOUNDS = {INT32: (0, -1, 2**31 - 2, -(2**31)), INT64: (0, -1, 2**31 - 2, -(2**31))}
CASES += [
    Extreme(
        "type %d of %d" % (t, low),
        "randint",
        {},
        {"shape": [2, 3], "low": low, "high": low + 1, "dtype": t, "seed": 3},
    )
    for t in sorted(BOUNDS)
    for low in BOUNDS[t]
]
CASES += [
    Extreme("one of type %d" % t, "randperm", {}, {"n": 1, "dtype": t, "seed": 3})
    for t in (INT32, INT64)
]
CASES += [Extreme("%d" % s, "seed", {}, {"seed": s}) for s in (1, -1, 2**31 - 1, -(2**31))]
CASES += [
    Extreme(
        "int32",
        "random_crop",
        {"X": limits("int32").reshape(4, 4), "Seed": np.array([0], "int64")},
        {"shape": [4]},
    )
]
