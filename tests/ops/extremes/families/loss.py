"""softmax and the classification losses: far apart and equal logits, infinities, ignored labels,
labels without their 1.
"""

import numpy as np

from ..case import Extreme

NAN, INF = np.nan, np.inf
# The last columns that matter are 64 and more below the greatest: 1.8.5 clips there.
ROWS = [
    [0, -200, 3, 1],
    [0, -64, 3, -61],
    [0, -60.9, 3, -61.1],
    [1e4, -1e4, 0, 1],
    [2, 2, 2, 2],
    [0, -0.0, 0, -0.0],
    [3e38, -3e38, 0, 1],
    [-3e38, -3e38, -3e38, -3e38],
    [1e-30, -1e-30, 0, 1e-8],
    [88, 89, -88, -104],
    [100, 0, -100, 36],
]
SPECIAL = [
    [INF, 0, 1, 2],
    [-INF, 0, 1, 2],
    [INF, INF, 0, 1],
    [-INF, -INF, -INF, -INF],
    [NAN, 0, 1, 2],
    [INF, -INF, NAN, 0],
]
DTYPES = ("float32", "float64")
CASES = []


def softmax(label, x, axis=-1):
    return Extreme(label, "softmax", {"X": x}, {"axis": axis}, grad=["X"])


for dtype in DTYPES:
    rows, special = np.array(ROWS, dtype), np.array(SPECIAL, dtype)
    CASES += [
        softmax(dtype, rows),
        softmax(dtype + " axis=0", rows.T.copy(), 0),
        softmax(dtype + " special", special),
        softmax(dtype + " axis=1 of 3", rows.reshape(11, 2, 2), 1),
        softmax(dtype + " one class", rows[:, :1].copy()),
        softmax(dtype + " special, axis=0", special.T.copy(), 0),
        softmax(dtype + " one dimension", rows[0]),
        softmax(dtype + " one row", rows[:1]),
        softmax(dtype + " no rows", rows[:0]),
    ]


def hard(n, ignored=None, shape=None):
    label = np.arange(n) % 4
    if ignored is not None:
        label[1::3] = ignored
    return label.astype("int64").reshape(shape or (n, 1))


def joint(label, logits, labels, **attrs):
    return Extreme(
        label,
        "softmax_with_cross_entropy",
        {"Logits": logits, "Label": labels},
        attrs,
        outputs=["Softmax", "Loss"],
        grad=["Logits"],
        of=["Loss"],
    )


SOFT = np.array([[0, 1, 0, 0], [0.25, 0.25, 0.25, 0.25], [0, 0, 0, 0], [1, -0.0, 0, 0]])
for dtype in DTYPES:
    rows, special = np.array(ROWS, dtype), np.array(SPECIAL, dtype)
    for stable in (True, False):
        mode = dtype + ("" if stable else " numeric_stable_mode=False")
        CASES += [
            joint(mode, rows, hard(11), numeric_stable_mode=stable),
            joint(mode + " second", rows, (hard(11) + 1) % 4, numeric_stable_mode=stable),
            joint(mode + " ignored", rows, hard(11, -100), numeric_stable_mode=stable),
            joint(
                mode + " soft",
                np.repeat(rows, 4, 0),
                np.tile(SOFT, (11, 1)).astype(dtype),
                soft_label=True,
                numeric_stable_mode=stable,
            ),
        ]
    CASES += [
        joint(dtype + " axis=0", rows.T.copy(), hard(11, shape=(1, 11)), axis=0),
        joint(
            dtype + " axis=1 of 3", rows.reshape(11, 2, 2), hard(22, shape=(11, 1, 2)) % 2, axis=1
        ),
        joint(dtype + " ignore_index=2", rows, hard(11), ignore_index=2),
        joint(dtype + " special", special, hard(6)),
        joint(dtype + " special second", special, (hard(6) + 1) % 4),
        joint(
            dtype + " special soft", special, np.resize(SOFT, (6, 4)).astype(dtype), soft_label=True
        ),
        joint(dtype + " one class", rows[:, :1].copy(), np.zeros((11, 1), "int64")),
        joint(dtype + " all ignored", rows, np.full((11, 1), -100, "int64")),
        joint(dtype + " no rows", rows[:0], hard(0)),
        joint(
            dtype + " soft axis=0",
            rows.T.copy(),
            np.resize(SOFT, (11, 4)).T.astype(dtype).copy(),
            soft_label=True,
            axis=0,
        ),
    ]

