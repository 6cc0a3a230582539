"""Matrix ops, shapes and copies of later Paddles: zeros, infinities and nan in products, singular
matrices, ties and ends.
"""

import numpy as np

from ..case import Extreme, few

CASES = []
for _dtype in ("float32", "float64"):
    _f = few(_dtype)
    _z = np.zeros((3, 3), _dtype)
    _eye = np.eye(3, dtype=_dtype)
    _one = np.array([[4, 2, 1], [2, 5, 3], [1, 3, 6]], _dtype)  # positive definite
    _inf, _nan = _one.copy(), _one.copy()
    _inf[1, 0] = _inf[0, 1] = np.inf
    _nan[2, 1] = _nan[1, 2] = np.nan
    _zero_row = _one.copy()
    _zero_row[1] = 0
    _vec = np.array([1, 0, -1], _dtype)
    for _label, _m in (
        ("ordinary", _one),
        ("identity", _eye),
        ("zero", _z),
        ("inf", _inf),
        ("nan", _nan),
        ("a row of zeros", _zero_row),
    ):
        CASES += [
            Extreme("%s %s" % (_dtype, _label), "mv", {"X": _m, "Vec": _vec}, grad=["X", "Vec"]),
            Extreme(
                "%s %s" % (_dtype, _label),
                "matmul_v2",
                {"X": _m, "Y": _one},
                {"trans_x": False, "trans_y": True},
                grad=["X", "Y"],
            ),
            Extreme("%s %s" % (_dtype, _label), "multi_dot", {"X": [_m, _one, _m]}, grad=["X"]),
            Extreme(
                "%s %s" % (_dtype, _label),
                "baddbmm",
                {"Input": _m[None], "X": _m[None], "Y": _one[None]},
                {"Alpha": 0.5, "Beta": 2.0},
                grad=["Input", "X", "Y"],
            ),
            Extreme(
                "%s %s" % (_dtype, _label),
                "diagonal",
                {"Input": _m},
                {"offset": 1, "axis1": 0, "axis2": 1},
                grad=["Input"],
            ),
            Extreme(
                "%s %s" % (_dtype, _label),
                "diag_v2",
                {"X": _m},
                {"offset": -1, "padding_value": 0.0},
            ),
            Extreme("%s %s" % (_dtype, _label), "matrix_power", {"X": _m}, {"n": 3}, grad=["X"]),
        ]
    for _n in (0, 1, 2):
        CASES.append(
            Extreme(
                "%s power %d" % (_dtype, _n),
                "matrix_power",
                {"X": _zero_row},
                {"n": _n},
                grad=["X"],
            )
        )
    _v = np.resize(_f, (2, 6))
    CASES += [
        Extreme(
            "%s special" % _dtype,
            "diag_v2",
            {"X": _v[0]},
            {"offset": 0, "padding_value": float("inf")},
        ),
        Extreme(
            "%s far" % _dtype,
            "diagonal",
            {"Input": _v},
            {"offset": 5, "axis1": 0, "axis2": 1},
            grad=["Input"],
        ),
        Extreme("%s special" % _dtype, "expand_v2", {"X": _v}, {"shape": [3, 2, 6]}, grad=["X"]),
        Extreme(
            "%s special" % _dtype,
            "expand_as_v2",
            {"X": _v},
            {"target_shape": [3, 2, 6]},
            grad=["X"],
        ),
        Extreme("%s special" % _dtype, "tile", {"X": _v}, {"repeat_times": [2, 1, 2]}, grad=["X"]),
        Extreme("%s special" % _dtype, "share_data", {"X": _v}),
        Extreme(
            "%s special" % _dtype,
            "flatten_contiguous_range",
            {"X": _v[None]},
            {"start_axis": 0, "stop_axis": 1},
            ["Out"],
            grad=["X"],
        ),
        Extreme(
            "%s special" % _dtype,
            "swiglu",
            {"x": _v, "y": _v[::-1].copy()},
            {},
            ["out"],
            grad=["x", "y"],
        ),
        Extreme("%s halves" % _dtype, "swiglu", {"x": _v}, {}, ["out"], grad=["x"]),
        Extreme(
            "%s special" % _dtype,
            "reduce_as",
            {"x": _v, "target": _v[:1].copy()},
            {},
            ["out"],
            grad=["x"],
        ),
        Extreme(
            "%s special" % _dtype,
            "pixel_unshuffle",
            {"X": np.resize(_f, (1, 1, 4, 4))},
            {"downscale_factor": 2, "data_format": "NCHW"},
            grad=["X"],
        ),
        Extreme(
            "%s special" % _dtype,
            "channel_shuffle",
            {"X": np.resize(_f, (1, 4, 2, 2))},
            {"groups": 2, "data_format": "NCHW"},
            grad=["X"],
        ),
        Extreme("%s special" % _dtype, "equal_all", {"X": _v, "Y": _v}),
        Extreme(
            "%s zeros of two signs" % _dtype,
            "equal_all",
            {"X": np.array([0.0, -0.0], _dtype), "Y": np.array([-0.0, 0.0], _dtype)},
        ),
        Extreme(
            "%s infinities" % _dtype,
            "equal_all",
            {"X": np.array([np.inf, 1], _dtype), "Y": np.array([np.inf, 1], _dtype)},
        ),
    ]
