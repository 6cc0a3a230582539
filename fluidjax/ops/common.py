"""Which families of ops most programs use: they are imported at once, the others when they are
asked for.
"""

LAST = "grad"  # it ties ops of several families together
COMMON = (
    "activation", "collective", "compare", "conv", "elementwise", "embed", "fill", "index", "layout", "loss", "manip", "math",
    "matrix", "metric", "norm", "optim", "pool", "random", "reduce", "slicing", LAST,
)  # fmt: skip
