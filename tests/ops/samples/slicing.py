"""Boxes out of tensors, and borders around them."""

import numpy as np

from ..sample import Sample, f32, ints


def i32(*values):
    return np.array(values, "int32")


def cut(op, x, inputs=None, grad=True, **attrs):
    return Sample(
        op, dict({"Input": x}, **(inputs or {})), attrs, ["Out"], grad=["Input"] if grad else None
    )


def slices():
    yield cut("slice", f32(4, 5), axes=[0], starts=[1], ends=[3])
    yield cut("slice", f32(4, 5), axes=[0, 1], starts=[-3, 0], ends=[-1, 100])
    yield cut("slice", f32(4, 5), axes=[1], starts=[-100], ends=[2])
    yield cut("slice", f32(4, 5, 2), axes=[0, 2], starts=[2, 1], ends=[3, 2], decrease_axis=[0, 2])
    yield cut("slice", f32(4, 5), axes=[0, 1], starts=[2, 1], ends=[3, 2], decrease_axis=[0, 1])
    yield cut("slice", f32(4, 5), axes=[0], starts=[-1], ends=[10000000], decrease_axis=[0])
    yield cut("slice", ints(4, 5, high=9), grad=False, axes=[1], starts=[1], ends=[4])


def slices_by_tensors():
    flags = {"axes": [0, 1], "infer_flags": [-1, -1]}
    yield cut(
        "slice",
        f32(4, 5),
        {"StartsTensor": i32(1, 0), "EndsTensor": i32(3, 4)},
        starts=[-1, -1],
        ends=[-1, -1],
        **flags,
    )
    yield cut(
        "slice",
        f32(4, 5),
        {"StartsTensorList": [i32(1), i32(0)], "EndsTensorList": [i32(3), i32(-1)]},
        starts=[-1, -1],
        ends=[-1, -1],
        **flags,
    )
    yield cut(
        "slice",
        f32(4, 5),
        {"StartsTensorList": [i32(-1)], "EndsTensorList": [i32(0)]},
        axes=[0],
        starts=[-1],
        ends=[-1],
        infer_flags=[-1],
        decrease_axis=[0],
    )
    yield cut(
        "slice",
        f32(4, 5),
        {"StartsTensorList": [i32(2)], "EndsTensorList": [i32(3)]},
        axes=[0],
        starts=[-1],
        ends=[-1],
        infer_flags=[-1],
        decrease_axis=[0],
    )


def strided():
    op = "strided_slice"
    for x, start, end, stride in (
        (7, 1, 6, 2),
        (7, 0, 7, 3),
        (7, -5, -1, 2),
        (7, 0, 100, 2),
        (7, 6, 0, -1),
        (7, 5, 1, -2),
        (7, 6, 0, -3),
        (7, 6, 1, -2),
        (8, 7, 0, -3),
        (7, -1, -5, -1),
        (7, -2, -7, -2),
        (5, 4, -1, -1),
    ):
        yield cut(
            op, f32(x, 2), axes=[0], starts=[start], ends=[end], strides=[stride], infer_flags=[1]
        )
    yield cut(
        op, f32(4, 6), axes=[0, 1], starts=[1, 5], ends=[3, 0], strides=[1, -2], infer_flags=[1, 1]
    )


def strided_otherwise():
    op = "strided_slice"
    # strided_slice_grad fails in 1.8.5 where decrease_axis is given
    yield cut(
        op,
        f32(4, 6),
        grad=False,
        axes=[0, 1],
        starts=[1, 1],
        ends=[2, 6],
        strides=[1, 2],
        infer_flags=[1, 1],
        decrease_axis=[0],
    )
    yield cut(
        op,
        f32(4, 6),
        {"StartsTensorList": [i32(1), i32(0)]},
        axes=[0, 1],
        starts=[-1, -1],
        ends=[3, 6],
        strides=[1, 2],
        infer_flags=[-1, -1],
    )
    yield cut(
        op,
        f32(4, 6),
        {"StartsTensor": i32(1, 0), "EndsTensor": i32(3, 5), "StridesTensor": i32(1, 2)},
        axes=[0, 1],
        starts=[-1, -1],
        ends=[-1, -1],
        strides=[-1, -1],
        infer_flags=[-1, -1],
    )


