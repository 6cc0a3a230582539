"""Pools, boxes, recurrences, resizing, set values and copies of later Paddles: ties, empty boxes,
bounds, zeros and infinities.
"""

import numpy as np

from ..case import Extreme, few
from .interp import PLANES, RULES
from .proposals import BOXES

CASES = []
INF, NAN = np.inf, np.nan
PLACES = {
    "ties": [[1, 1, 1, 1, 1]] * 4,
    "zeros": [[0.0, -0.0, 0, -0.0, 0]] * 4,
    "no number": [[NAN] * 5] * 4,
    "nothing": [[-INF] * 5] * 4,
    "special": [
        [NAN, 1, INF, 2, -INF],
        [0, -0.0, INF, NAN, 1],
        [-INF, -INF, 3, 3, NAN],
        [-INF, -INF, 1e4, -1e4, 0],
    ],
    "great": [
        [3e38, -3e38, 1e30, 1e30, -1e30],
        [1e4, 1e4, 1, 1e-30, 0],
        [-3e38] * 5,
        [-1, -1, -2, -2, -1],
    ],
}
for _dtype in ("float32", "float64"):
    for _label in sorted(PLACES):
        _x = np.array(PLACES[_label], _dtype)[None, None]
        # Where a window holds nothing above -infinity there is no place for the gradient: 3.3.1
        # writes it outside of the tensor.
        _wrt = [] if _label in ("no number", "nothing", "special") else ["x"]
        for _size in ([2, 2], [1, 1], [4, 5]):
            CASES.append(
                Extreme(
                    "%s %s to %dx%d" % ((_dtype, _label) + tuple(_size)),
                    "fractional_max_pool2d",
                    {"x": _x},
                    {"output_size": _size, "random_u": 0.5, "return_mask": True},
                    ["out", "mask"],
                    grad=_wrt,
                    of=["out"],
                )
            )
        CASES += [
            Extreme(
                "%s %s" % (_dtype, _label),
                "fractional_max_pool3d",
                {"x": np.stack([_x, _x], 2)},
                {"output_size": [1, 2, 2], "random_u": 0.5, "return_mask": True},
                ["out", "mask"],
                grad=_wrt,
                of=["out"],
            ),
            Extreme(
                "%s %s" % (_dtype, _label),
                "unpool3d",
                {
                    "X": _x[..., :2, :2].reshape(1, 1, 1, 2, 2),
                    "Indices": np.array([0, 15, 8, 3], "int32").reshape(1, 1, 1, 2, 2),
                },
                {"ksize": [2, 2, 2], "strides": [2, 2, 2], "output_size": [2, 4, 4]},
                grad=["X"],
            ),
        ]
        for _power in (1.0, 2.0, float("inf")):
            CASES.append(
                Extreme(
                    "%s %s, power %g" % (_dtype, _label, _power),
                    "lp_pool2d",
                    {"x": _x},
                    {
                        "kernel_size": [2, 2],
                        "strides": [2, 2],
                        "norm_type": _power,
                        "pooling_type": "lp",
                        "paddings": [0, 0],
                        "padding_algorithm": "EXPLICIT",
                    },
                    ["out"],
                    grad=["x"],
                )
            )
    for _label in sorted(PLANES):
        _flat, _plane = (
            np.array(PLANES[_label], _dtype).reshape(1, 1, 6),
            np.array(PLANES[_label], _dtype),
        )
        for _rule in sorted(RULES):
            CASES += [
                Extreme(
                    "%s %s to %d, %s" % (_dtype, _label, _w, _rule),
                    "linear_interp_v2",
                    {"X": _flat},
                    dict(RULES[_rule], interp_method="linear", out_w=_w, scale=[]),
                    grad=["X"],
                )
                for _w in (6, 9)
            ]
            CASES.append(
                Extreme(
                    "%s %s, %s" % (_dtype, _label, _rule),
                    "trilinear_interp_v2",
                    {"X": np.stack([_plane, _plane])[None, None]},
                    dict(
                        RULES[_rule], interp_method="trilinear", out_d=2, out_h=3, out_w=5, scale=[]
                    ),
                    grad=["X"],
                )
            )
    _v = np.resize(few(_dtype), (4, 6))
    _slice = {"axes": [0, 1], "starts": [1, 0], "ends": [3, 6], "steps": [1, 2], "shape": [1]}
    for _value in (0.0, -0.0, INF, 1e30, NAN):
        CASES.append(
            Extreme(
                "%s value %r" % (_dtype, _value),
                "set_value",
                {"Input": _v},
                dict(_slice, values=[_value]),
                grad=["Input"],
            )
        )
        if _value == _value:  # 3.3.1 has no attribute that is nan
            CASES.append(
                Extreme(
                    "%s value %r" % (_dtype, _value),
                    "fill_any",
                    {"X": _v},
                    {"value": _value},
                    grad=["X"],
                )
            )
    CASES += [
        Extreme(
            "%s special" % _dtype,
            "set_value",
            {"Input": _v, "ValueTensor": few(_dtype)[-6:]},
            {"axes": [0], "starts": [1], "ends": [9], "steps": [1]},
            grad=["Input", "ValueTensor"],
        ),
        Extreme(
            "%s backwards" % _dtype,
            "set_value",
            {"Input": _v, "ValueTensor": few(_dtype)[-6:]},
            {"axes": [1], "starts": [-1], "ends": [-100], "steps": [-1]},
            grad=["Input", "ValueTensor"],
        ),
        Extreme(
            "%s nowhere" % _dtype,
            "set_value",
            {"Input": _v},
            {"axes": [0], "starts": [3], "ends": [1], "steps": [1], "shape": [1], "values": [2.0]},
            grad=["Input"],
        ),
        Extreme("%s special" % _dtype, "memcpy", {"X": _v}, {"dst_place_type": 0}),
        Extreme("%s special" % _dtype, "memcpy_d2h", {"X": _v}, {"dst_place_type": 0}),
        Extreme("%s special" % _dtype, "memcpy_h2d", {"X": _v}, {"dst_place_type": 0}),
        Extreme("%s special" % _dtype, "npu_identity", {"x": _v}, {"format": -1}, ["out"]),
    ]
    for _label, _start, _stop, _num, _base in (
        ("ordinary", 0, 3, 4, 2),
        ("one", 2, 9, 1, 3),
        ("equal ends", 2, 2, 3, 3),
        ("backwards", 2, -2, 3, 10),
        ("base 0", -1, 1, 3, 0),
        ("base 1", -5, 5, 3, 1),
        ("negative base", -2, 2, 5, -2),
        ("overflow", 0, 400, 5, 10),
        ("nan", NAN, 1, 3, 2),
        ("infinite", 0, INF, 3, 2),
        ("infinite base", -1, 1, 3, INF),
    ):
        _one = lambda v, kind=_dtype: np.array([v], kind)  # noqa: E731
        CASES.append(
            Extreme(
                "%s %s" % (_dtype, _label),
                "logspace",
                {
                    "Start": _one(_start),
                    "Stop": _one(_stop),
                    "Num": _one(_num, "int32"),
                    "Base": _one(_base),
                },
                {"dtype": 5 if _dtype == "float32" else 6},
            )
        )
    for _mode, _gates, _count in (
        ("LSTM", 4, 2),
        ("GRU", 3, 1),
        ("RNN_TANH", 1, 1),
        ("RNN_RELU", 1, 1),
    ):
        _w = [np.linspace(-0.5, 0.5, _gates * 4).reshape(_gates * 2, 2).astype(_dtype)] * 2 + [
            np.zeros(_gates * 2, _dtype)
        ] * 2
        for _label, _first in (
            ("zeros", [0.0, -0.0]),
            ("bounds", [40.0, -40.0]),
            ("far", [1e4, -1e4]),
            ("infinite", [INF, 1]),
            ("nan", [NAN, 1]),
        ):
            _x = np.array([[_first], [[0.5, -0.25]]], _dtype)
            CASES.append(
                Extreme(
                    "%s %s, %s" % (_dtype, _label, _mode),
                    "rnn",
                    {
                        "Input": _x,
                        "PreState": [np.full((1, 1, 2), 0.5, _dtype)] * _count,
                        "WeightList": _w,
                    },
                    {
                        "mode": _mode,
                        "is_bidirec": False,
                        "input_size": 2,
                        "hidden_size": 2,
                        "num_layers": 1,
                    },
                    ["Out", "State*%d" % _count],
                    grad=["Input", "PreState", "WeightList"],
                )
            )