PROBABILITIES = [
    [0, 1, 0.5, 1e-30],
    [1, 0, 1e-8, 0.5],
    [0.25, 0.25, 0.25, 0.25],
    [-0.0, 1e-37, 0.5, 0.5],
    [2, -1, 0, 1],
    [INF, 0, 1, 0.5],
    [NAN, 0.5, 0, 0],
    [3e38, 1e-20, 1e20, 1],
]


def classes(op, label, x, labels, **attrs):
    match = ["Y", "MatchX"] if op == "cross_entropy2" else ["Y"]
    return Extreme(label, op, {"X": x, "Label": labels}, attrs, outputs=match, grad=["X"], of=["Y"])


for dtype in DTYPES:
    x = np.array(PROBABILITIES, dtype)
    for op in ("cross_entropy", "cross_entropy2"):
        CASES += [
            classes(op, "%s +%d" % (dtype, shift), x, (hard(8) + shift) % 4) for shift in range(4)
        ]
        CASES += [
            classes(op, dtype + " ignored", x, hard(8, -100)),
            classes(op, dtype + " ignore_index=2", x, hard(8), ignore_index=2),
            classes(op, dtype + " label [8]", x, hard(8, shape=(8,))),
            classes(op, dtype + " label [8] ignored", x, hard(8, -100, (8,))),
            classes(op, dtype + " label [4, 2]", x.reshape(4, 2, 4), hard(8, shape=(4, 2))),
            classes(op, dtype + " all ignored", x, np.full((8, 1), -100, "int64")),
            classes(op, dtype + " no rows", x[:0], hard(0)),
        ]
    CASES += [
        classes(
            "cross_entropy",
            dtype + " soft",
            np.repeat(x, 4, 0),
            np.tile(SOFT, (8, 1)).astype(dtype),
            soft_label=True,
        ),
        classes(
            "cross_entropy",
            dtype + " soft one class",
            x[:, :1].copy(),
            np.ones((8, 1), dtype),
            soft_label=True,
        ),
    ]

TARGETS = np.array([0, 1, 0.5, -1, -100, 2, NAN])
for dtype in DTYPES:
    v = np.array(
        [
            0,
            -0.0,
            1e-30,
            -1e-30,
            1,
            -1,
            15,
            -15,
            40,
            -40,
            64,
            -64,
            100,
            -100,
            1e4,
            -1e4,
            3e38,
            -3e38,
            INF,
            -INF,
            NAN,
        ],
        dtype,
    )
    x, targets = np.repeat(v, len(TARGETS)), np.tile(TARGETS, len(v)).astype(dtype)
    for attrs in ({}, {"ignore_index": -1}):
        CASES += [
            Extreme(
                "%s ignore_index=%d" % (dtype, attrs.get("ignore_index", -100)),
                "sigmoid_cross_entropy_with_logits",
                {"X": x, "Label": targets},
                attrs,
                grad=["X"],
                pointwise=True,
            )
        ]
    CASES += [
        Extreme(
            dtype + " normalize",
            "sigmoid_cross_entropy_with_logits",
            {"X": x[:70], "Label": targets[:70]},
            {"ignore_index": -1, "normalize": True},
            grad=["X"],
        ),
        Extreme(
            dtype + " normalize, all ignored",
            "sigmoid_cross_entropy_with_logits",
            {"X": x[:4], "Label": np.full(4, -1, dtype)},
            {"ignore_index": -1, "normalize": True},
            grad=["X"],
        ),
    ]

for dtype in DTYPES:
    v = np.array(
        [
            0,
            -0.0,
            1,
            0.5,
            1e-30,
            1e-8,
            np.nextafter(np.array(1, dtype), np.array(0, dtype)),
            -1e-4,
            1.0001,
            2,
            -1,
            3e38,
            INF,
            -INF,
            NAN,
        ],
        dtype,
    )
    y = np.array([0, 1, 0.5, 2, -1, NAN], dtype)
    p, q = np.repeat(v, len(y)), np.tile(y, len(v))
    CASES += [
        Extreme(
            dtype,
            "bce_loss",
            {"X": np.clip(np.nan_to_num(np.abs(p)), 0, 1), "Label": q},
            grad=["X"],
            pointwise=True,
        )
    ]
    CASES += [
        Extreme(
            "%s epsilon=%g" % (dtype, e),
            "log_loss",
            {"Predicted": p[:, None], "Labels": q[:, None]},
            {"epsilon": e},
            outputs=["Loss"],
            grad=["Predicted"],
        )
        for e in (0.0, 1e-4)
    ]
    CASES += [
        Extreme(
            "%s epsilon=%g" % (dtype, e),
            "label_smooth",
            {"X": np.array(PROBABILITIES, dtype)},
            {"epsilon": e},
            grad=["X"],
        )
        for e in (0.0, 0.1, 1.0)
    ]
