"""Ops of click-through models, hashes and trees: counts below -1, codes at their ends, ids that
stand for nothing.
"""

import numpy as np

from ..case import Extreme

NAN, INF = np.nan, np.inf
COUNTS = [
    [0, 0, 1],
    [-0.0, 1, 2],
    [-1, 0, 3],
    [0, -1, NAN],
    [-2, 5, 0],
    [INF, INF, 1],
    [NAN, 1, -0.0],
    [3e38, 1e-30, INF],
    [1e-8, 7, 1],
]
CASES = []
for dtype in ("float32", "float64"):
    x = np.array(COUNTS, dtype)
    for use in (True, False):
        ct = {"Y": np.resize([1.0, -2.0, 0.5, INF, NAN], x.size if use else len(x))}
        inputs = {"X": x, "CVM": np.resize(np.array([0, 1, NAN, INF, -3], dtype), (len(x), 2))}
        CASES.append(
            Extreme(
                dtype + ("" if use else " without"),
                "cvm",
                inputs,
                {"use_cvm": use},
                ["Y"],
                ["X"],
                cotangents=ct,
            )
        )


def table():
    codes = np.array([[0, 255, 128, 127], [1, 254, 0, 0]] * 3, "uint8")
    ends = np.array([[0, 0], [-1, 1], [1, -1], [3e38, -3e38], [NAN, 1], [0, INF]], "float32")
    return np.concatenate([ends, codes.view("float32")], 1)


CASES += [
    Extreme("float32", "lookup_table_dequant", {"W": table(), "Ids": np.arange(6).reshape(6, 1)}),
    Extreme(
        "float32 padding",
        "lookup_table_dequant",
        {"W": table(), "Ids": np.array([[[4], [0]], [[4], [1]]])},
        {"padding_idx": 4},
    ),
]
for dtype in ("int32", "int64"):
    info = np.iinfo(dtype)
    x = np.array([[0, 0], [-1, -1], [info.min, info.max], [1, 0], [0, 1]], dtype)
    CASES += [Extreme(dtype, "hash", {"X": x}, {"num_hash": 3, "mod_by": 2**31 - 1})]

TREE = [[0, 0, 0, 0, 0], [0, 0, 0, 2, 0], [0, 1, 1, 0, 3], [5, 1, 1, 0, 0], [7, 2, 2, 3, 1]]
CASES.append(
    Extreme(
        "int32",
        "tdm_child",
        {"X": np.array([[0], [1], [2], [3], [4]], "int32"), "TreeInfo": np.array(TREE, "int32")},
        {"child_nums": 2},
        ["Child", "LeafMask"],
    )
)
ONE = np.array([1], "float32")
for label, x in (
    ("float32 zeros", [0, -0.0, 0]),
    ("float32 at the bound", [3, 4, 0]),
    ("float32 special", [INF, 1, NAN]),
):
    inputs = {"X": np.array(x, "float32"), "current_step": ONE}
    CASES.append(
        Extreme(label, "dgc_clip_by_norm", inputs, {"max_norm": 5.0, "rampup_begin_step": 0.0})
    )
for label, step, begin in (("float32 before", 0.5, 1.0), ("float32 from", 1.5, 1.5)):
    grad = np.array([0, -0.0, INF, NAN, 3e38, 1e-30], "float32")
    inputs = {
        "Param": np.ones(6, "float32"),
        "Grad": grad,
        "Velocity": np.ones(6, "float32"),
        "LearningRate": ONE,
        "current_step": np.array([step], "float32"),
        "nranks": np.array([2], "float32"),
    }
    CASES.append(
        Extreme(
            label,
            "dgc_momentum",
            inputs,
            {"mu": 0.5, "rampup_begin_step": begin},
            ["Grad_out", "ParamOut", "VelocityOut"],
            inplace={"Grad_out": "Grad", "ParamOut": "Param", "VelocityOut": "Velocity"},
        )
    )
