"""Convolutions: zeros, infinities and nan beside padding and beside filters of zero; overflow, one
cell, no input channel left over.
"""

import numpy as np

from ..case import Extreme

NAN, INF = np.nan, np.inf
PLANES = {
    "zeros": np.zeros((1, 2, 3, 3)),
    "negative zeros": np.full((1, 2, 3, 3), -0.0),
    "great": np.array([3e38, 3e38, -3e38] * 6).reshape(1, 2, 3, 3),
    "tiny": np.array([1e-30, -1e-30, 2e-30] * 6).reshape(1, 2, 3, 3),
    "infinite": np.array([INF] + [1, 2, 3, -1] * 4 + [0.5]).reshape(1, 2, 3, 3),
    "nan": np.array([NAN] + [1, 2, 3, -1] * 4 + [0.5]).reshape(1, 2, 3, 3),
}
FILTERS = {"ones": np.ones(4), "zeros": np.zeros(4), "one infinite": np.array([INF, 1, 1, 1])}
CASES = []


def conv(op, label, x, w, paddings, **attrs):
    return Extreme(
        label,
        op,
        {"Input": x, "Filter": w},
        dict(attrs, paddings=paddings),
        ["Output"],
        grad=["Input", "Filter"],
    )


def chosen(dtype, what, kind):
    """Every plane beside ones; what is infinite beside zeros; the rest says nothing more, but takes
    time.
    """
    if dtype == "float64" and what not in ("infinite", "tiny"):
        return False
    return kind == "ones" or (what, kind) in (("infinite", "zeros"), ("zeros", "one infinite"))


for dtype in ("float32", "float64"):
    for what in sorted(PLANES):
        x = PLANES[what].astype(dtype)
        for kind in sorted(FILTERS):
            if not chosen(dtype, what, kind):
                continue
            cell, label = (
                FILTERS[kind].reshape(1, 1, 2, 2).astype(dtype),
                "%s %s, filter %s" % (dtype, what, kind),
            )
            wide, deep = np.concatenate([cell, -cell], 1), np.concatenate([cell, cell], 0)
            for padding in (0, 1) if dtype == "float32" else (1,):
                name = "%s, padding %d" % (label, padding)
                CASES += [
                    conv("conv2d", name, x, wide, [padding] * 2),
                    conv("conv2d_transpose", name, x, deep, [padding] * 2),
                ]
            CASES += [conv("depthwise_conv2d", label, x, deep, [1, 1], groups=2)]
            if kind == "ones" or what == "infinite":
                CASES += [
                    conv("depthwise_conv2d_transpose", label, x, deep, [1, 1], groups=2),
                    conv(
                        "conv3d",
                        label,
                        x.reshape(1, 2, 1, 3, 3),
                        wide.reshape(1, 2, 1, 2, 2),
                        [0, 1, 1],
                    ),
                    conv(
                        "conv3d_transpose",
                        label,
                        x.reshape(1, 2, 1, 3, 3),
                        deep.reshape(2, 1, 1, 2, 2),
                        [0, 1, 1],
                    ),
                ]
