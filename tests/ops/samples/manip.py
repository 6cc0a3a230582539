"""Reshaping, joining, splitting, repeating and casting."""

import numpy as np

from ..sample import LATER, Sample, bools, f32, f64, ints


def i32(*values):
    return np.array(values, "int32")


RANK = {"unknown": "the output's rank, or the number of outputs, depends on the first dimension"}


def one(op, x, outputs=("Out",), grad=True, slot="X", inputs=None, skip=None, **attrs):
    return Sample(
        op,
        dict({slot: x}, **(inputs or {})),
        attrs,
        outputs=list(outputs),
        grad=[slot] if grad else None,
        skip=skip,
    )


def reshapes():
    for op in ("reshape", "reshape2"):
        yield one(op, f32(2, 3, 4), shape=[6, 4])
        yield one(op, f32(2, 3, 4), shape=[-1, 6])
        yield one(op, f32(2, 3, 4), shape=[0, -1])
        yield one(op, f32(2, 3, 4), shape=[0, 0, 2, 2])
        yield one(op, f32(2, 3, 4), shape=[24])
        yield one(op, f32(2, 3, 4), shape=[-1, 8], inputs={"Shape": i32(3, -1)})
        # reshape_grad cannot be made for a list of shape tensors
        yield one(
            op,
            f32(2, 3, 4),
            grad=op == "reshape2",
            shape=[-1, 4],
            inputs={"ShapeTensor": [i32(6), i32(4)]},
        )
        yield one(
            op,
            f32(2, 3, 4),
            inputs={"Shape": i32(0, 12)},
            skip={"unknown": "it is the length of Shape that gives the rank"},
        )
        yield one(op, ints(4, 3, high=9), shape=[3, 4], grad=False)
    yield Sample(
        "reshape2",
        {"X": f32(2, 3, 4)},
        {"shape": [6, 4]},
        ["Out", "XShape"],
        paddle=False,
        note="XShape holds nothing that could be recorded",
    )


def transposes():
    for op in ("transpose", "transpose2"):
        yield one(op, f32(2, 3), axis=[1, 0])
        yield one(op, f32(2, 3, 4, 2), axis=[2, 0, 3, 1])
        yield one(op, f64(2, 3, 4), axis=[0, 2, 1])
    yield one("transpose2", ints(2, 3, high=9, dtype="int32"), axis=[1, 0], grad=False)


def squeezes():
    for op in ("squeeze", "squeeze2"):
        yield one(op, f32(1, 3, 1, 2), axes=[0])
        yield one(op, f32(1, 3, 1, 2), axes=[0, -2])
        yield one(op, f32(1, 3, 1, 2), skip=RANK)
        yield one(op, f32(2, 3), axes=[])
    for op in ("unsqueeze", "unsqueeze2"):
        yield one(op, f32(3, 2), axes=[0])
        yield one(op, f32(3, 2), axes=[1, 3])
        yield one(op, f32(3, 2), axes=[-1])
        yield one(op, f32(3, 2), axes=[-1, 0, 0])
        yield one(op, f32(3, 2), axes=[0, -2])
        yield one(op, f32(3, 2), inputs={"AxesTensor": i32(0, 2)})
        yield one(op, f32(3, 2), inputs={"AxesTensorList": [i32(1), i32(-1)]})
    for op in ("flatten", "flatten2"):
        for axis in (0, 1, 2, 3):
            yield one(op, f32(2, 3, 4), axis=axis)


def joins():
    def many(op, xs, out="Out", grad=True, **attrs):
        return Sample(op, {"X": xs}, attrs, [out], grad=["X"] if grad else None)

    yield many("concat", [f32(2, 3), f32(1, 3), f32(3, 3)])
    yield many("concat", [f32(2, 3, 1), f32(2, 3, 4)], axis=-1)
    yield many("concat", [f32(2, 3), f32(2, 2)], axis=1)
    yield many("concat", [f32(2, 3)], axis=1)
    yield many("concat", [ints(2, 3, high=9), ints(2, 1, high=9)], axis=1, grad=False)
    yield Sample(
        "concat",
        {"X": [f32(2, 3), f32(2, 2)], "AxisTensor": i32(1)},
        {"axis": 0},
        ["Out"],
        grad=["X"],
    )
    yield many("stack", [f32(2, 3), f32(2, 3), f32(2, 3)], "Y")
    yield many("stack", [f32(2, 3), f32(2, 3)], "Y", axis=1)
    yield many("stack", [f32(2, 3), f32(2, 3)], "Y", axis=-1)
    yield many("stack", [f32(3)], "Y", axis=-2)
    yield many("stack", [ints(3, high=4), ints(3, high=4)], "Y", grad=False)