def crops():
    def box(op, x, inputs=None, **attrs):
        return Sample(op, dict({"X": x}, **(inputs or {})), attrs, ["Out"], grad=["X"])

    yield box("crop", f32(4, 5), offsets=[1, 2], shape=[2, 3])
    yield box("crop", f32(4, 5), offsets=[0, 2], shape=[-1, 3])
    yield box("crop", f32(4, 5), {"Y": f32(3, 2)}, offsets=[1, 1])
    yield box("crop", f32(4, 5), {"Y": f32(3, 2), "Offsets": i32(1, 3)})
    yield box("crop_tensor", f32(4, 5), offsets=[1, 2], shape=[2, 3])
    yield box("crop_tensor", f32(4, 5), offsets=[1, 2], shape=[2, -1])
    yield box("crop_tensor", f32(4, 5), {"Shape": i32(2, 2)}, offsets=[1, 2])
    yield box("crop_tensor", f32(4, 5), {"Offsets": i32(2, 1)}, shape=[2, 2])
    yield box(
        "crop_tensor",
        f32(4, 5),
        {"ShapeTensor": [i32(2), i32(3)], "OffsetsTensor": [i32(0), i32(2)]},
        shape=[0, 0],
    )
    yield box("crop_tensor", f32(4, 5), {"OffsetsTensor": [i32(1), i32(2)]}, shape=[2, 3])


def pads():
    def pad(op, x, inputs=None, **attrs):
        return Sample(op, dict({"X": x}, **(inputs or {})), attrs, ["Out"], grad=["X"])

    yield pad("pad", f32(2, 3), paddings=[1, 0, 2, 1])
    yield pad("pad", f32(2, 3, 2), paddings=[0, 0, 0, 1, 1, 1], pad_value=0.7)
    for mode in ("constant", "reflect", "edge"):
        yield pad("pad2d", f32(1, 2, 3, 4), paddings=[1, 2, 0, 3], mode=mode, pad_value=0.3)
        yield pad("pad2d", f32(2, 4, 3, 2), paddings=[2, 1, 1, 2], mode=mode, data_format="NHWC")
    yield pad("pad2d", f32(1, 1, 3, 3), {"Paddings": i32(1, 0, 0, 2)}, paddings=[0, 0, 0, 0])
    yield Sample(
        "pad_constant_like",
        {"X": f32(3, 4), "Y": f32(2, 3)},
        {"pad_value": 0.5},
        ["Out"],
        grad=["Y"],
    )
    yield Sample(
        "pad_constant_like", {"X": f32(3, 2, 4), "Y": f32(1, 2, 3)}, {}, ["Out"], grad=["Y"]
    )


def partials():
    for op in ("partial_concat", "partial_sum"):
        for attrs in (
            {},
            {"start_index": 1, "length": 2},
            {"start_index": -2, "length": -1},
            {"start_index": -3, "length": 2},
        ):
            yield Sample(
                op,
                {"X": [f32(2, 4), f32(2, 4), f32(2, 4)]},
                attrs,
                ["Out"],
                grad=["X"],
                paddle=attrs.get("start_index", 0) >= 0,
                note="1.8.5 reads outside its own memory for a negative start",
            )
    yield Sample(
        "partial_sum", {"X": [f32(2, 4)]}, {"start_index": 1, "length": 2}, ["Out"], grad=["X"]
    )


SAMPLES = [
    *slices(),
    *slices_by_tensors(),
    *strided(),
    *strided_otherwise(),
    *crops(),
    *pads(),
    *partials(),
]

# The first axis is left alone: the rows of ragged values stay rows.
SAMPLES.append(
    Sample(
        "strided_slice",
        {"Input": f32(3, 5)},
        {"axes": [1], "starts": [3], "ends": [0], "strides": [-2], "infer_flags": [1]},
        ["Out"],
        grad=["Input"],
    )
)