def generated(label, scores, deltas, nms=0.5, **attrs):
    inputs = {
        "Scores": np.array(scores, "float32").reshape(1, 6, 1, 1),
        "BboxDeltas": np.array(deltas, "float32").reshape(1, 24, 1, 1),
        "ImShape": np.array([[16, 16]], "float32"),
        "Anchors": BOXES.reshape(1, 1, 6, 4),
        "Variances": np.ones((1, 1, 6, 4), "float32"),
    }
    attrs = dict(
        {
            "pre_nms_topN": 6,
            "post_nms_topN": 6,
            "nms_thresh": nms,
            "min_size": 1.0,
            "eta": 1.0,
            "pixel_offset": True,
        },
        **attrs,
    )
    return Extreme(
        label, "generate_proposals_v2", inputs, attrs, ["RpnRois", "RpnRoiProbs", "RpnRoisNum"]
    )


ZERO, FALLING = np.zeros(24), [6, 5, 4, 3, 2, 1]
CASES += [
    generated("equal scores", np.ones(6), ZERO),
    generated("equal scores, few", np.ones(6), ZERO, pre_nms_topN=3),
    generated("overlap at the bound", FALLING, ZERO, nms=0.25),
    generated("growth beyond the bound", FALLING, np.full(24, 50.0)),
    generated("infinite scores", [INF, 1, -INF, 2, INF, 0], ZERO),
    generated("edges as lines", FALLING, ZERO, pixel_offset=False),
    generated("nothing large enough", FALLING, ZERO, min_size=99.0),
    generated("shrunk to nothing", FALLING, np.full(24, -1e4)),
]


