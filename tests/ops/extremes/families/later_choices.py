"""Ops of later Paddles that choose, order, count or accumulate: ties, nan, infinities, one element,
nothing, bounds.
"""

import numpy as np

from ..case import Extreme, limits

NAN, INF = np.nan, np.inf
ROWS = [
    [1, 1, 1, 1],
    [0, -0.0, 0, -0.0],
    [2, 1, 2, 1],
    [3, 1, 2, 3],
    [INF, 1, INF, -INF],
    [-INF, -INF, -INF, -INF],
    [NAN, 1, 2, 1],
    [1, NAN, 0, NAN],
    [NAN, NAN, NAN, NAN],
    [INF, NAN, 1, -INF],
    [3e38, -3e38, 3e38, 1],
    [1e-30, 0, -1e-30, 0],
]
CASES = []


def row_cases(op, attrs, out, of, slot="X", axis="axis", **more):
    """along the last axis, along the first (of ordinary numbers), of one element and of one column"""
    for dtype in ("float32", "float64"):
        rows = np.array(ROWS, dtype)
        table = [
            ("rows", rows, -1),
            ("first axis", rows[:4], 0),
            ("one element", rows[:, :1].copy(), 1),
            ("one", rows[3, :1].copy(), 0),
        ]
        for label, x, at in table:
            attr = dict(attrs, **{axis: [at] if axis in ("dim", "axes") else at})
            CASES.append(
                Extreme(
                    "%s %s" % (dtype, label), op, {slot: x}, attr, out, grad=[slot], of=[of], **more
                )
            )


row_cases("cummax", {"dtype": 3}, ["out", "indices"], "out", "x")
row_cases("cummin", {"dtype": 3}, ["out", "indices"], "out", "x")
for _dtype in ("float32", "float64"):
    _rows = np.array(ROWS, _dtype)
    CASES += [
        Extreme(_dtype + " rows", "cumprod", {"X": _rows}, {"dim": -1}, grad=["X"]),
        Extreme(
            _dtype + " zeros",
            "cumprod",
            {"X": np.array([[2, 0, 3, 4], [0, 2, 0, 3], [1, 2, 3, 0], [0, 0, 0, 0]], _dtype)},
            {"dim": 1},
            grad=["X"],
        ),
        Extreme(
            _dtype + " rows",
            "logcumsumexp",
            {"X": _rows},
            {"axis": -1, "flatten": False, "exclusive": False, "reverse": False},
            grad=["X"],
        ),
        Extreme(
            _dtype + " rows",
            "logsumexp",
            {"X": _rows},
            {"axis": [-1], "keepdim": False, "reduce_all": False},
            grad=["X"],
        ),
        Extreme(_dtype + " rows", "log_softmax", {"X": _rows}, {"axis": -1}, grad=["X"]),
        Extreme(
            _dtype + " one element",
            "log_softmax",
            {"X": _rows[:, :1].copy()},
            {"axis": 1},
            grad=["X"],
        ),
    ]
row_cases("kthvalue", {"k": 1, "keepdim": False}, ["Out", "Indices"], "Out")
for _dtype in ("float32", "float64"):
    _rows = np.array(ROWS, _dtype)
    CASES += [
        Extreme(
            "%s k %d" % (_dtype, k),
            "kthvalue",
            {"X": _rows},
            {"k": k, "axis": -1, "keepdim": True},
            ["Out", "Indices"],
            grad=["X"],
            of=["Out"],
        )
        for k in (2, 4)
    ]
    for largest in (True, False):
        CASES += [
            Extreme(
                "%s k %d %s" % (_dtype, k, "largest" if largest else "least"),
                "top_k_v2",
                {"X": _rows},
                {"k": k, "axis": -1, "largest": largest, "sorted": True},
                ["Out", "Indices"],
                grad=["X"],
                of=["Out"],
            )
            for k in (1, 2, 4)
        ]
