"""Activations: all special values, the bounds of every piecewise one, ties of maxout."""

import numpy as np

from ..case import Extreme, integers, unary

PLAIN = [
    "logsigmoid",
    "tanh_shrink",
    "log",
    "log1p",
    "square",
    "abs",
    "sin",
    "cos",
    "asin",
    "acos",
    "atan",
    "erf",
    "softplus",
    "softsign",
    "sigmoid",
    "tanh",
    "exp",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "ceil",
    "floor",
    "round",
    "relu",
    "relu6",
    "leaky_relu",
    "elu",
    "selu",
    "gelu",
    "brelu",
    "soft_relu",
    "softshrink",
    "hard_shrink",
    "hard_swish",
    "swish",
    "mish",
    "stanh",
    "thresholded_relu",
]
NEAR_HALF = 0.49999997
CASES = [case for op in PLAIN for case in unary(op, bounds=[NEAR_HALF])]
# 0.2 * 2.4999998 + 0.5 is 1 or the number below it, with a fused multiply-add
CASES += unary("hard_sigmoid", without=[2.5])
CASES += unary("relu6", {"threshold": 2.0}, label="threshold=2") + unary(
    "leaky_relu", {"alpha": 2.0}, label="alpha=2"
)
CASES += unary("leaky_relu", {"alpha": -0.5}, label="alpha=-0.5")
CASES += unary("elu", {"alpha": 0.5}, label="alpha=0.5") + unary(
    "elu", {"alpha": -1.0}, label="alpha=-1"
)
CASES += unary("gelu", {"approximate": True}, label="approximate")
CASES += unary("brelu", {"t_min": -1.0, "t_max": 2.0}, label="[-1, 2]") + unary(
    "brelu", {"t_min": 2.0, "t_max": 2.0}, label="[2, 2]"
)
CASES += unary("soft_relu", {"threshold": 1.0}, label="threshold=1")
CASES += unary("softshrink", {"lambda": 0.0}, label="lambda=0") + unary(
    "hard_shrink", {"threshold": 0.0}, label="threshold=0"
)
CASES += unary("hard_sigmoid", {"slope": 0.5, "offset": 0.5}, label="slope=0.5")
CASES += unary("hard_swish", {"threshold": 2.0, "scale": 2.0, "offset": 1.0}, label="threshold=2")
CASES += unary("swish", {"beta": 0.0}, label="beta=0") + unary(
    "swish", {"beta": -2.0}, label="beta=-2"
)
CASES += unary("stanh", {"scale_a": 0.0, "scale_b": 1.0}, label="scale_a=0")
CASES += unary("thresholded_relu", {"threshold": 0.0}, label="threshold=0")
CASES += [
    case
    for f in (0.0, 1.0, 2.0, 3.0, 0.5, -1.0, -2.0)
    for case in unary("pow", {"factor": f}, label="factor=%g" % f)
]
CASES += [case for op in ("abs", "square", "pow") for case in integers(op)]


def maxout(label, x, **attrs):
    return Extreme(label, "maxout", {"X": x}, attrs, grad=["X"])


TIES = np.array([1, 1, 1, 0, 2, 2, -1, -1, 0, -0.0, -0.0, 0], "float32").reshape(1, 12, 1, 1)
for dtype in ("float32", "float64"):
    x = np.array(
        [3, 3, -np.inf, -np.inf, np.inf, np.inf, -3e38, -3e38, np.nan, 1, 1, np.nan], dtype
    ).reshape(1, 12, 1, 1)
    CASES += [
        maxout(dtype + " ties", TIES.astype(dtype), groups=3),
        maxout(dtype + " pairs of ties", TIES.astype(dtype), groups=2),
        maxout(dtype + " special", x, groups=2),
        maxout(dtype + " special threes", x, groups=3),
        maxout(dtype + " last axis", TIES.astype(dtype).reshape(1, 1, 1, 12), groups=3, axis=3),
        maxout(dtype + " one", TIES.astype(dtype), groups=1),
    ]
    v = np.array([0, -0.0, 1, -1, 3e38, -3e38, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 2], dtype)
    CASES += [
        Extreme(
            "%s %s alpha=%g" % (dtype, mode, a),
            "prelu",
            {
                "X": v.reshape(2, 3, 2),
                "Alpha": np.full({"all": 1, "channel": 3, "element": (1, 3, 2)}[mode], a, dtype),
            },
            {"mode": mode},
            grad=["X", "Alpha"],
        )
        for mode in ("all", "channel", "element")
        for a in (0.0, 0.25, 2.0, -0.5)
    ]
