"""Attributes that Paddle 2 and 3 gave to ops of 1.8.5, recorded with 3.3.1."""

import numpy as np

from ..sample import LATER, Sample, distinct, f32, ints, positive


def one(op, x, attrs, outs=("Out",), grad=True, slot="X", **more):
    return Sample(op, {slot: x}, attrs, list(outs), [slot] if grad else None, paddle=LATER, **more)


def shares(*shape):
    """probabilities along the last axis"""
    x = positive(*shape)
    return x / x.sum(-1, keepdims=True)


def transposed(op, rank, more, **attrs):
    side = (3, 4, 3)[:rank]
    given = dict(
        {
            "strides": [2] * rank,
            "paddings": [1] * rank,
            "dilations": [1] * rank,
            "output_padding": more,
        },
        **attrs,
    )
    channels = 2 if op.startswith("depthwise") else 3
    inputs = {
        "Input": f32(1, 2, *side),
        "Filter": f32(2, channels // given.get("groups", 1), *[3] * rank),
    }
    return Sample(op, inputs, given, ["Output"], ["Input", "Filter"], paddle=LATER)


def linspace(dtype, of="float32"):
    inputs = {
        "Start": np.array([1], of),
        "Stop": np.array([2.5], "float32").astype(of),
        "Num": np.array([4], "int32"),
    }
    return Sample("linspace", inputs, {"dtype": dtype}, ["Out"], paddle=LATER)


def entropy(soft):
    label = shares(3, 4) if soft else ints(3, 1, high=4)
    attrs = {"use_softmax": False, "soft_label": soft}
    return Sample(
        "softmax_with_cross_entropy",
        {"Logits": shares(3, 4), "Label": label},
        attrs,
        ["Loss"],
        ["Logits"],
        paddle=LATER,
    )


def divergence(reduction):
    return Sample(
        "kldiv_loss",
        {"X": f32(3, 4), "Target": f32(3, 4)},
        {"reduction": reduction, "log_target": True},
        ["Loss"],
        ["X"],
        paddle=LATER,
    )


def quantised(op, x, **attrs):
    return Sample(op, {"X": x}, attrs, ["Out", "OutScale"], paddle=LATER)


TIES = np.array([127, 0.5, 2.5, -1.5], "float32")
SAMPLES = [
    one("flip", f32(2, 3), {"axis": [1]}),
    one("flip", f32(2, 3, 2), {"axis": [0, -1]}),
    one("roll", f32(3, 4), {"shifts": [1], "axis": [0]}),
    one("roll", f32(3, 4), {"shifts": [1, -2], "axis": [0, 1]}),
    one("roll", f32(2, 3), {"shifts": [2]}),
    one("trace", f32(2, 3, 4), {"axis1": 0, "axis2": 2, "offset": 1}, slot="Input"),
    one("arg_max", distinct(3, 4), {"flatten": True, "axis": 0}, grad=False),
    one(
        "arg_min",
        distinct(3, 4),
        {"flatten": True, "axis": 0, "keepdims": True, "dtype": 2},
        grad=False,
    ),
    one("thresholded_relu", f32(3, 4), {"threshold": 0.25, "value": -0.5}, grad=False),
    one("pixel_shuffle", f32(1, 2, 3, 8), {"upscale_factor": 2, "data_format": "NHWC"}),
    one("temporal_shift", f32(4, 2, 2, 8), {"seg_num": 2, "data_format": "NHWC"}),
    linspace(5),
    linspace(3),
    linspace(6),
    linspace(2, "int32"),
    divergence("none"),
    entropy(False),
    entropy(True),
    transposed("conv2d_transpose", 2, [1, 0]),
    transposed("conv2d_transpose", 2, [0, 1], strides=[3, 2], dilations=[1, 2]),
    transposed("depthwise_conv2d_transpose", 2, [1, 1], groups=2),
    transposed("conv3d_transpose", 3, [1, 0, 1]),
    quantised("fake_quantize_abs_max", TIES, round_type=1),
    quantised("fake_quantize_abs_max", TIES, round_type=0),
    quantised("fake_channel_wise_quantize_abs_max", f32(2, 3, 2), quant_axis=1, round_type=1),
    Sample(
        "fake_channel_wise_dequantize_max_abs",
        {"X": f32(2, 3), "Scales": [positive(3)]},
        {"quant_axis": 1, "quant_bits": [8]},
        ["Out"],
        paddle=LATER,
    ),
]
SAMPLES += [
    Sample(
        "gather",
        {"X": f32(2, 4), "Index": np.array([3, 0, 3])},
        {"axis": 1},
        ["Out"],
        ["X"],
        paddle=LATER,
    ),
    Sample(
        "gather",
        {"X": f32(2, 3, 2), "Index": np.array([2, 2]), "Axis": np.array([-2], "int32")},
        {},
        ["Out"],
        ["X"],
        paddle=LATER,
        skip={"unknown": "the axis is data"},
    ),
    Sample("gather", {"X": f32(3, 2), "Index": np.array(1)}, {}, ["Out"], ["X"], paddle=LATER),
    one("softplus", np.array([-2, 0, 1.5, 9], "float32"), {"beta": 2.0, "threshold": 10.0}),
    one(
        "softplus",
        np.array([5, np.nan, np.inf, -np.inf], "float32"),
        {"beta": 2.0, "threshold": 10.0},
        skip={"numeric": "the kink"},
    ),
    one("p_norm", f32(2, 3), {"porder": 2.0, "asvector": True, "axis": -1}),
    one("p_norm", f32(2, 3), {"porder": np.inf, "asvector": True, "keepdim": True}),
    one("cumsum", f32(2, 3), {"flatten": True}, grad=False),
    one("round", np.array([0.125, -2.345, 1.05], "float32"), {"decimals": 1}, grad=False),
    Sample(
        "prelu",
        {"X": f32(2, 3, 2), "Alpha": f32(2)},
        {"mode": "channel", "data_format": "NHWC"},
        ["Out"],
        ["X", "Alpha"],
        paddle=LATER,
    ),
    Sample(
        "unpool",
        {"X": f32(1, 1, 2, 2), "Indices": np.array([[[[0, 3], [10, 14]]]], "int32")},
        {
            "unpooling_type": "max",
            "ksize": [2, 2],
            "strides": [2, 2],
            "paddings": [0, 0],
            "output_size": [5, 5],
        },
        ["Out"],
        ["X"],
        paddle=LATER,
    ),
    Sample("scale", {"X": f32(3), "BiasTensor": f32(1)}, {"scale": 2.0}, ["Out"], paddle=LATER),
    Sample(
        "roll",
        {"X": f32(2, 3), "ShiftsTensor": np.array([1, -1])},
        {"axis": [0, 1]},
        ["Out"],
        ["X"],
        paddle=LATER,
    ),
    Sample(
        "sigmoid_cross_entropy_with_logits",
        {"X": f32(2, 3), "Label": positive(2, 3, lo=0.0, hi=1.0), "pos_weight": positive(2, 3)},
        {},
        ["Out"],
        ["X"],
        paddle=LATER,
    ),
    *(
        Sample(
            "grid_sampler",
            {"X": f32(1, 2, 3, 3), "Grid": f32(1, 2, 2, 2, lo=-1.4, hi=1.4)},
            {"mode": mode, "padding_mode": padding, "align_corners": align},
            ["Output"],
            ["X", "Grid"] if mode == "bilinear" else ["X"],
            paddle=LATER,
        )
        for mode, padding, align in (
            ("bilinear", "border", False),
            ("nearest", "zeros", False),
            ("bilinear", "reflection", True),
            ("nearest", "reflection", False),
        )
    ),
    Sample(
        "affine_grid",
        {"Theta": f32(1, 2, 3)},
        {"output_shape": [1, 1, 2, 3], "align_corners": False},
        ["Output"],
        ["Theta"],
        paddle=LATER,
    ),
    Sample(
        "momentum",
        {"Param": f32(3), "Grad": f32(3), "Velocity": f32(3), "LearningRate": f32(1)},
        {"mu": 0.9, "regularization_method": "l2_decay", "regularization_coeff": 0.5},
        ["ParamOut", "VelocityOut"],
        paddle=LATER,
    ),
]