row_cases("mode", {"keepdim": False}, ["Out", "Indices"], "Out")
row_cases("reduce_amax", {"keep_dim": False, "reduce_all": False}, ["Out"], "Out", axis="dim")
row_cases("reduce_amin", {"keep_dim": False, "reduce_all": False}, ["Out"], "Out", axis="dim")
for _dtype in ("float32", "float64"):
    _rows = np.array(ROWS, _dtype)
    for _mode in ("avg", "min"):
        CASES += [
            Extreme(
                "%s %s" % (_dtype, _mode),
                "nanmedian",
                {"X": _rows},
                {"axis": [1], "keepdim": False, "mode": _mode},
                ["Out"],
                grad=["X"],
                of=["Out"],
            )
        ]
        CASES += [
            Extreme(
                "%s odd %s" % (_dtype, _mode),
                "nanmedian",
                {"X": _rows[:, :3].copy()},
                {"axis": [1], "keepdim": True, "mode": _mode},
                ["Out"],
                grad=["X"],
                of=["Out"],
            )
        ]
for _dtype in ("int32", "int64"):
    _v = np.resize(limits(_dtype), (4, 4))
    CASES += [
        Extreme(_dtype, op, {"x": _v}, {"axis": -1, "dtype": 3}, ["out", "indices"])
        for op in ("cummax", "cummin")
    ]
    CASES += [
        Extreme(_dtype, "cumprod", {"X": _v}, {"dim": -1}),
        Extreme(_dtype, "kthvalue", {"X": _v}, {"k": 2, "axis": -1}, ["Out", "Indices"]),
        Extreme(_dtype, "mode", {"X": _v}, {"axis": -1}, ["Out", "Indices"]),
        Extreme(
            _dtype,
            "top_k_v2",
            {"X": _v},
            {"k": 3, "axis": -1, "largest": True, "sorted": True},
            ["Out", "Indices"],
        ),
        Extreme(
            _dtype, "reduce_amax", {"X": _v}, {"dim": [1], "keep_dim": False, "reduce_all": False}
        ),
        Extreme(
            _dtype, "reduce_amin", {"X": _v}, {"dim": [1], "keep_dim": False, "reduce_all": False}
        ),
    ]
# places in order
SORTED = [-INF, -1, -0.0, 0, 1, 1, 1, 3, INF]
ASKED = [-INF, -2, -1, -0.0, 0, 1, 1.5, 3, 4, INF, NAN]
for _dtype in ("float32", "float64"):
    for _right in (False, True):
        for _int32 in (False, True):
            CASES += [
                Extreme(
                    "%s %s %s"
                    % (_dtype, "right" if _right else "left", "int32" if _int32 else "int64"),
                    "searchsorted",
                    {"SortedSequence": np.array(SORTED, _dtype), "Values": np.array(ASKED, _dtype)},
                    {"right": _right, "out_int32": _int32},
                )
            ]
    CASES += [
        Extreme(
            _dtype + " one",
            "searchsorted",
            {
                "SortedSequence": np.array([1], _dtype),
                "Values": np.array([[0, 1], [2, NAN]], _dtype),
            },
            {"right": False, "out_int32": False},
        ),
        Extreme(
            _dtype + " runs",
            "unique_consecutive",
            {"X": np.array([1, 1, 0, -0.0, NAN, NAN, 2, INF, INF, 1], _dtype)},
            {"return_inverse": True, "return_counts": True, "axis": [], "dtype": 3},
            ["Out", "Index", "Counts"],
        ),
        Extreme(
            _dtype + " bounds",
            "histogram",
            {"X": np.array([-1, 0, 0.25, 0.5, 1, 1, 2, 0.999999], _dtype)},
            {"bins": 4, "min": 0.0, "max": 1.0},
        ),
        Extreme(
            _dtype + " own bounds",
            "histogram",
            {"X": np.array([3, -1, 3, 0], _dtype)},
            {"bins": 3, "min": 0.0, "max": 0.0},
        ),
        Extreme(
            _dtype + " one value",
            "histogram",
            {"X": np.array([2, 2, 2], _dtype)},
            {"bins": 3, "min": 0.0, "max": 0.0},
        ),
    ]
