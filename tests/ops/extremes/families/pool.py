"""Pools: ties, planes of nan and infinities, windows without cells."""

import numpy as np

from ..case import Extreme

NAN, INF = np.nan, np.inf
BIG = 3e38
PLANES = {
    "ties": [[0, 0, 1, 1], [0, 0, 1, 1], [-1, 2, 2, -1], [2, 2, 2, 2]],
    "zeros": [[0, -0.0, -0.0, 0], [-0.0, 0, 0, -0.0], [-0.0, -0.0, 0, 0], [0, 0, -0.0, -0.0]],
    "nan": [[NAN, 1, 1, NAN], [2, 0, 0, 2], [1, NAN, 3, 2], [0, 2, NAN, 1]],
    "infinities": [
        [INF, 1, -INF, -INF],
        [1, INF, -INF, -INF],
        [INF, -INF, -INF, 1],
        [0, 0, -1, -INF],
    ],
    "greatest": [
        [BIG, BIG, -BIG, -BIG],
        [BIG, BIG, -BIG, -BIG],
        [BIG, -BIG, 1e30, 1],
        [BIG, -BIG, 1, -1e30],
    ],
}
CASES = []
for dtype in ("float32", "float64"):
    for what, plane in sorted(PLANES.items()):
        x = np.array(plane, dtype).reshape(1, 1, 4, 4)
        for label, attrs in (
            ("tiled", {"ksize": [2, 2], "strides": [2, 2]}),
            ("overlapping", {"ksize": [3, 3], "strides": [1, 1], "paddings": [1, 1]}),
            ("global", {"ksize": [1, 1], "global_pooling": True}),
        ):
            name = "%s %s %s" % (dtype, what, label)
            CASES += [
                Extreme(
                    "%s %s" % (kind, name),
                    "pool2d",
                    {"X": x},
                    dict(attrs, pooling_type=kind),
                    grad=["X"],
                )
                for kind in ("max", "avg")
            ]
            indexed = Extreme(
                name,
                "max_pool2d_with_index",
                {"X": x},
                attrs,
                ["Out", "Mask"],
                of=["Out"],
                grad=["X"] if what in ("ties", "zeros", "greatest") and dtype == "float32" else [],
            )
            CASES += [indexed]
        volume = np.array(plane, dtype).reshape(1, 1, 2, 2, 4)
        CASES += [
            Extreme(
                "%s %s %s" % (kind, dtype, what),
                "pool3d",
                {"X": volume},
                {"pooling_type": kind, "ksize": [2, 2, 2], "strides": [2, 2, 2]},
                grad=["X"],
            )
            for kind in ("max", "avg")
        ]
for dtype in ("float32", "float64"):
    for what, plane in sorted(PLANES.items()):
        x = np.array(plane, dtype)
        CASES += [
            Extreme(
                "%s %s" % (dtype, what),
                "max_pool3d_with_index",
                {"X": x.reshape(1, 1, 2, 2, 4)},
                {"ksize": [2, 2, 2], "strides": [2, 2, 2]},
                ["Out", "Mask"],
            ),
            Extreme(
                "%s %s" % (dtype, what),
                "unpool",
                {
                    "X": x[:2, :2].reshape(1, 1, 2, 2).copy(),
                    "Indices": np.array([[[[0, 15], [5, 2]]]], "int32"),
                },
                {"ksize": [2, 2], "strides": [2, 2], "paddings": [0, 0], "unpooling_type": "max"},
                grad=["X"],
            ),
        ]
