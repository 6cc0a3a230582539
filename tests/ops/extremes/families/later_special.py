"""Special functions, masks, complex parts, solutions and scaled losses of later Paddles at zeros,
infinities, nan, ties and ends.
"""

import numpy as np

from ..case import Extreme, few, pairs, specials

CASES = []
for _dtype in ("float32", "float64"):
    _f, _x = few(_dtype), specials(_dtype)
    _a, _b = pairs(_dtype)
    _there = ~np.isnan(_a) & ~np.isnan(_b)
    # float32 keeps three digits there
    _inside = np.array([0.0, 0.5, 1.0, 1e-30, 3.0, 40.0] + [1e4] * (_dtype == "float64"), _dtype)
    _first, _second = np.repeat(_inside[1:], len(_inside)), np.tile(_inside, len(_inside) - 1)
    _rows = np.resize(_f, (4, 6))
    _ties = np.array([[1, 1, 1], [0, -0.0, 0], [2, 2, 1]], _dtype)
    _kind = {"float32": "complex64", "float64": "complex128"}[_dtype]
    _z = (np.resize(_f, 6) + 0j).astype(_kind)
    _z.imag = np.resize(_f[3:], 6)
    _good = np.array([[4, 2, 1], [2, 5, 3], [1, 3, 6]], _dtype)
    _upper = np.triu(_good)
    _flat = _upper.copy()
    _flat[1, 1] = 0
    _right = np.array([[1, np.inf], [0, -0.0], [np.nan, 2]], _dtype)
    CASES += [
        Extreme(
            "%s inside" % _dtype,
            "gammaincc",
            {"x": _first, "y": _second},
            {},
            ["out"],
            grad=["y"],
            rtol=5e-4 if _dtype == "float32" else 1e-9,
        ),
        Extreme(
            "%s ties" % _dtype,
            "std",
            {"x": _ties},
            {"axis": [1], "unbiased": True, "correction": 1.0},
            ["out"],
            grad=["x"],
        ),
        Extreme(
            "%s one element" % _dtype,
            "std",
            {"x": _ties[:, :1]},
            {"axis": [1], "unbiased": True, "correction": 1.0},
            ["out"],
        ),
        Extreme(
            "%s special" % _dtype,
            "std",
            {"x": _rows},
            {"axis": [1], "unbiased": True, "correction": 1.0},
            ["out"],
        ),
        Extreme(
            "%s special" % _dtype,
            "masked_fill",
            {"x": _rows, "mask": _rows > 0, "value": np.array([np.nan], _dtype)},
            {},
            ["out"],
            grad=["x"],
        ),
        Extreme(
            "%s infinite" % _dtype,
            "masked_fill",
            {"x": _rows, "mask": _rows <= 0, "value": np.array([np.inf], _dtype)},
            {},
            ["out"],
            grad=["x"],
        ),
        Extreme(
            "%s special" % _dtype,
            "masked_select",
            {"X": _rows, "Mask": _rows > 0},
            {},
            ["Y"],
            grad=["X"],
        ),
        Extreme(
            "%s all" % _dtype,
            "masked_select",
            {"X": _rows, "Mask": np.ones(_rows.shape, bool)},
            {},
            ["Y"],
            grad=["X"],
        ),
        Extreme("%s special" % _dtype, "complex", {"X": _a[_there], "Y": _b[_there]}),
        Extreme("%s special" % _dtype, "real", {"X": _z}),
        Extreme("%s special" % _dtype, "imag", {"X": _z}),
        Extreme("%s special" % _dtype, "conj", {"X": _z}),
        Extreme("%s special" % _dtype, "as_real", {"X": _z}),
        Extreme("%s special" % _dtype, "as_complex", {"X": np.resize(_f, (5, 2))}),
        Extreme(
            "%s special" % _dtype,
            "fill_diagonal",
            {"X": _rows},
            {"value": float("inf"), "offset": -1, "wrap": False},
            grad=["X"],
        ),
        Extreme(
            "%s far" % _dtype,
            "fill_diagonal",
            {"X": _rows},
            {"value": 2.0, "offset": 9, "wrap": False},
            grad=["X"],
        ),
        Extreme("%s ordinary" % _dtype, "cholesky", {"X": _good}, {"upper": False}),
        Extreme(
            "%s identity" % _dtype, "cholesky", {"X": np.eye(3, dtype=_dtype)}, {"upper": True}
        ),
        Extreme("%s special right side" % _dtype, "solve", {"X": _good, "Y": _right}),
        Extreme(
            "%s special right side" % _dtype,
            "triangular_solve",
            {"X": _upper, "Y": _right},
            {"upper": True},
        ),
        Extreme(
            "%s unit of zeros" % _dtype,
            "triangular_solve",
            {"X": _flat, "Y": _good},
            {"upper": True, "unitriangular": True},
        ),
        Extreme(
            "%s zero on the diagonal" % _dtype,
            "triangular_solve",
            {"X": _flat, "Y": _good},
            {"upper": True},
        ),
        Extreme(
            "%s identity" % _dtype,
            "inverse",
            {"Input": np.eye(3, dtype=_dtype)},
            {},
            ["Output"],
            grad=["Input"],
        ),
        Extreme(
            "%s diagonal" % _dtype,
            "inverse",
            {"Input": np.diag(np.array([1e-30, 2, 1e30], _dtype))},
            {},
            ["Output"],
        ),
    ]
    for _label, _values in (
        ("finite", _ties),
        ("inf", np.where(_ties > 0, np.inf, _ties).astype(_dtype)),
        ("nan", _rows),
        ("zero", _ties * 0),
    ):
        CASES.append(
            Extreme(
                "%s %s" % (_dtype, _label),
                "check_finite_and_unscale",
                {"X": [_values, _ties], "Scale": np.array([0.5], _dtype)},
                {},
                {"Out": 2, "FoundInfinite": None},
            )
        )
    for _n in (0, 1, 2):
        CASES.append(
            Extreme(
                "%s n=%d" % (_dtype, _n),
                "polygamma",
                {"x": np.array([0.5, 1, 2, 30, 1e-3], _dtype)},
                {"n": _n},
                ["out"],
                rtol=1e-4,
            )
        )
    _same = np.zeros((2, 4, 3), _dtype)
    CASES.append(
        Extreme(
            "%s ties" % _dtype,
            "viterbi_decode",
            {"Input": _same, "Transition": np.zeros((3, 3), _dtype), "Length": np.array([4, 2])},
            {"include_bos_eos_tag": False},
            ["Scores", "Path"],
        )
    )
for _rows_, _cols, _offset in ((3, 3, 5), (3, 3, -5), (1, 4, 0), (4, 1, 0)):
    CASES += [
        Extreme(
            "%dx%d %d" % (_rows_, _cols, _offset),
            "tril_indices",
            {},
            {"rows": _rows_, "cols": _cols, "offset": _offset, "dtype": 3},
            ["out"],
        ),
        Extreme(
            "%dx%d %d" % (_rows_, _cols, _offset),
            "triu_indices",
            {},
            {"row": _rows_, "col": _cols, "offset": _offset, "dtype": 3},
            ["out"],
        ),
    ]
