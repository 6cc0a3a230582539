"""Resizing: one cell, the same size, much larger, much smaller; nan and infinities beside weights
of zero; uint8 at its limits.
"""

import numpy as np

from ..case import Extreme

NAN, INF = np.nan, np.inf
PLANES = {
    "infinite": [[INF, 0, 1], [0, 0, -INF]],
    "nan": [[NAN, 0, 1], [0, 0, 1]],
    "great": [[3e38, 3e38, -3e38], [3e38, 3e38, 3e38]],
    "zeros": [[0, -0.0, 0], [-0.0, -0.0, 0]],
    "tiny": [[1e-30, 2e-30, 0], [1, 0, 1e-30]],
}
RULES = {
    "corners": {"align_corners": True},
    "centres": {"align_corners": False, "align_mode": 0},
    "edges": {"align_corners": False, "align_mode": 1},
}
CASES = []


def resized(method, label, x, size, rule, grad=True):
    deep = method == "trilinear"
    attrs = dict(
        RULES[rule],
        interp_method=method,
        out_h=size[0],
        out_w=size[1],
        **({"out_d": 2} if deep else {}),
    )
    x = np.stack([x, x])[None, None] if deep else x[None, None]
    return Extreme(
        "%s to %dx%d, %s" % (label, size[0], size[1], rule),
        method + "_interp",
        {"X": x},
        attrs,
        grad=["X"] if grad else [],
    )


for method in ("nearest", "bilinear", "trilinear", "bicubic"):
    for rule in sorted(RULES):
        if rule == "edges" and method in ("nearest", "bicubic"):
            continue
        for dtype in ("float32", "float64") if rule == "centres" else ("float32",):
            for what in sorted(PLANES):
                x = np.array(PLANES[what], dtype)
                CASES += [
                    resized(method, "%s %s" % (dtype, what), x, size, rule)
                    for size in ([(2, 3), (3, 5)] if what != "zeros" else [(1, 1)])
                ]
            CASES += [
                resized(method, dtype + " one cell", np.array([[3.5]], dtype), (2, 3), rule),
                resized(
                    method,
                    dtype + " numbers",
                    np.array([[0, 1, 2], [4, 3, 8]], dtype),
                    (1, 1),
                    rule,
                ),
                resized(
                    method,
                    dtype + " numbers",
                    np.array([[0, 1, 2], [4, 3, 8]], dtype),
                    (1, 9),
                    rule,
                ),
            ]
        if method != "bicubic":
            x = np.array([[0, 255, 1], [254, 128, 255]], "uint8")
            CASES += [
                resized(method, "uint8", x, size, rule, grad=False)
                for size in ((1, 1), (2, 3), (5, 7))
            ]
