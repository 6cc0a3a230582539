"""Op types of Paddle 2 and 3 beside the families of *_2x: one ordinary sample each, and one at
ties, kinks or special values.
"""

import numpy as np

from ..sample import LATER, Sample, away_from_zero, bools, distinct, f32, ints, positive

RECORDED = "the gradient is Paddle's, and is recorded"


def one(op, x, attrs=None, grad=True, slot="X", out="Out", **more):
    return Sample(op, {slot: x}, attrs, [out], [slot] if grad else None, paddle=LATER, **more)


def low(op, x, attrs=None, grad=True, **more):
    """an op whose slots Paddle writes in small letters"""
    return one(op, x, attrs, grad, "x", "out", **more)


def pair(op, x, y, attrs=None, grad=("x", "y"), outs=("out",), names=("x", "y"), **more):
    return Sample(
        op, {names[0]: x, names[1]: y}, attrs, list(outs), list(grad) or None, paddle=LATER, **more
    )


def several(op, inputs, attrs=None, outs=("Out",), grad=(), **more):
    return Sample(op, inputs, attrs, list(outs), list(grad) or None, paddle=LATER, **more)


def symmetric(*shape):
    x = f32(*shape)
    return (x + np.swapaxes(x, -1, -2)).astype("float32")


def well(*shape):
    """matrices that are far from singular"""
    return (f32(*shape) + 2 * np.eye(shape[-1])).astype("float32")


