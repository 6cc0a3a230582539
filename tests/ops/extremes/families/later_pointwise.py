"""Pointwise ops of later Paddles: every special value, bounds of their domains, integers at their
limits.
"""

import numpy as np

from ..case import Extreme, few, integer_pairs, integers, pairs, specials, unary, whole

CASES = []
for _op in (
    "acosh",
    "asinh",
    "atanh",
    "cosh",
    "digamma",
    "erfinv",
    "expm1",
    "lgamma",
    "log10",
    "log2",
    "silu",
    "sinh",
    "tan",
    "trunc",
):
    # far out, or beside a pole, compilers decide the last digits
    CASES += unary(_op, without=(0.5, 1.5, 2.5) if _op in ("digamma", "lgamma") else ())
CASES += unary("celu", {"alpha": 1.0}) + unary("celu", {"alpha": 0.5}, label="alpha=0.5")
CASES += unary("logit", {"eps": 0.0}, label="eps=0") + unary(
    "logit", {"eps": 0.25}, label="eps=0.25", bounds=(0.25, 0.75)
)
CASES += [
    c for op in ("isfinite_v2", "isinf_v2", "isnan_v2", "angle") for c in unary(op, grad=False)
]
for _dtype in ("float32", "float64"):
    _x = specials(_dtype)
    CASES += [
        Extreme(_dtype, op, {"x": _x}, {}, ["out"], grad=["x"], pointwise=True)
        for op in ("gammaln", "i0", "i0e", "i1", "i1e")
    ]
    _a, _b = pairs(_dtype)
    CASES += [
        Extreme(_dtype, "atan2", {"X1": _a, "X2": _b}, grad=["X1", "X2"], pointwise=True),
        Extreme(_dtype, "elementwise_fmax", {"X": _a, "Y": _b}, grad=["X", "Y"], pointwise=True),
        Extreme(_dtype, "elementwise_fmin", {"X": _a, "Y": _b}, grad=["X", "Y"], pointwise=True),
        Extreme(
            _dtype, "elementwise_heaviside", {"X": _a, "Y": _b}, grad=["X", "Y"], pointwise=True
        ),
        Extreme(
            _dtype, "copysign", {"x": _a, "y": _b}, {}, ["out"], grad=["x", "y"], pointwise=True
        ),
        Extreme(_dtype, "nextafter", {"x": _a, "y": _b}, {}, ["out"], pointwise=True),
        Extreme(
            _dtype,
            "lerp",
            {
                "X": _a,
                "Y": _b,
                "Weight": np.resize(few(_dtype)[[0, 2, 3, 4, 11, 17, 19]], _a.shape),
            },
            grad=["X", "Y"],
            pointwise=True,
        ),
    ]
    CASES += [
        Extreme(
            "%s %s" % (_dtype, "equal nan" if nan else "plain"),
            "isclose",
            {"Input": _a, "Other": _b},
            {"rtol": "1e-05", "atol": "1e-08", "equal_nan": nan},
            pointwise=True,
        )
        for nan in (False, True)
    ]
for _op in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    CASES += integers(_op, 2)
CASES += integers("bitwise_not") + integers("trunc", dtypes=("int32", "int64"))
for _dtype in ("int32", "int64", "uint8"):
    _v, _ = integer_pairs(_dtype)
    _by = whole(np.resize(np.array([0, 1, 2, 7], _dtype), _v.shape))[: len(_v)]
    CASES += [
        Extreme(
            "%s %s" % (_dtype, "arithmetic" if signed else "logical"),
            op,
            {"x": _v, "y": _by},
            {"is_arithmetic": signed},
            ["out"],
            pointwise=True,
        )
        for op in ("bitwise_left_shift", "bitwise_right_shift")
        for signed in (True, False)
    ]
