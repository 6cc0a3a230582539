"""Fake quantisation."""

import numpy as np

from ..sample import Sample, f32, f64, positive

# eight, as the vector code takes them
HALVES = np.array([[0.5, -0.5, 1.5, 126.5], [2.5, -2.5, 127, -0.0]], "float32")


def plain(op, x, **attrs):
    return Sample(op, {"X": x}, attrs, ["Out", "OutScale"])


def one(value, dtype="float32"):
    return np.array([value], dtype)


def moving(op, x, test=False, scale=0.7, **attrs):
    inputs = {"X": x, "InScale": one(scale, x.dtype.name)}
    outs = ["Out"] if test else ["Out", "OutScale", "OutState", "OutAccum"]
    inplace = {"OutScale": "InScale"}
    if not test:
        inputs.update(InAccum=one(1.3, x.dtype.name), InState=one(1.9, x.dtype.name))
        inplace.update(OutState="InState", OutAccum="InAccum")
    return Sample(op, inputs, dict(attrs, is_test=test), outs, inplace=inplace)


def scale_only(x, test=False, **attrs):
    inputs = (
        {"X": x}
        if test
        else {"X": x, "InAccum": one(1.3, x.dtype.name), "InState": one(1.9, x.dtype.name)}
    )
    outs = ["Out"] if test else ["Out", "OutScale", "OutState", "OutAccum"]
    inplace = {} if test else {"OutState": "InState", "OutAccum": "InAccum"}
    return Sample(
        "moving_average_abs_max_scale", inputs, dict(attrs, is_test=test), outs, inplace=inplace
    )


def channels(x, *scales, bits=(8,)):
    return Sample(
        "fake_channel_wise_dequantize_max_abs",
        {"X": x, "Scales": list(scales)},
        {"quant_bits": list(bits)},
        ["Out"],
    )


MOVING = ("fake_quantize_moving_average_abs_max", "fake_quantize_dequantize_moving_average_abs_max")
I8 = np.array([-128, -127, -1, 0, 1, 64, 127, 5], "int8").reshape(4, 2)
SAMPLES = [
    plain("fake_quantize_abs_max", f32(3, 4)),
    plain("fake_quantize_abs_max", 5 * f32(2, 3, 4), bit_length=4),
    plain("fake_quantize_abs_max", HALVES),
    plain("fake_quantize_abs_max", f32(4), bit_length=16),
    plain("fake_channel_wise_quantize_abs_max", f32(3, 4)),
    plain("fake_channel_wise_quantize_abs_max", f32(4, 3, 2, 2), bit_length=5),
]
for op in MOVING:
    SAMPLES += [
        moving(op, f32(3, 4)),
        moving(op, 3 * f32(2, 5), bit_length=4, moving_rate=0.5),
        moving(op, f32(3, 4), test=True),
    ]
SAMPLES += [
    scale_only(f32(3, 4)),
    scale_only(f32(5), moving_rate=0.3),
    scale_only(f32(2, 2), test=True),
]
SAMPLES += [
    Sample(
        "fake_dequantize_max_abs",
        {"X": np.round(127 * f32(3, 4)), "Scale": one(0.7)},
        {"max_range": 127.0},
        ["Out"],
    ),
    Sample(
        "fake_dequantize_max_abs",
        {"X": f64(2, 2), "Scale": one(2.5, "float64")},
        {"max_range": 7.0},
        ["Out"],
    ),
    channels(f32(3, 4), positive(3)),
    channels(f32(4, 2, 3), positive(4), bits=[5]),
    channels(f32(2, 3, 4), positive(3), positive(1), bits=[8, 8]),
    channels(f32(2, 3), positive(3), positive(1), bits=[4, 8]),
    Sample("dequantize_abs_max", {"X": I8, "Scale": one(0.3)}, {"max_range": 127.0}, ["Out"]),
    Sample("dequantize_log", {"X": I8, "Dict": positive(128)}, {}, ["Out"]),
]