def kept(label, boxes, scores, **attrs):
    inputs = {
        "BBoxes": np.array(boxes, "float32")[None],
        "Scores": np.array(scores, "float32")[None],
    }
    attrs = dict(
        {
            "score_threshold": 0.1,
            "nms_top_k": -1,
            "keep_top_k": -1,
            "nms_threshold": 0.5,
            "background_label": -1,
        },
        **attrs,
    )
    return Extreme(label, "multiclass_nms3", inputs, attrs, ["Out", "Index", "NmsRoisNum"])


SAME, APART = [[0, 0, 1, 1]] * 4, [[0, 0, 1, 1], [2, 0, 3, 1], [0, 2, 1, 3], [2, 2, 3, 3]]
EMPTY, HALF = (
    [[1, 1, 1, 1], [1, 1, 1, 1], [2, 2, 1, 1], [0, 0, 1, 1]],
    [[0, 0, 2, 1], [0, 0, 1, 1], [5, 0, 7, 1], [6, 0, 7, 1]],
)
CASES += [
    kept("equal scores, apart", APART, [[0.5] * 4, [0.5] * 4]),
    kept("equal scores, few", APART, [[0.5] * 4, [0.5] * 4], keep_top_k=3),
    kept("equal scores, few of each", APART, [[0.5] * 4, [0.5] * 4], nms_top_k=2),
    kept("equal boxes", SAME, [[0.4, 0.5, 0.5, 0.3]] * 2),
    kept("overlap at the bound", HALF, [[0.9, 0.8, 0.7, 0.6]] * 2),
    kept("empty and reversed", EMPTY, [[0.9, 0.8, 0.7, 0.6]] * 2),
    kept("score at the bound", APART, [[0.1, 0.1, 0.2, 0.05]] * 2),
    kept("infinite scores", APART, [[INF, -INF, 1, 0]] * 2),
    kept("none", APART, [[0.0] * 4] * 2),
    kept("background alone", APART, [[0.5] * 4], background_label=0),
]
