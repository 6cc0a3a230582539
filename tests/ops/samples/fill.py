"""Constants, ranges and tensors shaped like others."""

import numpy as np

from ..sample import Sample, f32, f64, ints

FP32, FP64, INT32, INT64, BOOL = 5, 6, 2, 3, 0


def i32(*values):
    return np.array(values, "int32")


def fill(op, attrs, **inputs):
    return Sample(op, inputs, attrs, ["Out"])


def constants():
    yield fill("fill_constant", {"shape": [2, 3], "value": 1.5})
    yield fill("fill_constant", {"shape": [1], "value": -2.9, "dtype": INT32})
    yield fill("fill_constant", {"shape": [2], "value": 1.0, "dtype": BOOL})
    yield fill("fill_constant", {"shape": [1], "str_value": "9007199254740993", "dtype": INT64})
    yield fill("fill_constant", {"shape": [1], "str_value": "-7", "dtype": INT64})
    yield fill("fill_constant", {"shape": [1], "str_value": "0.1", "dtype": FP64})
    yield fill("fill_constant", {"shape": [1], "value": 0.1, "dtype": FP64})
    yield fill("fill_constant", {"shape": [2], "str_value": "0.1", "value": 3.0})
    for text in ("inf", "-inf", "nan"):
        yield fill("fill_constant", {"shape": [2], "str_value": text})
    yield fill("fill_constant", {"shape": [1], "str_value": "3.7", "dtype": INT32})
    yield fill("fill_constant", {"shape": [1], "str_value": "3.7", "dtype": INT64})
    yield fill("fill_constant", {"shape": [10, 10], "value": 2.0})
    yield Sample(
        "fill_constant",
        {"ShapeTensor": i32(2, 3)},
        {"value": 2.0},
        ["Out"],
        skip={"unknown": "the length of ShapeTensor is the output's rank"},
    )
    yield fill("fill_constant", {"shape": [-1, 2], "value": 2.0}, ShapeTensorList=[i32(3), i32(2)])
    yield fill(
        "fill_constant", {"shape": [2, 2], "value": 2.0}, ValueTensor=np.array([7.5], "float32")
    )
    yield fill(
        "fill_constant", {"shape": [2], "dtype": INT64}, ValueTensor=np.array([2**53 + 1], "int64")
    )
    yield fill(
        "assign_value", {"shape": [2, 2], "dtype": FP32, "fp32_values": [1.0, -2.5, 0.1, 4.0]}
    )
    yield fill("assign_value", {"shape": [3], "dtype": INT32, "int32_values": [1, -2, 3]})
    yield fill("assign_value", {"shape": [1, 2], "dtype": INT64, "int64_values": [2**40, -3]})
    yield fill("assign_value", {"shape": [2], "dtype": BOOL, "bool_values": [1, 0]})
    yield fill("fill", {"shape": [2, 2], "value": [1.0, 2.5, -3.0, 0.1]})
    yield fill("fill", {"shape": [3], "value": [1.0, 2.5, -3.7], "dtype": INT64})


def alike():
    op = "fill_constant_batch_size_like"
    yield fill(op, {"shape": [-1, 4], "value": 0.5}, Input=f32(3, 2))
    yield fill(
        op,
        {
            "shape": [2, -1, 4],
            "value": 2.0,
            "dtype": INT64,
            "input_dim_idx": 1,
            "output_dim_idx": 1,
        },
        Input=f32(3, 5),
    )
    yield fill(
        op, {"shape": [-1, 2], "str_value": "9007199254740993", "dtype": INT64}, Input=f32(2, 2)
    )
    yield fill("fill_any_like", {"value": 2.5}, X=f32(2, 3))
    yield fill("fill_any_like", {"value": 2.5}, X=ints(3, high=3))
    yield fill("fill_any_like", {"value": 3.0, "dtype": INT64}, X=f32(2, 3))
    yield fill("fill_zeros_like", {}, X=f64(2, 3))
    yield fill("fill_zeros_like", {}, X=ints(2, high=3))
    yield fill("fill_zeros_like2", {"dtype": FP32}, X=f32(2, 3))
    yield fill("fill_zeros_like2", {"dtype": INT64}, X=ints(2, 3, high=3))


def ranges():
    for start, end, step, dtype in (
        (0, 5, 1, "int64"),
        (2, 11, 3, "int32"),
        (5, -4, -2, "int64"),
        (0, 1, 0.1, "float32"),
        (0.5, 20, 0.7, "float32"),
        (1, 0, -0.3, "float64"),
        (0, 100, 1, "int64"),
    ):
        bounds = [np.array([v], dtype) for v in (start, end, step)]
        yield fill("range", {}, Start=bounds[0], End=bounds[1], Step=bounds[2])
    for start, stop, num, dtype in (
        (0, 1, 7, "float32"),
        (-3, 8, 4, "float64"),
        (2, 9, 1, "float32"),
        (5, 0, 11, "float32"),
        (0.1, 0.9, 23, "float32"),
    ):
        yield fill(
            "linspace",
            {},
            Start=np.array([start], dtype),
            Stop=np.array([stop], dtype),
            Num=i32(num),
        )
    yield fill("eye", {"num_rows": 3})
    yield fill("eye", {"num_rows": 2, "num_columns": 4, "dtype": INT64})
    yield fill("eye", {"num_rows": 4, "num_columns": 2, "dtype": FP64})
    yield Sample(
        "fake_init",
        {},
        {"shape": [2, 3]},
        ["Out"],
        paddle=False,
        note="leaves its output uninitialised",
    )


SAMPLES = [*constants(), *alike(), *ranges()]
