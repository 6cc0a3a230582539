"""Boxes of nothing, bounds beyond the ends, borders of nan; integers at their limits."""

import numpy as np

from ..case import Extreme, limits

NAN, INF = np.nan, np.inf
MOST = 2**31 - 1
X = np.array([[0, -0.0, NAN, 1], [INF, -INF, 2, 3], [3e38, -3e38, 1e-30, 4]])
SPANS = [
    (-9, 9),
    (1, MOST),
    (-MOST - 1, 2),
    (2, 2),
    (3, 1),
    (9, 12),
    (-9, -8),
    (0, -1),
    (-1, MOST),
    (0, -9),
]
STEPS = [
    (0, 9, 2),
    (-9, 9, 5),
    (3, -9, -1),
    (9, 0, -1),
    (2, 2, 1),
    (0, 3, -1),
    (3, 0, 1),
    (-1, -9, -2),
    (1, 3, 0),
]
CASES = []
for dtype in ("float32", "float64"):
    x = X.astype(dtype)
    CASES += [
        Extreme(
            "%s [%d:%d]" % (dtype, a, b),
            "slice",
            {"Input": x},
            {"axes": [0], "starts": [a], "ends": [b]},
            grad=["Input"],
        )
        for a, b in SPANS
    ]
    CASES += [
        Extreme(
            "%s [%d:%d:%d]" % (dtype, a, b, s),
            "strided_slice",
            {"Input": x},
            {"axes": [1], "starts": [a], "ends": [b], "strides": [s], "infer_flags": [1]},
            grad=["Input"],
        )
        for a, b, s in STEPS
    ]
    for op in ("crop", "crop_tensor"):
        CASES += [
            Extreme(
                "%s all" % dtype, op, {"X": x}, {"offsets": [0, 0], "shape": [3, 4]}, grad=["X"]
            ),
            Extreme(
                "%s one" % dtype, op, {"X": x}, {"offsets": [2, 3], "shape": [1, 1]}, grad=["X"]
            ),
        ]
    CASES += [
        Extreme("%s beyond" % dtype, "crop_tensor", {"X": x}, {"offsets": [2, 3], "shape": [2, 2]})
    ]
    plane = x.reshape(1, 1, 3, 4)
    # 1.8.5 reads outside its memory where it mirrors a single cell
    for mode in ("constant", "reflect", "edge"):
        CASES += [
            Extreme(
                "%s %s %s" % (dtype, mode, p),
                "pad2d",
                {"X": plane},
                {"paddings": p, "mode": mode, "pad_value": NAN},
                grad=["X"],
            )
            for p in ([0, 0, 0, 0], [1, 2, 3, 0])
        ]
        CASES += (
            [
                Extreme(
                    "%s %s one cell" % (dtype, mode),
                    "pad2d",
                    {"X": plane[:, :, 1:2, 2:3].copy()},
                    {"paddings": [1, 1, 0, 2], "mode": mode, "pad_value": INF},
                    grad=["X"],
                )
            ]
            if mode != "reflect"
            else []
        )
    CASES += [
        Extreme(
            "%s value %g" % (dtype, v),
            "pad_constant_like",
            {"X": np.zeros((4, 5), dtype), "Y": x},
            {"pad_value": v},
            grad=["Y"],
        )
        for v in (-0.0, INF, NAN, 3e38)
    ]
    CASES += [
        Extreme(
            dtype + " same size",
            "pad_constant_like",
            {"X": np.zeros((3, 4), dtype), "Y": x},
            {"pad_value": NAN},
            grad=["Y"],
        )
    ]
    for op in ("partial_concat", "partial_sum"):
        CASES += [
            Extreme(
                "%s from %d, %d" % (dtype, begin, size),
                op,
                {"X": [x, -x]},
                {"start_index": begin, "length": size},
                grad=["X"],
            )
            for begin, size in ((0, -1), (3, 1), (1, 3), (3, -1))
        ]
for dtype in ("int32", "int64"):
    x = limits(dtype).reshape(4, 4)
    CASES += [
        Extreme(
            dtype, "slice", {"Input": x}, {"axes": [0, 1], "starts": [-9, 1], "ends": [9, MOST]}
        ),
        Extreme(
            dtype,
            "strided_slice",
            {"Input": x},
            {"axes": [0], "starts": [3], "ends": [-9], "strides": [-1], "infer_flags": [1]},
        ),
        Extreme(dtype, "crop_tensor", {"X": x}, {"offsets": [1, 1], "shape": [3, 2]}),
        Extreme(
            dtype,
            "pad2d",
            {"X": x.reshape(1, 1, 4, 4)},
            {"paddings": [1, 0, 0, 1], "pad_value": -2.9},
        ),
        Extreme(
            dtype, "pad_constant_like", {"X": np.zeros((5, 4), dtype), "Y": x}, {"pad_value": -2.9}
        ),
        Extreme(dtype, "partial_concat", {"X": [x, x]}, {"start_index": 1, "length": 2}),
        Extreme(dtype, "partial_sum", {"X": [x, x]}, {"start_index": 0, "length": 2}),
    ]
