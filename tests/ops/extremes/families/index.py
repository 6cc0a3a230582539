"""Orders, places of extremes, gathers: ties, nan, infinities, integers at their limits, ids that
come twice.
"""

import numpy as np

from ..case import Extreme, limits

NAN, INF = np.nan, np.inf
ROWS = {
    "ties": [[2, 1, 2, 1], [0, 0, 0, 0], [-1, 3, 3, -1]],
    "zeros": [[0, -0.0, 0, -0.0], [-0.0, 0, -0.0, 0], [-0.0, -0.0, 0, 0]],
    "nan": [[NAN, 1, 2, 0], [1, NAN, 0, 2], [3, 2, 1, NAN], [NAN, NAN, NAN, NAN], [1, NAN, NAN, 3]],
    "infinities": [[INF, -INF, INF, -INF], [-INF, -INF, 1, INF], [-INF, -INF, -INF, -INF]],
}
CASES = []
for dtype in ("float32", "float64"):
    for what, rows in sorted(ROWS.items()):
        x, name = np.array(rows, dtype), "%s %s" % (dtype, what)
        for axis in (0, 1):
            CASES += [
                Extreme("%s axis=%d" % (name, axis), op, {"X": x}, {"axis": axis})
                for op in ("arg_max", "arg_min")
            ]
            CASES += [
                Extreme(
                    "%s axis=%d%s" % (name, axis, " descending" * down),
                    "argsort",
                    {"X": x},
                    {"axis": axis, "descending": down},
                    ["Out", "Indices"],
                    grad=["X"] if what == "ties" else [],
                    of=["Out"],
                )
                for down in (False, True)
            ]
        CASES += [
            Extreme(
                "%s k=%d" % (name, k),
                "top_k",
                {"X": x},
                {"k": k},
                ["Out", "Indices"],
                of=["Out"],
                grad=["X"] if what == "ties" else [],
            )
            for k in (1, 3)
        ]
    x = np.array([[1, 2], [NAN, INF], [-INF, 0]], dtype)
    twice = np.array([1, 1, 0, 1], "int64")
    CASES += [
        Extreme(dtype + " twice", "gather", {"X": x, "Index": twice}, grad=["X"]),
        Extreme(dtype + " twice", "gather_nd", {"X": x, "Index": twice.reshape(4, 1)}, grad=["X"]),
        Extreme(dtype + " twice", "index_select", {"X": x, "Index": twice}, {"dim": 0}, grad=["X"]),
        Extreme(
            dtype + " twice",
            "scatter_nd_add",
            {"X": x, "Index": np.array([[1], [1]], "int64"), "Updates": x[:2].copy()},
            grad=["X", "Updates"],
        ),
        Extreme(
            dtype + " over",
            "scatter",
            {"X": x, "Ids": np.array([1, 2], "int64"), "Updates": x[:2].copy()},
            {"overwrite": True},
            grad=["X", "Updates"],
        ),
        Extreme(
            dtype + " twice, added",
            "scatter",
            {"X": x, "Ids": np.array([1, 1], "int64"), "Updates": x[:2].copy()},
            {"overwrite": False},
        ),
        Extreme(
            dtype + " twice, last wins",
            "scatter",
            {"X": x, "Ids": np.array([1, 1], "int64"), "Updates": x[:2].copy()},
            {"overwrite": True},
        ),
        Extreme(
            dtype,
            "where",
            {
                "Condition": np.array([[True, False], [False, True], [True, False]]),
                "X": x,
                "Y": x[::-1].copy(),
            },
            grad=["X", "Y"],
        ),
        Extreme(
            dtype,
            "multiplex",
            {"X": [x, x[::-1].copy()], "Ids": np.array([[0], [1], [1]], "int32")},
            grad=["X"],
        ),
    ]
for dtype in ("int32", "int64"):
    v = limits(dtype).reshape(4, 4)
    CASES += [
        Extreme("%s axis=%d" % (dtype, axis), op, {"X": v}, {"axis": axis})
        for axis in (0, 1)
        for op in ("arg_max", "arg_min")
    ]
    CASES += [
        Extreme(
            "%s%s" % (dtype, " descending" * down),
            "argsort",
            {"X": v},
            {"axis": 1, "descending": down},
            ["Out", "Indices"],
        )
        for down in (False, True)
    ]
    CASES += [Extreme(dtype, "top_k", {"X": v}, {"k": 2}, ["Out", "Indices"])]
for dtype in ("float32", "float64", "int32", "int64"):
    x = np.array(ROWS["nan"], dtype) if dtype[0] == "f" else limits(dtype).reshape(4, 4)
    CASES += [
        Extreme(
            dtype + " twice",
            "index_sample",
            {"X": x, "Index": np.tile(np.array([[3, 0, 3]], "int64"), (len(x), 1))},
            grad=["X"] if dtype[0] == "f" else [],
        )
    ]
for dtype in ("int32", "int64"):
    tree = np.arange(8, dtype=dtype).reshape(4, 1, 2)
    CASES += [
        Extreme(
            "%s parents %s" % (dtype, p),
            "gather_tree",
            {"Ids": tree, "Parents": np.tile(np.array([[p]], dtype), (4, 1, 1))},
        )
        for p in ([0, 0], [1, 1], [1, 0])
    ]
    CASES += [
        Extreme(
            "%s one step" % dtype,
            "gather_tree",
            {"Ids": tree[:1].copy(), "Parents": np.zeros((1, 1, 2), dtype)},
        )
    ]
    CASES += [
        Extreme(
            "%s to %d, maxlen %d" % (dtype, t, most),
            "sequence_mask",
            {"X": np.array([0, 1, -1, 4, 100], dtype)},
            {"maxlen": most, "out_dtype": t},
            ["Y"],
        )
        for t in (2, 3, 5, 6)
        for most in (1, 4)
    ]
CASES += [
    Extreme(
        "shard %d of %d" % (i, n),
        "shard_index",
        {"X": np.array([[0], [1], [9], [10], [19]], "int64")},
        {"index_num": 20, "nshards": n, "shard_id": i, "ignore_value": -(2**31)},
    )
    for n, i in ((1, 0), (2, 1), (3, 2), (20, 19))
]
CASES += [
    Extreme(
        "beyond",
        "shard_index",
        {"X": np.array([[20]], "int64")},
        {"index_num": 20, "nshards": 2, "shard_id": 1},
    )
]
