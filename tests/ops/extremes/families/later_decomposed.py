"""Decompositions, least squares, transforms and sums of products of later Paddles: singular and
repeated, zeros, great numbers, infinities.
"""

import numpy as np

from ..case import Extreme, few

CASES = []
INF, NAN = np.inf, np.nan
SYMMETRIC = {
    "ordinary": [[4, 2, 1], [2, 5, 3], [1, 3, 6]],
    "zero": np.zeros((3, 3)),
    "identity": np.eye(3),
    "of rank 1": np.ones((3, 3)),
    "diagonal": np.diag([3.0, -1.0, 2.0]),
    "great": np.diag([1e30, -1e30, 1e4]),
    "tiny": np.diag([1e-30, 1e4, -1e-30]),
}
for _dtype in ("float32", "float64"):
    _f = few(_dtype)
    _kind = {"float32": "complex64", "float64": "complex128"}[_dtype]
    for _label in sorted(SYMMETRIC):
        _m = np.array(SYMMETRIC[_label], _dtype)
        _name, _singular = "%s %s" % (_dtype, _label), _label == "of rank 1"
        CASES += [
            Extreme(
                _name,
                "eigh",
                {"X": _m},
                {"UPLO": "L"},
                ["Eigenvalues"],
                grad=["X"],
                of=["Eigenvalues"],
                rtol=1e-4 if _dtype == "float32" else 1e-9,
            ),
            Extreme(
                _name + ", upper half",
                "eigh",
                {"X": np.triu(_m)},
                {"UPLO": "U"},
                ["Eigenvalues"],
                rtol=1e-4 if _dtype == "float32" else 1e-9,
            ),
            Extreme(
                _name,
                "eig",
                {"X": _m},
                {},
                ["Eigenvalues"],
                rtol=1e-4 if _dtype == "float32" else 1e-9,
                singular=_singular,
            ),
            Extreme(
                _name,
                "eigvals",
                {"X": _m},
                {},
                ["Out"],
                rtol=1e-4 if _dtype == "float32" else 1e-9,
                singular=_singular,
            ),
            Extreme(
                _name,
                "qr",
                {"X": _m},
                {"mode": "reduced"},
                ["R"],
                grad=["X"] if _label in ("ordinary", "identity", "diagonal") else [],
                rtol=1e-4 if _dtype == "float32" else 1e-9,
            ),
            Extreme(
                _name + ", complete",
                "qr",
                {"X": _m[:, :2].copy()},
                {"mode": "complete"},
                ["R"],
                rtol=1e-4 if _dtype == "float32" else 1e-9,
            ),
            Extreme(
                _name,
                "lu_unpack",
                {"X": _m, "Pivots": np.array([3, 3, 3], "int32")},
                {},
                ["Pmat", "L", "U"],
                grad=["X"],
                of=["L", "U"],
            ),
        ]
    for _label, _m in (
        ("one", [[2.0]]),
        ("one infinite", [[INF]]),
        ("one nan", [[NAN]]),
        ("one zero", [[0.0]]),
    ):
        _m = np.array(_m, _dtype)
        CASES += [
            Extreme("%s %s" % (_dtype, _label), "eigh", {"X": _m}, {"UPLO": "L"}, ["Eigenvalues"]),
            Extreme("%s %s" % (_dtype, _label), "eigvals", {"X": _m}, {}, ["Out"]),
            Extreme("%s %s" % (_dtype, _label), "qr", {"X": _m}, {"mode": "reduced"}, ["R"]),
        ]
    CASES += [
        Extreme(
            "%s a turn" % _dtype, "eigvals", {"X": np.array([[0, -1], [1, 0]], _dtype)}, {}, ["Out"]
        ),
        Extreme(
            "%s special" % _dtype,
            "lu_unpack",
            {"X": np.resize(_f, (3, 3)), "Pivots": np.array([1, 3, 3], "int32")},
            {},
            ["Pmat", "L", "U"],
            grad=["X"],
            of=["L", "U"],
        ),
        Extreme(
            "%s nothing swapped, wide" % _dtype,
            "lu_unpack",
            {"X": np.resize(_f, (2, 4)), "Pivots": np.array([1, 2], "int32")},
            {},
            ["Pmat", "L", "U"],
            grad=["X"],
            of=["L", "U"],
        ),
        Extreme(
            "%s the parts alone" % _dtype,
            "lu_unpack",
            {"X": np.resize(_f, (3, 3)), "Pivots": np.array([1, 3, 3], "int32")},
            {"unpack_pivots": False},
            ["L", "U"],
        ),
    ]
    for _label, _m, _right in (
        ("identity", np.eye(3), _f[9:12]),
        ("exact", [[1, 0], [0, 2], [0, 0]], [1, 4, 0]),
        ("zero right side", [[1, 0], [0, 2], [1, 1]], [0, 0, 0]),
        ("great", [[1e30, 0], [0, 1], [0, 0]], [1e30, 2, 3]),
    ):
        _given = {"X": np.array(_m, _dtype), "Y": np.array(_right, _dtype).reshape(-1, 1)}
        CASES += [
            Extreme(
                "%s %s, %s" % (_dtype, _label, _driver),
                "lstsq",
                _given,
                {"rcond": 1e-6, "driver": _driver},
                ["Solution", "Residuals"] + _more,
                rtol=1e-4 if _dtype == "float32" else 1e-9,
            )
            for _driver, _more in (
                ("gels", []),
                ("gelsy", ["Rank"]),
                ("gelsd", ["Rank", "SingularValues"]),
            )
        ]
    for _label, _m in (
        ("zero", np.zeros((3, 2))),
        ("equal columns", [[1, 1], [1, 1], [1, 1]]),
        ("one column of zeros", [[2, 0], [0, 0], [0, 0]]),
    ):
        _given = {"X": np.array(_m, _dtype), "Y": np.array([[1], [2], [3]], _dtype)}
        CASES += [
            Extreme(
                "%s %s, %s" % (_dtype, _label, _driver),
                "lstsq",
                _given,
                {"rcond": 1e-6, "driver": _driver},
                ["Solution", "Residuals", "Rank"] + _more,
                rtol=1e-4 if _dtype == "float32" else 1e-9,
            )
            for _driver, _more in (("gelsy", []), ("gelsd", []), ("gelss", []))
        ]
    for _label, _row in (
        ("zeros", [0, -0.0, 0, 0]),
        ("equal", [2, 2, 2, 2]),
        ("great", [1e30, -1e30, 1e4, 1e30]),
        ("turning", [1, -1, 1, -1]),
        ("infinite", [INF, 1, 2, 3]),
        ("nan", [1, NAN, 2, 3]),
        ("one", [3]),
    ):
        _x, _n = np.array(_row, _dtype), len(_row)
        for _way in ("backward", "ortho"):
            _rule = {"axes": [0], "normalization": _way, "forward": True}
            CASES += [
                Extreme(
                    "%s %s, %s" % (_dtype, _label, _way),
                    "fft_c2c",
                    {"X": (_x + 0j).astype(_kind)},
                    _rule,
                    grad=["X"],
                ),
                Extreme(
                    "%s %s, %s" % (_dtype, _label, _way),
                    "fft_r2c",
                    {"X": _x},
                    dict(_rule, onesided=True),
                    grad=["X"],
                ),
                Extreme(
                    "%s %s, %s" % (_dtype, _label, _way),
                    "fft_c2r",
                    {"X": (_x[: _n // 2 + 1] + 0j).astype(_kind)},
                    dict(_rule, forward=False, last_dim_size=_n),
                    grad=["X"],
                ),
            ]
    _a, _b = np.resize(_f[:5], (2, 3)), np.array([[0, 1, -1], [0, -0.0, 2]], _dtype)
    _wide = np.resize(_f, (3, 3))
    CASES += [
        Extreme(
            "%s products" % _dtype, "einsum", {"Operands": [_a, _b]}, {"equation": "ij,kj->ik"}
        ),
        Extreme(
            "%s special" % _dtype,
            "einsum",
            {"Operands": [_wide, np.eye(3, dtype=_dtype)]},
            {"equation": "ij,jk->ik"},
        ),
        Extreme(
            "%s pairs" % _dtype,
            "einsum",
            {"Operands": [_wide[0], _f[15:18].copy()]},
            {"equation": "i,j->ij"},
        ),
        Extreme(
            "%s diagonal" % _dtype,
            "einsum",
            {"Operands": [_wide]},
            {"equation": "ii->i"},
            grad=["Operands"],
        ),
        Extreme(
            "%s turned" % _dtype,
            "einsum",
            {"Operands": [_wide]},
            {"equation": "ij->ji"},
            grad=["Operands"],
        ),
        Extreme(
            "%s trace" % _dtype,
            "einsum",
            {"Operands": [_wide]},
            {"equation": "ii->"},
            grad=["Operands"],
        ),
        Extreme(
            "%s sums" % _dtype,
            "einsum",
            {"Operands": [_wide]},
            {"equation": "ij->j"},
            grad=["Operands"],
        ),
        Extreme(
            "%s one cell" % _dtype,
            "einsum",
            {"Operands": [_f[:1].reshape(1, 1)]},
            {"equation": "ii->i"},
            grad=["Operands"],
        ),
    ]