CASES += [
    Extreme("none", "bincount", {"X": np.zeros(0, "int64")}, {"minlength": 3}),
    Extreme("least", "bincount", {"X": np.array([0, 0, 5])}, {"minlength": 2}),
    Extreme(
        "weights",
        "bincount",
        {"X": np.array([1, 1, 3]), "Weights": np.array([INF, -INF, 0.5], "float32")},
        {"minlength": 0},
    ),
]
# rows put together and apart
INDEX = np.array([[0, 0, 1], [2, 2, 2]])
for _dtype in ("float32", "float64"):
    _x, _v = (
        np.array([[1, -2, 0, 4], [INF, NAN, 3, 1], [2, 2, -1, 0]], _dtype),
        np.array([[3, 5, -1], [2, NAN, 0]], _dtype),
    )
    CASES += [
        Extreme(
            _dtype,
            "take_along_axis",
            {"Input": _x, "Index": INDEX},
            {"Axis": 0},
            ["Result"],
            grad=["Input"],
        )
    ]
    CASES += [
        Extreme(
            "%s %s" % (_dtype, how),
            "put_along_axis",
            {"Input": _x, "Index": INDEX, "Value": _v},
            {"Axis": 0, "Reduce": how, "Include_self": True},
            ["Result"],
        )
        for how in ("add", "mul", "amax", "amin", "mean")
    ]
    CASES += [
        Extreme(
            _dtype + " repeated",
            "index_add",
            {"X": _x, "Index": np.array([1, 1, 0]), "AddValue": _x},
            {"axis": 0},
            grad=["X", "AddValue"],
        ),
        Extreme(
            _dtype + " rows", "repeat_interleave", {"X": _x}, {"Repeats": 2, "dim": 0}, grad=["X"]
        ),
        Extreme(
            _dtype + " infinities",
            "lerp",
            {"X": _x, "Y": _x[::-1].copy(), "Weight": np.array([0, 1, 0.5, 2], _dtype)},
            grad=["X", "Y"],
        ),
    ]
    CASES += [
        Extreme(
            "%s %s" % (_dtype, p),
            "renorm",
            {
                "X": np.array(
                    [[0, 0], [3, 4], [INF, 1], [NAN, 1], [3e38, 3e38], [0.3, -0.4]], _dtype
                )
            },
            {"p": p, "axis": 0, "max_norm": 1.0},
            grad=["X"],
        )
        for p in (1.0, 2.0)
    ]
    CASES += [
        Extreme(
            "%s %s gaps" % (_dtype, how.lower()),
            "segment_pool",
            {"X": _x, "SegmentIds": np.array([0, 0, 2])},
            {"pooltype": how},
            grad=["X"],
        )
        for how in ("SUM", "MEAN", "MAX", "MIN")
    ]
# matrices that have no inverse
for _dtype in ("float32", "float64"):
    _m = np.array(
        [[[1, 2], [2, 4]], [[0, 0], [0, 0]], [[1, 0], [0, -3]], [[INF, 1], [1, 1]]], _dtype
    )
    CASES += [
        Extreme(_dtype + " singular", "determinant", {"Input": _m[:3]}),
        Extreme(_dtype + " singular", "slogdeterminant", {"Input": _m[:3]}),
        Extreme(
            _dtype + " singular",
            "matrix_rank",
            {"X": _m[:3]},
            {"use_default_tol": True, "hermitian": False},
        ),
    ]
    _i = np.arange(12.0).reshape(1, 1, 1, 3, 4).astype(_dtype)
    _i[..., 0, 0], _i[..., 1, 1], _i[..., 2, 3] = NAN, -0.0, INF
    CASES += [
        Extreme(
            "%s %s" % (_dtype, mode),
            "pad3d",
            {"X": _i},
            {"paddings": [2, 1, 1, 2, 0, 0], "mode": mode, "value": -0.0, "data_format": "NCDHW"},
            grad=["X"],
        )
        for mode in ("constant", "reflect", "replicate", "circular")
    ]
    _p = np.array([[[[1, 2, NAN, 4], [5, -INF, 7, 8], [9, 1, 2, INF]]]], _dtype)
    for _kind, _how in (
        ("nearest", (False,)),
        ("bilinear", (False, True)),
        ("bicubic", (False, True)),
    ):
        for _corners in _how:
            CASES += [
                Extreme(
                    "%s to %dx%d%s" % (_dtype, h, w, " corners" if _corners else ""),
                    _kind + "_interp_v2",
                    {
                        "X": (
                            np.arange(12.0).reshape(1, 1, 3, 4).astype(_dtype)
                            if _kind == "bicubic"
                            else _p
                        )
                    },
                    {
                        "interp_method": _kind,
                        "align_corners": _corners,
                        "align_mode": 0,
                        "out_h": h,
                        "out_w": w,
                        "out_d": -1,
                        "data_layout": "NCHW",
                        "scale": [],
                    },
                    grad=["X"],
                )
                for h, w in ((1, 1), (6, 8))
            ]
