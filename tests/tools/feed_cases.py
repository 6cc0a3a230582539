"""What is fed to a variable of layers.data, of other shapes and dtypes than it declares, and the op
that reads it.
"""

import numpy as np


def constant(fluid, shape, value):
    return fluid.layers.fill_constant(shape, "float32", value)


def half(fluid):
    return fluid.ParamAttr(initializer=fluid.initializer.Constant(0.5))


def softened(fluid):
    return fluid.layers.softmax(constant(fluid, [2, 5], 1.0))


NETS = {  # name: (declared sample, declared dtype, the op)
    "relu": ([4], "float32", lambda fluid, x: fluid.layers.relu(x)),
    "scale": ([4], "float32", lambda fluid, x: fluid.layers.scale(x, 2.0, 1.0)),
    "fc": ([4], "float32", lambda fluid, x: fluid.layers.fc(x, 2, param_attr=half(fluid))),
    "add": ([4], "float32", lambda fluid, x: x + constant(fluid, [1], 1.0)),
    "cast": ([1], "int64", lambda fluid, x: fluid.layers.cast(x, "float32")),
    "of bools": ([1], "bool", lambda fluid, x: fluid.layers.cast(x, "float32")),
    "one_hot": ([1], "int64", lambda fluid, x: fluid.one_hot(x, 5)),
    "embedding": ([1], "int64", lambda fluid, x: fluid.layers.embedding(x, [5, 2], param_attr=half(fluid))),
    "cross_entropy": ([1], "int64", lambda fluid, x: fluid.layers.cross_entropy(softened(fluid), x)),
    "accuracy": ([1], "int64", lambda fluid, x: fluid.layers.accuracy(softened(fluid), x)),
    "square_error": ([1], "float32", lambda fluid, x: fluid.layers.square_error_cost(constant(fluid, [2, 1], 3.0), x)),
    "sigmoid": (
        [1], "float32",
        lambda fluid, x: fluid.layers.sigmoid_cross_entropy_with_logits(constant(fluid, [2, 1], 1.0), x),
    ),
    "log_loss": ([1], "float32", lambda fluid, x: fluid.layers.log_loss(constant(fluid, [2, 1], 0.3), x)),
    "image": ([784], "float32", lambda fluid, x: fluid.layers.fc(x, 2, param_attr=half(fluid))),
    "conv2d": ([3, 4, 4], "float32", lambda fluid, x: fluid.layers.conv2d(x, 1, 3, param_attr=half(fluid))),
    "rate": ([1], "float32", lambda fluid, x: x * 2.0),
}  # fmt: skip


def numbers(dtype, *shape):
    return (np.arange(int(np.prod(shape))) % 3).astype(dtype).reshape(shape)


def arrays(dtype, *shapes):
    return [numbers(dtype, *shape) for shape in shapes]


FLOATS = arrays("float32", (2, 4), (1, 1, 4), (4,), (2, 2, 2), (3, 8)) + [3.0, 3]
OTHERS = [numbers(dtype, 2, 4) for dtype in ("float64", "int64", "int32", "bool")]
IDS = (
    arrays("int64", (2, 1), (2,), (2, 1, 1))
    + [1]
    + [numbers(dtype, 2, 1) for dtype in ("int32", "float32", "bool")]
)
COSTS = arrays("float32", (2, 1), (2,), (2, 1, 1), (1, 2), (2, 2)) + [
    1.0,
    numbers("float64", 2, 1),
    numbers("int64", 2, 1),
]
FED = {
    **{name: FLOATS + OTHERS for name in ("relu", "scale", "fc", "add")},
    **{name: IDS for name in ("cast", "one_hot", "embedding", "cross_entropy", "accuracy")},
    **{name: COSTS for name in ("square_error", "log_loss")},
    "of bools": [numbers("bool", 2), numbers("int32", 2, 1), True],
    "image": arrays("float32", (2, 1, 28, 28), (2, 28, 28), (784,)),
    "conv2d": arrays("float32", (3, 4, 4), (2, 48), (2, 4, 4, 3)),
    "rate": [0.5, 1, True, np.float32(0.5), np.float64(0.5), np.array(0.5, "float32"), numbers("float32", 1, 1)],
}  # fmt: skip


def key(value):
    """a fed value in words"""
    return (
        "%s%s" % (value.dtype, list(value.shape))
        if isinstance(value, np.ndarray)
        else "%s %s" % (type(value).__name__, value)
    )


def build(fluid, name):
    """the variable's output in a new main program, which the caller guards"""
    shape, dtype, op = NETS[name]
    return op(fluid, fluid.layers.data("x", shape, dtype=dtype))
