"""Casts at the limits of their types, signs of zero that travel, parts of nothing."""

import numpy as np

from ..case import Extreme, limits, specials, whole

NAN, INF = np.nan, np.inf
NUMBERS = {"bool": 0, "int32": 2, "int64": 3, "float32": 5, "float64": 6, "uint8": 20}
INSIDE = [0.0, -0.0, 0.5, 0.99, 1.0, 1.5, 2.5, 100.7, 254.0, 255.0]
CASES = []
for source in ("float32", "float64"):
    x = specials(source)
    for to in ("float32", "float64", "bool"):
        CASES += [
            Extreme(
                "%s to %s" % (source, to),
                "cast",
                {"X": x},
                {"in_dtype": NUMBERS[source], "out_dtype": NUMBERS[to]},
                grad=["X"] if to != "bool" else [],
                pointwise=True,
            )
        ]
    for to in ("int32", "int64", "uint8"):
        signed = INSIDE + (
            [] if to == "uint8" else [-v for v in INSIDE] + [2147483520.0, -2147483648.0]
        )
        CASES += [
            Extreme(
                "%s to %s" % (source, to),
                "cast",
                {"X": whole(np.array(signed, source))},
                {"in_dtype": NUMBERS[source], "out_dtype": NUMBERS[to]},
                pointwise=True,
            )
        ]
for source in ("int32", "int64", "uint8"):
    for to in sorted(NUMBERS):
        CASES += [
            Extreme(
                "%s to %s" % (source, to),
                "cast",
                {"X": whole(limits(source))},
                {"in_dtype": NUMBERS[source], "out_dtype": NUMBERS[to]},
                pointwise=True,
            )
        ]
x = np.array([[0, -0.0, NAN], [INF, -INF, 1]], "float32")
CASES += [
    Extreme("specials", "concat", {"X": [x, -x]}, {"axis": 0}, grad=["X"]),
    Extreme("nothing beside something", "concat", {"X": [x[:0].copy(), x]}, {"axis": 0}),
    Extreme("specials", "pad", {"X": x}, {"paddings": [0, 1, 1, 0], "pad_value": NAN}, grad=["X"]),
    Extreme("specials", "reverse", {"X": x}, {"axis": [0, 1]}, grad=["X"]),
    Extreme("specials", "expand", {"X": x}, {"expand_times": [2, 2]}, grad=["X"]),
    Extreme("specials", "tril_triu", {"X": x}, {"lower": True}, grad=["X"]),
    Extreme(
        "beyond the end",
        "slice",
        {"Input": x},
        {"axes": [0, 1], "starts": [-9, 1], "ends": [9, 99]},
        grad=["Input"],
    ),
    Extreme("specials", "stack", {"X": [x, -x]}, {"axis": 1}, ["Y"], grad=["X"]),
]
row, plane = x.reshape(1, 6), x.reshape(1, 2, 3)
CASES += [
    Extreme("specials", op, {"X": given}, attrs, outs, grad=["X"])
    for op, given, attrs, outs in (
        ("assign", x, {}, ["Out"]),
        ("flatten", plane, {"axis": 0}, ["Out"]),
        ("flatten2", plane, {"axis": 3}, ["Out"]),
        ("reshape", x, {"shape": [-1]}, ["Out"]),
        ("reshape2", x, {"shape": [0, -1, 1]}, ["Out"]),
        ("squeeze", plane, {"axes": []}, ["Out"]),
        ("squeeze2", plane, {"axes": [-3]}, ["Out"]),
        ("unsqueeze", x, {"axes": [0, -1]}, ["Out"]),
        ("unsqueeze2", x, {"axes": [2]}, ["Out"]),
        ("transpose", plane, {"axis": [2, 0, 1]}, ["Out"]),
        ("transpose2", x, {"axis": [1, 0]}, ["Out"]),
        ("split", x, {"axis": 1, "sections": [1, 2]}, ["Out*2"]),
        ("unbind", x, {"axis": 1}, ["Out*3"]),
        ("unstack", x, {"axis": 1, "num": 3}, ["Y*3"]),
    )
]
CASES += [
    Extreme(
        "specials", "expand_as", {"X": x, "target_tensor": np.zeros((4, 3), "float32")}, grad=["X"]
    ),
    Extreme("specials", "shape", {"Input": x}),
    Extreme("specials", "size", {"Input": x}),
    Extreme("nothing", "shape", {"Input": x[:0].copy()}),
    Extreme("nothing", "size", {"Input": x[:0].copy()}),
]
