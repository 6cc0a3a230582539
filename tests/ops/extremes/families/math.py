"""Sums, scales, clips and norms: overflow, zero vectors, ties, integers at their limits."""

import numpy as np

from ..case import Extreme, integers, limits, unary

NAN, INF = np.nan, np.inf
DTYPES = ("float32", "float64")
CASES = unary("sign")
for attrs in (
    {},
    {"scale": 0.0},
    {"scale": -2.0, "bias": 1.0},
    {"scale": 0.5, "bias": 1.0, "bias_after_scale": False},
    {"bias": 1e30},
):
    label = ", ".join("%s=%g" % i for i in sorted(attrs.items()))
    CASES += unary("scale", attrs, label=label) + integers("scale", attrs=attrs, label=label)
CASES += [
    c
    for low, high in ((-1.0, 2.0), (-3e38, 3e38))
    for c in unary(
        "clip", {"min": low, "max": high}, bounds=[low, high], label="[%g, %g]" % (low, high)
    )
]

ROWS = [
    [0, 0, 0],
    [0, -0.0, 0],
    [1, 1, 1],
    [1e-30, 0, -1e-30],
    [1e19, 1e19, -1e19],
    [3e38, 3e38, 1],
    [1, -1, 0],
    [INF, 1, 0],
    [INF, -INF, 1],
    [NAN, 0, 1],
]
for dtype in DTYPES:
    rows = np.array(ROWS, dtype)
    for i in (1, 3, 4, 5, 7, 9):
        what = "%s of %s" % (dtype, ROWS[i])
        CASES += [Extreme(what, "mean", {"X": rows[i]}, grad=["X"])]
        if dtype == "float32":  # 1.8.5 has no others
            CASES += [
                Extreme(what, op, {"X": rows[i]}, grad=["X"])
                for op in ("squared_l2_norm", "l1_norm")
            ]
            CASES += [Extreme(what, "clip_by_norm", {"X": rows[i]}, {"max_norm": 1.0})]
    CASES += [
        Extreme(
            "%s of %s, p=%g" % (dtype, ROWS[i], p),
            "dist",
            {"X": rows[i], "Y": np.ones(3, dtype)},
            {"p": p},
            grad=["X", "Y"],
        )
        for p in (0.0, 1.0, 2.0, 3.0, INF, -INF)
        for i in (2, 5, 7, 9)
    ]
    CASES += [
        Extreme("%s p=%g" % (dtype, p), "p_norm", {"X": rows}, {"porder": p, "axis": 1}, grad=["X"])
        for p in (0.5, 1.0, 2.0, 3.0)
    ]
    CASES += [
        Extreme(
            "%s %s" % (dtype, "exclusive" * e + " reverse" * r),
            "cumsum",
            {"X": rows},
            {"axis": 1, "exclusive": e, "reverse": r},
            grad=["X"],
        )
        for e in (False, True)
        for r in (False, True)
    ]
    CASES += [
        Extreme(dtype, "sum", {"X": [rows, rows[::-1].copy(), -rows]}, grad=["X"]),
        Extreme(dtype + " one", "sum", {"X": [rows]}, grad=["X"]),
    ]
    CASES += [
        Extreme("%s %g" % (dtype, v), "increment", {"X": np.array([v], dtype)}, {"step": 1.5})
        for v in (0, 3e38, INF, NAN)
    ]
for dtype in ("int32", "int64"):
    v = limits(dtype)
    CASES += [
        Extreme(dtype, "sum", {"X": [v, v[::-1].copy()]}),
        Extreme(dtype, "cumsum", {"X": v}),
        Extreme(dtype, "increment", {"X": v[2:3].copy()}, {"step": 1.5}),
        Extreme(dtype + " down", "increment", {"X": v[:1].copy()}, {"step": -1.0}),
    ]

rows = np.array(ROWS, "float32")
others = np.array(
    [
        [0, 0, 0],
        [1, 2, 3],
        [1, 1, 1],
        [1e-30, 0, 0],
        [1e19, 0, 0],
        [1, 2, 3],
        [-1, 1, 0],
        [1, 1, 1],
        [1, 1, 1],
        [1, 1, 1],
    ],
    "float32",
)
CASES += [
    Extreme(
        "float32",
        "cos_sim",
        {"X": rows, "Y": others},
        outputs=["Out", "XNorm", "YNorm"],
        grad=["X", "Y"],
        of=["Out"],
    ),
    Extreme(
        "float32 one row",
        "cos_sim",
        {"X": rows[:7], "Y": others[1:2]},
        outputs=["Out", "XNorm", "YNorm"],
        grad=["X", "Y"],
        of=["Out"],
    ),
    Extreme(
        "float32 one row of zeros",
        "cos_sim",
        {"X": rows[:7], "Y": others[:1]},
        outputs=["Out", "XNorm", "YNorm"],
        grad=["X", "Y"],
        of=["Out"],
    ),
]
CASES += [Extreme("float32", "minus", {"X": rows, "Y": rows[::-1].copy()}, grad=["X", "Y"])]