def splits():
    def part(n, x, inputs=None, **attrs):
        return one("split", x, [f"Out*{n}"], inputs=inputs, **attrs)

    yield part(2, f32(4, 3), num=2)
    yield part(3, f32(2, 6), num=3, axis=1)
    yield part(3, f32(2, 6), sections=[1, 3, 2], axis=1)
    for how in ({"sections": [1, 3, 2]}, {"num": 3}):
        yield Sample(
            "split",
            {"X": f32(2, 6)},
            dict(how, axis=-1),
            ["Out*3"],
            grad=["X"],
            paddle=False,
            note="1.8.5 writes outside its own memory for a negative axis",
        )
    yield part(3, f32(2, 6), sections=[1, -1, 2], axis=1)
    yield part(2, f32(2, 6), num=2, axis=0, inputs={"AxisTensor": i32(1)})
    yield part(
        2, f32(2, 6), sections=[-1, -1], axis=1, inputs={"SectionsTensorList": [i32(2), i32(4)]}
    )
    yield one("unstack", f32(3, 2), ["Y*3"], num=3)
    yield one("unstack", f32(3, 2), ["Y*2"], num=2, axis=-1)
    yield one("unbind", f32(3, 2), ["Out*3"], skip=RANK)
    yield one("unbind", f32(3, 2), ["Out*2"], axis=1)
    yield one("unbind", f32(3, 2), ["Out*2"], axis=-1)


def repeats():
    yield one("expand", f32(2, 3), expand_times=[2, 3])
    yield one("expand", f32(1, 3, 2), expand_times=[4, 1, 2])
    yield one("expand", f32(3), expand_times=[2])
    yield one("expand", f32(2, 3), inputs={"ExpandTimes": i32(1, 2)})
    yield one(
        "expand", f32(2, 3), expand_times=[-1, -1], inputs={"expand_times_tensor": [i32(3), i32(2)]}
    )
    yield one("expand", ints(2, high=9), expand_times=[3], grad=False)
    yield one("expand_as", f32(2, 1), inputs={"target_tensor": f32(4, 3)})
    yield one("expand_as", f32(2, 3), inputs={"target_tensor": f32(2, 3)})


def casts():
    number = {
        "bool": 0,
        "int32": 2,
        "int64": 3,
        "float32": 5,
        "float64": 6,
        "uint8": 20,
        "int8": 21,
    }
    values = np.array([-2.7, -0.5, 0.0, 0.4, 1.0, 2.9], "float32")
    for name in ("float32", "float64", "int32", "int64", "bool"):
        yield one("cast", values, grad=name.startswith("float"), in_dtype=5, out_dtype=number[name])
    yield one("cast", bools(5), grad=False, in_dtype=0, out_dtype=5)
    yield one("cast", ints(2, 3, low=-9, high=9), grad=False, in_dtype=3, out_dtype=5)
    yield one("cast", np.array([2**40 + 5, -3], "int64"), grad=False, in_dtype=3, out_dtype=2)
    yield one("cast", ints(4, high=255, dtype="int32"), grad=False, in_dtype=2, out_dtype=20)
    yield one("assign", f32(2, 3))
    yield one("assign", ints(3, high=9), grad=False)
    yield one("shape", f32(2, 3, 4), grad=False, slot="Input")
    yield one("shape", ints(5, high=9), grad=False, slot="Input")
    yield one("size", f32(2, 3, 4), grad=False, slot="Input")


SAMPLES = [*reshapes(), *transposes(), *squeezes(), *joins(), *splits(), *repeats(), *casts()]

for _attrs in (
    {"start_axis": 1, "stop_axis": 2},
    {"start_axis": 0, "stop_axis": -1},
    {"start_axis": -2, "stop_axis": -1},
):
    SAMPLES.append(
        Sample(
            "flatten_contiguous_range",
            {"X": f32(2, 3, 4, 2)},
            _attrs,
            ["Out"],
            grad=["X"],
            paddle=LATER,
        )
    )

# What leaves the first axis alone: the rows of ragged values stay rows.
SAMPLES += [
    Sample("squeeze", {"X": f32(3, 1, 2)}, {"axes": [1]}, ["Out"], grad=["X"]),
    Sample("squeeze2", {"X": f32(3, 1, 2)}, {"axes": [-2]}, ["Out"], grad=["X"]),
    Sample("expand", {"X": f32(3, 2)}, {"expand_times": [1, 2]}, ["Out"], grad=["X"]),
]


def with_lod(first, second, axis, **more):
    """LoDs are joined on axis 0; on others the first one's is Out's."""
    rows = [sum(lod[-1]) for lod in (first, second)]
    return Sample(
        "concat",
        {"X": [f32(rows[0], 2), f32(rows[1], 2)]},
        {"axis": axis},
        ["Out"],
        grad=["X"],
        lod={"X": [first, second]},
        **more,
    )


SAMPLES += [
    with_lod([[1, 2]], [[2, 0, 2]], 0),
    with_lod([[2], [1, 2]], [[1, 1], [2, 2]], 0),
    with_lod([[1, 2]], [[2, 2]], -2),
    with_lod([[1, 2]], [[1, 2]], 1),
]
