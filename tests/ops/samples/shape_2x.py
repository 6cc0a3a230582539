"""Shapes in Paddle 2 and 3."""

import numpy as np

from ..sample import LATER, Sample, f32, ints


def i32(*values):
    return np.array(values, "int32")


def expand(x, shape, grad=True, **inputs):
    return Sample(
        "expand_v2",
        dict({"X": x}, **inputs),
        {"shape": shape},
        ["Out"],
        ["X"] if grad else None,
        paddle=LATER,
    )


def tile(x, times, grad=True, **inputs):
    return Sample(
        "tile",
        dict({"X": x}, **inputs),
        {"repeat_times": times},
        ["Out"],
        ["X"] if grad else None,
        paddle=LATER,
    )


def pad(mode="constant", last=False, pads=(1, 0, 2, 1, 0, 1), value=0.5):
    x = f32(1, 3, 3, 2, 2) if last else f32(1, 2, 3, 3, 2)
    attrs = {
        "paddings": list(pads),
        "mode": mode,
        "value": value,
        "data_format": "NDHWC" if last else "NCDHW",
    }
    return Sample("pad3d", {"X": x}, attrs, ["Out"], ["X"], paddle=LATER)


def along(op, index, axis, reduce=None):
    if op == "take_along_axis":
        return Sample(
            op,
            {"Input": f32(3, 4), "Index": index},
            {"Axis": axis},
            ["Result"],
            ["Input"],
            paddle=LATER,
        )
    inputs = {"Input": f32(3, 4), "Index": index, "Value": f32(*index.shape)}
    return Sample(
        op,
        inputs,
        {"Axis": axis, "Reduce": reduce},
        ["Result"],
        ["Input", "Value"] if reduce in ("assign", "add") else None,
        paddle=LATER,
    )


def added(index, value, axis):
    inputs = {"X": f32(3, 4), "Index": index, "AddValue": value}
    return Sample("index_add", inputs, {"axis": axis}, ["Out"], ["X", "AddValue"], paddle=LATER)


def one(op, x, attrs, slot="X", grad=True):
    return Sample(op, {slot: x}, attrs, ["Out"], [slot] if grad else None, paddle=LATER)


SAMPLES = [
    expand(f32(1, 3), [2, -1]),
    expand(f32(3, 1), [2, 3, 4]),
    expand(f32(1, 3), [1, 3], False, Shape=i32(2, 3)),
    expand(ints(3, high=5), [2, 3], False),
    Sample(
        "expand_as_v2", {"X": f32(1, 3)}, {"target_shape": [2, 3]}, ["Out"], ["X"], paddle=LATER
    ),
    tile(f32(2, 3), [2, 1]),
    tile(f32(3), [2, 2]),
    tile(f32(2, 1, 3), [2]),
    tile(f32(2), [1], False, RepeatTimes=i32(3)),
    pad(),
    pad(last=True),
    pad("reflect", pads=(1, 0, 2, 1, 0, 1)),
    pad("replicate"),
    pad("circular", last=True, pads=(1, 1, 1, 0, 2, 1)),
    one("diag_v2", f32(3), {"offset": 1, "padding_value": 0.5}),
    one("diag_v2", f32(3, 4), {"offset": -1}),
    one("diag_v2", f32(2), {}),
    one("diagonal", f32(3, 4), {"offset": 1}, "Input"),
    one("diagonal", f32(2, 3, 4), {"axis1": 1, "axis2": 2}, "Input"),
    along("take_along_axis", ints(3, 2, high=4), 1),
    along("take_along_axis", ints(2, 4, high=3), 0),
    along("put_along_axis", np.array([[0, 2], [1, 3], [3, 0]], "int64"), 1, "assign"),
    along("put_along_axis", np.array([[0, 2], [1, 1], [3, 0]], "int64"), 1, "add"),
    along("put_along_axis", np.array([[0, 2], [1, 1], [3, 0]], "int64"), 1, "mul"),
    added(i32(0, 2, 0), f32(3, 4), 0),
    added(i32(3, 1), f32(3, 2), 1),
    one("fill_any", f32(2, 3), {"value": 1.5}),
    one("pixel_unshuffle", f32(1, 2, 4, 6), {"downscale_factor": 2}),
    one("pixel_unshuffle", f32(1, 4, 2, 3), {"downscale_factor": 2, "data_format": "NHWC"}),
    one("channel_shuffle", f32(1, 6, 2, 2), {"groups": 3}),
    one("channel_shuffle", f32(1, 2, 2, 4), {"groups": 2, "data_format": "NHWC"}),
    one("repeat_interleave", f32(2, 3), {"Repeats": 2, "dim": 1}),
    expand(f32(1, 3), [2, 3], False, expand_shapes_tensor=[i32(2), i32(3)]),
    tile(f32(2, 3), [2, 1], False, repeat_times_tensor=[i32(2), i32(1)]),
    Sample(
        "pad3d",
        {"X": f32(1, 1, 2, 2, 2), "Paddings": i32(1, 0, 0, 1, 0, 0)},
        {"paddings": [0] * 6},
        ["Out"],
        paddle=LATER,
    ),
]
