"""The families of ops that most programs use. They are imported at once, the others at the first
look-up.
"""

LAST = "grad"  # it ties ops of several families together
COMMON = (
    "activation", "collective", "compare", "conv", "elementwise", "embed", "fill", "index", "layout", "loss", "manip", "math",
    "matrix", "metric", "norm", "optim", "pool", "random", "reduce", "slicing", LAST,
)  # fmt: skip
