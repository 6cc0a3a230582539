"""Scripts that call minimize within a block, as functions of the fluid module: what each trains,
and when, a fed number decides.

Each returns what is fetched. The feeds of its steps stand in FEEDS.
"""

import numpy as np

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5]], "float32")


def parameter(fluid, name):
    return fluid.layers.create_parameter([3], "float32", name=name)


def two_optimizers(fluid):
    """switch_case chooses what is trained, each with an optimizer and a loss of its own"""
    layers = fluid.layers
    x, which = fluid.data("x", [2, 3], "float32"), fluid.data("which", [1], "int32")
    a, b = parameter(fluid, "a"), parameter(fluid, "b")

    def first():
        loss = layers.reduce_mean(layers.square(x * a))
        fluid.optimizer.SGD(0.1).minimize(loss, parameter_list=[a])
        return loss

    def second():
        loss = layers.reduce_mean(layers.tanh(x * b))
        fluid.optimizer.Momentum(0.1, 0.9).minimize(loss, parameter_list=[b])
        return loss

    return layers.switch_case(which, [first, second])


def every_other(fluid):
    """a loss of the block around, which is minimized where the fed number is below 1"""
    layers = fluid.layers
    x, which = fluid.data("x", [2, 3], "float32"), fluid.data("which", [1], "int32")
    w = parameter(fluid, "w")
    loss = layers.reduce_mean(layers.square(layers.tanh(x * w)))

    def train():
        fluid.optimizer.Adam(0.1).minimize(loss)

    layers.cond(layers.less_than(which, layers.fill_constant([1], "int32", 1)), train, lambda: None)
    return loss


def switch(fluid):
    """Switch, with weight decay, and a value that both cases write"""
    layers = fluid.layers
    x, which = fluid.data("x", [2, 3], "float32"), fluid.data("which", [1], "int32")
    w = parameter(fluid, "w")
    out = layers.create_global_var([1], 0.0, "float32", persistable=True, name="out")
    one = layers.fill_constant([1], "int32", 1)
    with layers.Switch() as cases:
        with cases.case(layers.less_than(which, one)):
            loss = layers.reduce_mean(layers.square(x * w))
            fluid.optimizer.SGD(0.1, regularization=fluid.regularizer.L2Decay(0.1)).minimize(loss)
            layers.assign(loss, out)
        with cases.default():
            layers.assign(layers.reduce_mean(x), out)
    return out


NETS = [two_optimizers, every_other, switch]
FEEDS = [{"x": X * (1 + step), "which": np.array([step % 2], "int32")} for step in range(4)]


def initial(name, shape):
    """The value of a parameter when training begins."""
    return np.linspace(-0.5, 1.0, int(np.prod(shape)), dtype="float32").reshape(shape) + np.float32(
        0.25
    ) * (name == "b")