ODD = np.array([0, -0.0, np.nan, np.inf, -np.inf, 1.5], "float32")
SIGNS = np.array([-1, 1, 1, -1, np.nan, -0.0], "float32")
TIES = np.array([[1, 3, 3], [2, 3, 0]], "float32")
SLICE = {
    "axes": [0, 1],
    "starts": [1, 0],
    "ends": [3, 4],
    "steps": [1, 2],
    "shape": [1],
    "values": [2.5],
}
LAST = {
    "axes": [1],
    "starts": [-1],
    "ends": [-100],
    "steps": [-2],
    "decrease_axes": [],
    "none_axes": [],
}
COMPLETE = dict(beta1=0.9, beta2=0.99, epsilon=1e-6, coeff=0.1, with_decay=True)
NUMBERS = np.array([1, 1, 2, 3, 3, 3, 1], "int64")
SAMPLES = [
    several("set_value", {"Input": f32(3, 4)}, SLICE, grad=("Input",)),
    several(
        "set_value",
        {"Input": f32(2, 5), "ValueTensor": f32(3)},
        LAST,
        grad=("Input", "ValueTensor"),
    ),
    several(
        "set_value",
        {"Input": f32(3, 4), "ValueTensor": f32(4)},
        {"axes": [0], "starts": [1], "ends": [2], "steps": [1], "decrease_axes": [0]},
        grad=("Input", "ValueTensor"),
    ),
    several(
        "index_put",
        {"x": f32(3, 4), "indices": [np.array([0, 2]), np.array([1, 3])], "value": f32(2)},
        {},
        ["out"],
        ("x", "value"),
    ),
    several(
        "index_put",
        {"x": f32(3, 2), "indices": [np.array([0, 0])], "value": f32(2, 2)},
        {"accumulate": True},
        ["out"],
        ("x", "value"),
    ),
    several(
        "masked_fill", {"x": f32(2, 3), "mask": bools(2, 3), "value": f32(1)}, {}, ["out"], ("x",)
    ),
    one("fill_diagonal", f32(4, 3), {"value": 2.0, "offset": 1}),
    one("fill_diagonal", f32(5, 2), {"value": 2.0, "wrap": True}),
    several(
        "fill_diagonal_tensor",
        {"X": f32(2, 3, 4), "Y": f32(3, 2)},
        {"dim1": 0, "dim2": 2, "offset": 1},
        grad=("X",),
    ),
    *(low(op, f32(4, lo=-3.0, hi=3.0)) for op in ("i0", "i0e", "i1", "i1e")),
    low("gammaln", positive(4)),
    low("polygamma", positive(4), {"n": 1}),
    low("i0", ODD, grad=False),
    low("i1e", ODD[:4], grad=False),
    pair("nextafter", ODD, np.array([1, -1, 1, 0, 0, 2], "float32"), grad=()),
    pair("copysign", f32(4), away_from_zero(4)),
    pair("copysign", ODD, SIGNS, skip={"numeric": "kinks"}),
    pair(
        "elementwise_heaviside",
        np.array([-1, 0, 2, 0], "float32"),
        f32(4),
        names=("X", "Y"),
        outs=("Out",),
        grad=("X", "Y"),
        skip={"numeric": "steps"},
    ),
    pair("bitwise_left_shift", ints(4, high=9), ints(4, high=3), grad=()),
    pair(
        "bitwise_right_shift",
        ints(4, low=-9, high=9, dtype="int32"),
        ints(4, high=3, dtype="int32"),
        {"is_arithmetic": False},
        grad=(),
    ),
    one("memcpy_d2h", f32(2), {"dst_place_type": 0}, False),
    one("memcpy_h2d", f32(2), {"dst_place_type": 0}, False),
    low("npu_identity", f32(2), {"format": -1}, False),
    one("identity_loss", f32(2, 3), {"reduction": 1}),
    Sample("broadcast_tensors", {"X": [f32(3, 1), f32(2)]}, {}, ["Out*2"], ["X"], paddle=LATER),
    several("reduce_as", {"x": f32(2, 3, 4), "target": f32(3, 1)}, {}, ["out"], ("x",)),
    several("inverse", {"Input": well(2, 3, 3)}, {}, ["Output"], ("Input",), tol=1e-4),
    one(
        "eigh",
        symmetric(3, 3),
        {"UPLO": "L"},
        out="Eigenvalues",
        skip={"numeric": "Paddle spreads it over both halves"},
    ),
    one("eigvalsh", symmetric(3, 3), {"UPLO": "U", "is_test": True}, False, out="Eigenvalues"),
    one("svd", f32(3, 2), {}, out="S"),
    one("qr", well(3, 3), {"mode": "reduced"}, out="R"),
    several("lu", {"X": well(3, 3)[::-1].copy()}, {"pivots": True}, ["Out", "Pivots", "Infos"]),
    several(
        "cholesky_solve",
        {"X": f32(3, 2), "Y": np.tril(well(3, 3))},
        {"upper": False},
        grad=("X", "Y"),
        skip={"numeric": RECORDED},
    ),
    one("slogdeterminant", well(2, 3, 3), slot="Input"),
    one("matrix_rank", np.array([[1, 2], [2, 4]], "float32"), {"use_default_tol": True}, False),
    several(
        "baddbmm",
        {"Input": f32(2, 2, 3), "X": f32(2, 2, 4), "Y": f32(2, 4, 3)},
        {"Alpha": 0.5, "Beta": 2.0},
        grad=("Input", "X", "Y"),
    ),
    several("einsum", {"Operands": [f32(2, 3, 4), f32(2, 4, 5)]}, {"equation": "bij,bjk->bki"}),
    Sample(
        "einsum",
        {"Operands": [f32(2, 3), f32(4, 3)]},
        {"equation": "ik,jk->ji"},
        ["Out"],
        ["Operands"],
        paddle=False,
        note="a gradient of several operands needs as many caches",
    ),
    several("einsum", {"Operands": [f32(3, 3)]}, {"equation": "ii->i"}, grad=("Operands",)),
    one("renorm", f32(3, 4), {"p": 2.0, "axis": 0, "max_norm": 1.0}),
    one("reduce_amax", TIES, {"dim": [1]}, skip={"numeric": "ties"}),
    one("reduce_amin", TIES, {"dim": [0, 1], "reduce_all": True}, skip={"numeric": "ties"}),
    several(
        "mode",
        {"X": np.array([[2, 1, 2, 1, 3], [1, 2, 3, 4, 5]], "float32")},
        {"axis": -1},
        ["Out", "Indices"],
        ("X",),
        skip={"numeric": "ties"},
    ),
    several(
        "nanmedian",
        {"X": np.array([[3, np.nan, 1, 2], [4, 1, 2, 8]], "float32")},
        {"axis": [1], "keepdim": False, "mode": "avg"},
        ["Out"],
        ("X",),
        skip={"numeric": "nan"},
    ),
    several(
        "nanmedian", {"X": distinct(2, 4)}, {"axis": [1], "keepdim": True, "mode": "min"}, ["Out"]
    ),
    one(
        "histogram",
        np.array([0, 0.2, 1, 2, -1, 0.5], "float32"),
        {"bins": 4, "min": 0.0, "max": 1.0},
        False,
    ),
    one("histogram", f32(6), {"bins": 3}, False),
    several("bincount", {"X": ints(6, high=4), "Weights": f32(6)}, {"minlength": 7}),
    one("bincount", ints(5, high=4), {}, False),
    several(
        "logspace",
        {
            "Start": np.array([0], "float32"),
            "Stop": np.array([2], "float32"),
            "Num": np.array([4], "int32"),
            "Base": np.array([3], "float32"),
        },
        {"dtype": 5},
    ),
    several(
        "masked_select",
        {"X": f32(2, 3), "Mask": np.array([[1, 0, 1], [0, 1, 1]], bool)},
        {},
        ["Y"],
        ("X",),
        rows={"Y": 4},
    ),
    several(
        "unique_consecutive",
        {"X": NUMBERS},
        {"return_inverse": True, "return_counts": True, "dtype": 3},
        ["Out", "Index", "Counts"],
    ),
    several(
        "segment_pool",
        {"X": f32(4, 2), "SegmentIds": np.array([0, 0, 2, 2])},
        {"pooltype": "MEAN"},
        grad=("X",),
    ),
    several(
        "segment_pool",
        {"X": TIES.T.copy(), "SegmentIds": np.array([0, 1, 1])},
        {"pooltype": "MAX"},
        grad=("X",),
        skip={"numeric": "ties"},
    ),
    several(
        "graph_send_recv",
        {"X": f32(4, 2), "Src_index": np.array([0, 1, 2, 0]), "Dst_index": np.array([1, 1, 0, 3])},
        {"reduce_op": "MEAN", "out_size": [0]},
        grad=("X",),
    ),
    several(
        "graph_send_recv",
        {"X": f32(3, 2), "Src_index": np.array([0, 1, 2, 0]), "Dst_index": np.array([1, 1, 0, 2])},
        {"reduce_op": "MAX", "out_size": [4]},
        grad=("X",),
    ),
    several(
        "graph_send_ue_recv",
        {
            "X": f32(3, 2),
            "Y": f32(4, 2),
            "Src_index": np.array([0, 1, 2, 0]),
            "Dst_index": np.array([1, 1, 0, 2]),
        },
        {"message_op": "MUL", "reduce_op": "SUM", "out_size": [0]},
        grad=("X", "Y"),
    ),
    several(
        "graph_send_uv",
        {
            "x": f32(3, 2),
            "y": f32(3, 2),
            "src_index": np.array([0, 2]),
            "dst_index": np.array([1, 1]),
        },
        {"message_op": "ADD"},
        ["out"],
        ("x", "y"),
    ),
    one(
        "fold",
        f32(1, 8, 4),
        {
            "output_sizes": [3, 3],
            "kernel_sizes": [2, 2],
            "strides": [1, 1],
            "paddings": [0, 0, 0, 0],
            "dilations": [1, 1],
        },
        out="Y",
    ),
    Sample(
        "rms_norm",
        {"x": f32(2, 4), "scale": f32(4)},
        {"normalized_shape": [4], "epsilon": 1e-6},
        ["y", "invvar"],
        ["x", "scale"],
        of=["y"],
        paddle=False,
        note="Paddle 3 has it for the GPU alone",
    ),
    several(
        "quantize_linear",
        {
            "X": np.array([[0.5, -1, 2], [0.25, 3, 0.1]], "float32"),
            "Scale": np.array([1.0], "float32"),
            "ZeroPoint": np.zeros(1, "float32"),
        },
        {"quant_axis": -1, "is_test": True},
        ["Y"],
    ),
    several(
        "quantize_linear",
        {"X": f32(2, 3), "Scale": positive(3), "ZeroPoint": np.zeros(3, "float32")},
        {"quant_axis": 1, "round_type": 1, "is_test": True},
        ["Y"],
    ),
    several(
        "dequantize_linear",
        {
            "X": ints(2, 3, low=-128, high=128, dtype="int8"),
            "Scale": positive(2),
            "ZeroPoint": np.zeros(2, "float32"),
        },
        {"quant_axis": 0},
        ["Y"],
    ),
    one("fake_quantize_dequantize_abs_max", f32(2, 3), {}, skip={"numeric": "steps"}),
    one(
        "fake_channel_wise_quantize_dequantize_abs_max",
        f32(2, 3),
        {"quant_axis": 1},
        skip={"numeric": "steps"},
    ),
    several(
        "adamw",
        {
            "Param": f32(3),
            "Grad": f32(3),
            "LearningRate": f32(1, lo=0.1, hi=0.2),
            "Moment1": f32(3),
            "Moment2": positive(3),
            "Beta1Pow": np.array([0.81], "float32"),
            "Beta2Pow": np.array([0.98], "float32"),
        },
        COMPLETE,
        ["ParamOut", "Moment1Out", "Moment2Out", "Beta1PowOut", "Beta2PowOut"],
    ),
    several(
        "merged_momentum",
        {
            "Param": [f32(3)],
            "Grad": [f32(3)],
            "Velocity": [f32(3)],
            "LearningRate": [f32(1, lo=0.1, hi=0.2)],
        },
        {
            "mu": 0.9,
            "use_nesterov": True,
            "regularization_method": ["l2_decay"],
            "regularization_coeff": [0.5],
        },
        ["ParamOut*1", "VelocityOut*1"],
        inplace={"ParamOut": "Param", "VelocityOut": "Velocity"},
    ),
    Sample(
        "merged_adam",
        {
            "Param": [f32(3), f32(2)],
            "Grad": [f32(3), f32(2)],
            "LearningRate": [np.array([0.1], "float32")] * 2,
            "Moment1": [f32(3), f32(2)],
            "Moment2": [positive(3), positive(2)],
            "Beta1Pow": [np.array([0.81], "float32")] * 2,
            "Beta2Pow": [np.array([0.98], "float32")] * 2,
        },
        {},
        ["ParamOut*2", "Moment1Out*2", "Moment2Out*2", "Beta1PowOut*2", "Beta2PowOut*2"],
        paddle=False,
        note="3.3.1 crashes without moments of amsgrad; it is adamw parameter by parameter",
    ),
]
SAMPLES += [
    Sample(
        "empty",
        {},
        {"shape": [2, 3], "dtype": 5},
        ["Out"],
        paddle=False,
        note="Paddle leaves it as the memory is",
    ),
    Sample(
        "fused_softmax_mask",
        {"X": f32(1, 1, 2, 3), "Mask": f32(1, 1, 2, 3)},
        {},
        ["Out"],
        ["X"],
        paddle=False,
        note="for the GPU alone",
    ),
    Sample(
        "fused_softmax_mask_upper_triangle",
        {"X": f32(1, 1, 3, 3)},
        {},
        ["Out"],
        ["X"],
        paddle=False,
        note="for the GPU alone",
    ),
    # sizes and places in tensors
    several(
        "set_value",
        {
            "Input": f32(3, 4),
            "ValueTensor": f32(2, 2),
            "StartsTensorList": [np.array([1], "int64"), np.array([0], "int64")],
            "EndsTensorList": [np.array([3], "int64"), np.array([4], "int64")],
            "StepsTensorList": [np.array([1], "int64"), np.array([2], "int64")],
        },
        {"axes": [0, 1], "starts": [], "ends": [], "steps": []},
        grad=("Input", "ValueTensor"),
    ),
    several(
        "graph_send_recv",
        {
            "X": f32(3, 2),
            "Src_index": np.array([0, 1, 2, 0]),
            "Dst_index": np.array([1, 2, 1, 0]),
            "Out_size": np.array([4], "int64"),
        },
        {"reduce_op": "SUM"},
        grad=("X",),
    ),
    several(
        "graph_send_ue_recv",
        {
            "X": f32(3, 2),
            "Y": f32(4, 2),
            "Src_index": np.array([0, 1, 2, 0]),
            "Dst_index": np.array([1, 2, 1, 0]),
            "Out_size": np.array([4], "int64"),
        },
        {"message_op": "MUL", "reduce_op": "SUM"},
        grad=("X", "Y"),
    ),
]
for _sample in SAMPLES:
    if _sample.paddle == LATER and _sample.grad:
        _sample.skip.setdefault("numeric", RECORDED)  # which costs half as much
