"""Constants at the limits of their types, ranges of nothing, of one step, of infinities."""

import numpy as np

from ..case import Extreme, few, limits

NAN, INF = np.nan, np.inf
BOOL, INT32, INT64, FP32, FP64, UINT8 = 0, 2, 3, 5, 6, 20
TEXTS = {
    FP32: ["-0.0", "3.4e38", "-3.4e38", "0.1", "16777217", "inf", "nan"],
    FP64: ["-0.0", "1.7e308", "9007199254740993", "-inf", "nan"],
    INT32: ["2147483647", "-2147483648", "-0.9", "0.99"],
    INT64: ["9223372036854775807", "-9223372036854775808", "-0.9", "9223372036854775808"],
    BOOL: ["0", "-0.0", "0.5", "-1", "nan", "inf"],
}
CASES = [
    Extreme("%d of %s" % (t, s), "fill_constant", {}, {"shape": [2], "dtype": t, "str_value": s})
    for t in sorted(TEXTS)
    for s in TEXTS[t]
]
CASES += [
    Extreme("%d of value %g" % (t, v), "fill_constant", {}, {"shape": [2], "dtype": t, "value": v})
    for t, v in (
        (FP32, 3.4e38),
        (FP64, 0.1),
        (INT32, 2147483520.0),
        (INT64, 2.0**62),
        (INT64, 16777217.0),
        (UINT8, 255.0),
        (UINT8, 2.0),
        (BOOL, 0.5),
    )
]
CASES += [
    Extreme("shape %s" % shape, "fill_constant", {}, {"shape": shape, "value": 1.0})
    for shape in ([1], [1, 1, 1], [0, 3])
]
CASES += [
    Extreme(
        "value %s" % v, "fill_constant", {"ValueTensor": np.array([v], "float32")}, {"shape": [2]}
    )
    for v in (-0.0, INF, NAN)
]
like = "fill_constant_batch_size_like"
CASES += [
    Extreme(
        "%d of %g, rows %d" % (t, v, n),
        like,
        {"Input": np.zeros((n, 2), "float32")},
        {"shape": [-1, 2], "value": v, "dtype": t},
    )
    for n in (1, 3)
    for t, v in ((FP32, 3.4e38), (FP64, 0.1), (INT64, -7.9), (INT32, 2147483520.0))
]
for dtype in ("float32", "float64"):
    x = few(dtype)
    CASES += [
        Extreme("%s %g" % (dtype, v), "fill_any_like", {"X": x}, {"value": v})
        for v in (0.0, -0.0, 3.4e38, INF, NAN, 0.1)
    ]
    CASES += [
        Extreme("%s to %d" % (dtype, t), "fill_any_like", {"X": x}, {"value": -2.9, "dtype": t})
        for t in (INT32, INT64)
    ]
    CASES += [
        Extreme(dtype, "fill_zeros_like", {"X": x}),
        Extreme(dtype, "fill_zeros_like2", {"X": x}, {"dtype": FP32}),
    ]
for dtype in ("int32", "int64"):
    x = limits(dtype)
    CASES += [
        Extreme("%s %g" % (dtype, v), "fill_any_like", {"X": x}, {"value": v})
        for v in (-2.9, 2147483520.0, -2147483648.0)
    ]
    CASES += [
        Extreme(dtype, "fill_zeros_like", {"X": x}),
        Extreme(dtype, "fill_zeros_like2", {"X": x}, {"dtype": INT64}),
    ]
CASES += [
    Extreme(
        "float32",
        "assign_value",
        {},
        {"shape": [6], "dtype": FP32, "fp32_values": [0.0, -0.0, 3e38, INF, -INF, NAN]},
    ),
    Extreme(
        "int32",
        "assign_value",
        {},
        {"shape": [3], "dtype": INT32, "int32_values": [2147483647, -2147483648, 0]},
    ),
    Extreme(
        "int64",
        "assign_value",
        {},
        {"shape": [3], "dtype": INT64, "int64_values": [2**63 - 1, -(2**63), 0]},
    ),
    Extreme("bool", "assign_value", {}, {"shape": [3], "dtype": BOOL, "bool_values": [0, 1, 2]}),
    Extreme("float32", "fill", {}, {"shape": [6], "value": [0.0, -0.0, 3e38, INF, -INF, NAN]}),
    Extreme("float64", "fill", {}, {"shape": [3], "dtype": FP64, "value": [-0.0, 0.1, 3e38]}),
    Extreme(
        "int64",
        "fill",
        {},
        {"shape": [4], "dtype": INT64, "value": [-2.9, 2.9, 2.0**62, -(2.0**63)]},
    ),
    Extreme(
        "int32",
        "fill",
        {},
        {"shape": [4], "dtype": INT32, "value": [-2.9, 2.9, 2147483520.0, -2147483648.0]},
    ),
]
CASES += [
    Extreme("%dx%d type %d" % (n, m, t), "eye", {}, {"num_rows": n, "num_columns": m, "dtype": t})
    for n, m in ((1, 1), (1, 4), (4, 1), (3, -1))
    for t in (FP32, FP64, INT32, INT64)
]


def rows(op, third, spans):
    for dtype, begin, end, by in spans:
        inputs = dict(
            zip(
                third,
                (
                    np.array([begin], dtype),
                    np.array([end], dtype),
                    np.array([by], "int32" if op == "linspace" else dtype),
                ),
            )
        )
        yield Extreme("%s %r to %r by %r" % (dtype, begin, end, by), op, inputs)


CASES += rows(
    "range",
    ("Start", "End", "Step"),
    [
        ("float32", 0, 1, 5),
        ("float32", 0, 1, 0.1),
        ("float32", 1, 0, -0.1),
        ("float32", -0.0, 3, 1),
        ("float32", 1e8, 1e8 + 64, 8),
        ("float32", -3e38, 3e38, 3e38),
        ("float64", 0, 1, 0.1),
        ("float64", 0.1, 0.7, 0.2),
        ("float32", 1, 1.0000001, 1e-8),
        ("float32", 0, 0, 1),
        ("int32", 2147483640, 2147483647, 3),
        ("int32", -2147483648, -2147483640, 3),
        ("int32", 5, 0, -10),
        ("int32", 0, 5, -1),
        ("int64", 2**63 - 8, 2**63 - 1, 3),
        ("int64", -(2**63), -(2**63) + 3, 1),
        ("int64", 3, 3, 1),
        ("int64", 2**53, 2**53 + 5, 1),
        ("int64", 0, 5, 0),
    ],
)
CASES += rows(
    "linspace",
    ("Start", "Stop", "Num"),
    [
        ("float32", 0, 1, 1),
        ("float32", 2, 2, 3),
        ("float32", -0.0, 0.0, 3),
        ("float32", 1, -1, 5),
        ("float32", -3e38, 3e38, 3),
        ("float32", 0, INF, 3),
        ("float32", NAN, 1, 2),
        ("float32", 0, 1e-30, 4),
        ("float64", 0, 1, 11),
        ("float64", 0.1, 0.7, 7),
        ("float64", -1.7e308, 1.7e308, 3),
        ("float32", 16777216, 16777226, 6),
        ("float32", 0, 1, 0),
        ("float32", 0, 1, -1),
    ],
)
