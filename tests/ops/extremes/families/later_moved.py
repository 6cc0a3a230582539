"""Rows sent along edges, windows, put and spread values, quantised steps of later Paddles: ties,
repeated places, special values.
"""

import numpy as np

from ..case import Extreme, few

CASES = []
for _dtype in ("float32", "float64"):
    _f = few(_dtype)
    _x = np.resize(_f, (6, 4))
    _ties = np.array([[1, 1], [1, -0.0], [0, 2], [2, 2]], _dtype)
    _from, _to = np.array([0, 1, 2, 3, 0]), np.array([1, 1, 0, 1, 3])
    for _how in ("SUM", "MEAN", "MAX", "MIN"):
        for _label, _rows in (("ties", _ties), ("special", _x)):
            CASES.append(
                Extreme(
                    "%s %s %s" % (_dtype, _how, _label),
                    "graph_send_recv",
                    {"X": _rows, "Src_index": _from, "Dst_index": _to},
                    {"reduce_op": _how, "out_size": [0]},
                    grad=["X"],
                )
            )
        CASES.append(
            Extreme(
                "%s %s ties" % (_dtype, _how),
                "graph_send_ue_recv",
                {"X": _ties, "Y": np.zeros((5, 2), _dtype), "Src_index": _from, "Dst_index": _to},
                {"message_op": "ADD", "reduce_op": _how, "out_size": [0]},
                grad=["X", "Y"],
            )
        )
    for _how in ("ADD", "MUL"):
        CASES.append(
            Extreme(
                "%s %s special" % (_dtype, _how),
                "graph_send_uv",
                {"x": _x, "y": _x[::-1].copy(), "src_index": _from, "dst_index": _to},
                {"message_op": _how},
                ["out"],
                grad=["x", "y"],
            )
        )
    _again = [np.array([0, 0, 2]), np.array([1, 1, 3])]
    CASES += [
        Extreme(
            "%s the same place" % _dtype,
            "index_put",
            {"x": _x, "indices": _again, "value": np.array([1, np.inf, np.nan], _dtype)},
            {"accumulate": True},
            ["out"],
            grad=["x", "value"],
        ),
        Extreme(
            "%s from the end" % _dtype,
            "index_put",
            {"x": _x, "indices": [np.array([-1, -6]), np.array([-4, 3])], "value": _f[:2]},
            {"accumulate": False},
            ["out"],
            grad=["x", "value"],
        ),
        Extreme(
            "%s special" % _dtype,
            "fill_diagonal_tensor",
            {"X": _x, "Y": _f[-4:]},
            {"dim1": 0, "dim2": 1, "offset": 0},
            grad=["X"],
        ),
        Extreme(
            "%s special" % _dtype,
            "broadcast_tensors",
            {"X": [_f[:3].reshape(3, 1), _f[-5:]]},
            {},
            ["Out*2"],
            grad=["X"],
        ),
        Extreme(
            "%s special" % _dtype,
            "fold",
            {"X": np.resize(_f, (1, 8, 4))},
            {
                "output_sizes": [3, 3],
                "kernel_sizes": [2, 2],
                "strides": [1, 1],
                "paddings": [0, 0, 0, 0],
                "dilations": [1, 1],
            },
            ["Y"],
            grad=["X"],
        ),
        Extreme(
            "%s special" % _dtype,
            "frame",
            {"X": np.resize(_f, (2, 6))},
            {"frame_length": 3, "hop_length": 2, "axis": -1},
            grad=["X"],
        ),
        Extreme(
            "%s special" % _dtype,
            "overlap_add",
            {"X": np.resize(_f, (3, 2))},
            {"hop_length": 2, "axis": -1},
            grad=["X"],
        ),
        Extreme("%s special" % _dtype, "identity_loss", {"X": _x}, {"reduction": 2}, grad=["X"]),
        Extreme("%s sum" % _dtype, "identity_loss", {"X": _x[:1]}, {"reduction": 0}, grad=["X"]),
        Extreme(
            "%s special right side" % _dtype,
            "cholesky_solve",
            {
                "X": np.array([[1, np.inf], [0, -0.0], [np.nan, 2]], _dtype),
                "Y": np.tril(np.array([[2, 0, 0], [1, 2, 0], [1, 1, 3]], _dtype)),
            },
            {"upper": False},
        ),
        Extreme(
            "%s equal values" % _dtype,
            "eigvalsh",
            {"X": np.eye(3, dtype=_dtype)},
            {"UPLO": "L", "is_test": True},
            ["Eigenvalues"],
        ),
        Extreme(
            "%s zero" % _dtype,
            "eigvalsh",
            {"X": np.zeros((3, 3), _dtype)},
            {"UPLO": "U", "is_test": True},
            ["Eigenvalues"],
        ),
        Extreme("%s zero" % _dtype, "svd", {"X": np.zeros((3, 2), _dtype)}, {}, ["S"]),
        Extreme("%s equal values" % _dtype, "svd", {"X": np.eye(3, dtype=_dtype)}, {}, ["S"]),
        Extreme(
            "%s identity" % _dtype,
            "lu",
            {"X": np.eye(3, dtype=_dtype)},
            {"pivots": True},
            ["Out", "Pivots", "Infos"],
        ),
        Extreme(
            "%s ties" % _dtype,
            "lu",
            {"X": np.array([[1, 2, 3], [1, 4, 4], [-1, 1, 0]], _dtype)},
            {"pivots": True},
            ["Out", "Pivots", "Infos"],
        ),
    ]
_values = np.array(
    [
        [0.5, -0.5, 1.5, 2.5, -2.5],
        [0, -0.0, 127, -128, 1e30],
        [0.003937, 0.011811, -0.019685, 3, 1],
    ],
    "float32",
)
for _round in (0, 1):
    CASES.append(
        Extreme(
            "halves %d" % _round,
            "quantize_linear",
            {
                "X": _values,
                "Scale": np.array([127.0], "float32"),
                "ZeroPoint": np.zeros(1, "float32"),
            },
            {"quant_axis": -1, "round_type": _round, "is_test": True},
            ["Y"],
        )
    )
CASES += [
    Extreme("ends", "dequantize_linear", {"X": np.array([[-128, 127], [0, -1]], "int8"), "Scale": np.array([0.0, 3e38], "float32"),
                                           "ZeroPoint": np.zeros(2, "float32")}, {"quant_axis": 0}, ["Y"]),
    Extreme("zero", "fake_quantize_dequantize_abs_max", {"X": np.zeros((2, 3), "float32")}, {}, ["Out", "OutScale"], grad=["X"]),
    Extreme("halves", "fake_quantize_dequantize_abs_max", {"X": _values[:1] * np.float32(50.8)}, {}, ["Out", "OutScale"], grad=["X"]),
    Extreme("a channel of zeros", "fake_channel_wise_quantize_dequantize_abs_max", {"X": _values[[0, 2]] * np.array([[0], [1]], "float32")}, {"quant_axis": 0},
            ["Out", "OutScale"], grad=["X"]),
]  # fmt: skip
