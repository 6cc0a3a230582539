"""Fake quantisation: halves, scales of zero and of almost nothing, infinities, nan."""

import numpy as np

from ..case import Extreme

NAN, INF = np.nan, np.inf
# whole vectors
HALVES = [127, 0.5, -0.5, 1.5, -1.5, 2.5, 126.5, -126.5, 0.49999997, -0.0, 0, 1e-30, 3, 4, 5, 6]
INPUTS = {
    "halves": HALVES,
    "zeros": [0, -0.0, 0],
    "tiny": [1e-31, -1e-31, 0],
    "large": [3e38, -3e38, 1],
    "small": [1e-20, 3e-21, -1e-20],
}
SPECIAL = {"infinite": [INF, 1, -INF, 0], "nan first": [NAN, 1, 2], "nan last": [1, 2, NAN]}
ALL = dict(INPUTS, **SPECIAL)
CASES = []


def one(value, dtype="float32"):
    return np.array([value], dtype)


for name, values in ALL.items():
    x = np.array(values, "float32")
    CASES.append(
        Extreme("float32 " + name, "fake_quantize_abs_max", {"X": x}, {}, ["Out", "OutScale"])
    )
    CASES.append(
        Extreme(
            "float32 " + name,
            "fake_channel_wise_quantize_abs_max",
            {"X": np.stack([x, x / 2])},
            {},
            ["Out", "OutScale"],
        )
    )
    for op in (
        "fake_quantize_moving_average_abs_max",
        "fake_quantize_dequantize_moving_average_abs_max",
    ):
        inputs = {"X": x, "InScale": one(1), "InAccum": one(0), "InState": one(0)}
        inplace = {"OutScale": "InScale", "OutState": "InState", "OutAccum": "InAccum"}
        CASES.append(
            Extreme(
                "float32 " + name,
                op,
                inputs,
                {},
                ["Out", "OutScale", "OutState", "OutAccum"],
                inplace=inplace,
            )
        )
        CASES.append(
            Extreme(
                "float32 %s is_test" % name,
                op,
                {"X": x, "InScale": one(1)},
                {"is_test": True},
                ["Out"],
                inplace={"OutScale": "InScale"},
            )
        )
    CASES.append(
        Extreme(
            "float32 " + name,
            "moving_average_abs_max_scale",
            {"X": x, "InAccum": one(1), "InState": one(1)},
            {},
            ["Out", "OutScale", "OutState", "OutAccum"],
            inplace={"OutState": "InState", "OutAccum": "InAccum"},
        )
    )
    for scale in (0.0, 1.5, NAN):
        CASES.append(
            Extreme(
                "float32 %s by %s" % (name, scale),
                "fake_dequantize_max_abs",
                {"X": x, "Scale": one(scale)},
                {"max_range": 127.0},
            )
        )
CASES.append(
    Extreme(
        "float32 a channel of zeros",
        "fake_channel_wise_quantize_abs_max",
        {"X": np.array([[0, 0], [1, -2]], "float32")},
        {},
        ["Out", "OutScale"],
    )
)
CHANNELS = "fake_channel_wise_dequantize_max_abs"
X = np.array([[1, -0.0, INF], [NAN, 127, -128]], "float32")
CASES += [
    Extreme(
        "float32", CHANNELS, {"X": X, "Scales": [np.array([0, 2], "float32")]}, {"quant_bits": [8]}
    ),
    Extreme(
        "float32 two scales",
        CHANNELS,
        {"X": X, "Scales": [np.array([1, 0, 3e38], "float32"), one(2)]},
        {"quant_bits": [8, 8]},
    ),
]
I8 = np.arange(-128, 128).astype("int8")
CASES += [
    Extreme(
        "int8 by %s" % s, "dequantize_abs_max", {"X": I8, "Scale": one(s)}, {"max_range": 127.0}
    )
    for s in (0.3, -0.0, INF)
]
CASES.append(
    Extreme("int8", "dequantize_log", {"X": I8, "Dict": np.linspace(-1, 3, 128).astype("float32")})
)
