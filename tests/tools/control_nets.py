"""Networks with control flow, as functions of the fluid module: what they are differentiated by is
up to the caller.

Each returns the loss; what must be fed stands in FEEDS, by data variable.
"""

import numpy as np

X = np.array([[0.5, -1.0, 2.0, 0.25], [1.5, 0.25, -0.5, -2.0], [-0.75, 1.0, 0.125, 0.5]], "float32")


def positive(layers, v):
    return layers.less_than(layers.fill_constant([1], "float32", 0.0), layers.reduce_sum(v))


def parameter(layers, fluid, name, shape):
    return layers.create_parameter(shape, "float32", name=name)


def cond(fluid):
    layers = fluid.layers
    x = layers.data("x", [4])
    h = layers.fc(x, 4, param_attr=fluid.ParamAttr(name="w"), bias_attr=fluid.ParamAttr(name="b"))
    out = layers.cond(positive(layers, h), lambda: h * 2.0, lambda: layers.tanh(h))
    return layers.mean(layers.square(out))


def cond_nested(fluid):
    """a parameter captured twice, in branches of several depths"""
    layers = fluid.layers
    x = layers.data("x", [4])
    w = parameter(layers, fluid, "w", [4])
    h = x * w

    def inner():
        return layers.cond(positive(layers, w), lambda: h * w, lambda: layers.tanh(h) * w)

    return layers.mean(
        layers.square(layers.cond(positive(layers, x), inner, lambda: layers.scale(h, 3.0)))
    )


def cond_stop_gradient(fluid):
    layers = fluid.layers
    x = layers.data("x", [4])
    w = parameter(layers, fluid, "w", [4])

    def inner():
        half = x * w
        half.stop_gradient = True
        return half * w

    return layers.mean(layers.square(layers.cond(positive(layers, x), inner, lambda: x * w)))


def cond_unused_result(fluid):
    layers = fluid.layers
    x = layers.data("x", [4])
    w = parameter(layers, fluid, "w", [4])
    h = x * w
    used, _ = layers.cond(positive(layers, x), lambda: (h + h, h * 2.0), lambda: (h * w, h * 3.0))
    return layers.mean(layers.square(used))


def case(fluid):
    layers = fluid.layers
    x = layers.data("x", [4])
    w = parameter(layers, fluid, "w", [4])
    out = layers.case(
        [(positive(layers, x), lambda: x * w), (positive(layers, w), lambda: layers.tanh(x) * w)],
        lambda: x - w,
    )
    return layers.mean(layers.square(out))


def switch_case(fluid):
    layers = fluid.layers
    x = layers.data("x", [4])
    w = parameter(layers, fluid, "w", [4])
    index = layers.cast(layers.reduce_sum(x), "int32")
    out = layers.switch_case(
        index, {1: lambda: x * w, 2: lambda: layers.tanh(x) * w, 5: lambda: x - w}
    )
    return layers.mean(layers.square(out))


def switch(fluid):
    """a learning rate chosen by cases, and no gradient through them"""
    layers = fluid.layers
    x = layers.data("x", [4])
    w = parameter(layers, fluid, "w", [4])
    rate = layers.fill_constant([1], "float32", 0.0)
    with layers.Switch() as chosen:
        with chosen.case(positive(layers, x)):
            layers.assign(layers.fill_constant([1], "float32", 2.0), rate)
        with chosen.default():
            layers.assign(layers.fill_constant([1], "float32", 0.5), rate)
    return layers.mean(layers.square(x * w) * rate)


def while_array(fluid):
    layers = fluid.layers
    x = layers.data("x", [4])
    w = parameter(layers, fluid, "w", [4])
    i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    states = layers.array_write(x * w, i)
    going = layers.less_than(i, n)
    loop = layers.While(going)
    with loop.block():
        state = layers.array_read(states, i)
        after = layers.tanh(state * w + x)
        layers.increment(i)
        layers.array_write(after, i, states)
        layers.less_than(i, n, cond=going)
    return layers.mean(layers.square(layers.array_read(states, n)))


def while_joined(fluid):
    """the entries that a loop writes, joined after it"""
    layers = fluid.layers
    x = layers.data("x", [4])
    w = parameter(layers, fluid, "w", [4])
    i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    states, outs = layers.array_write(x * w, i), layers.create_array("float32")
    going = layers.less_than(i, n)
    loop = layers.While(going)
    with loop.block():
        after = layers.tanh(layers.array_read(states, i) * w + x)
        layers.array_write(layers.scale(after, 2.0), i, outs)
        layers.increment(i)
        layers.array_write(after, i, states)
        layers.less_than(i, n, cond=going)
    joined, _ = layers.tensor_array_to_tensor(outs, axis=0)
    return layers.mean(layers.square(joined))


def while_loop(fluid):
    layers = fluid.layers
    x = layers.data("x", [4])
    w = parameter(layers, fluid, "w", [4])
    i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    _, y = layers.while_loop(
        lambda i, y: layers.less_than(i, n),
        lambda i, y: [i + 1, layers.tanh(y * w + x)],
        [i, x * w],
    )
    return layers.mean(layers.square(y))


def while_in_cond(fluid):
    layers = fluid.layers
    x = layers.data("x", [4])
    w = parameter(layers, fluid, "w", [4])

    def looped():
        i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 2)
        _, y = layers.while_loop(
            lambda i, y: layers.less_than(i, n), lambda i, y: [i + 1, y * w], [i, x * w]
        )
        return y

    return layers.mean(layers.square(layers.cond(positive(layers, x), looped, lambda: x * w)))


def cond_in_while(fluid):
    layers = fluid.layers
    x = layers.data("x", [4])
    w = parameter(layers, fluid, "w", [4])
    i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)

    def body(i, y):
        return [i + 1, layers.cond(positive(layers, y), lambda: y * w, lambda: layers.tanh(y) + w)]

    _, y = layers.while_loop(lambda i, y: layers.less_than(i, n), body, [i, x * w])
    return layers.mean(layers.square(y))


def while_in_while(fluid):
    layers = fluid.layers
    x = layers.data("x", [4])
    w = parameter(layers, fluid, "w", [4])
    i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 2)

    def body(i, y):
        j, m = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
        _, z = layers.while_loop(
            lambda j, z: layers.less_than(j, m),
            lambda j, z: [j + 1, layers.tanh(z * w)],
            [j, y + x],
        )
        return [i + 1, z]

    _, y = layers.while_loop(lambda i, y: layers.less_than(i, n), body, [i, x * w])
    return layers.mean(layers.square(y))


def printed(fluid):
    layers = fluid.layers
    x = layers.data("x", [4])
    w = parameter(layers, fluid, "w", [4])
    return layers.mean(
        layers.square(
            layers.Print(x * w, message="the product", summarize=3, print_phase="forward")
        )
    )


def python(fluid):
    """functions of NumPy, forward and backward"""
    layers = fluid.layers
    x = layers.data("x", [4])
    w = parameter(layers, fluid, "w", [4])
    out = (
        fluid.default_main_program()
        .current_block()
        .create_var(name="out", shape=[-1, 4], dtype="float32")
    )
    layers.py_func(
        lambda h: np.array(h) ** 3, x * w, out, lambda h, d: 3 * np.array(h) ** 2 * np.array(d), out
    )
    return layers.mean(out)


def slope_in_a_case(fluid):
    """a penalty on a slope, in a case: what it is the slope of follows from w, so the gradient by w
    is of second order
    """
    layers = fluid.layers
    x = layers.data("x", [4])
    w = parameter(layers, fluid, "w", [4])

    def penalty():
        mixed = x * w
        (slope,) = fluid.gradients(
            [layers.reduce_sum(layers.square(layers.square(mixed)))], [mixed]
        )
        return layers.reduce_mean(layers.square(slope))

    return layers.mean(layers.cond(positive(layers, x), penalty, lambda: layers.reduce_mean(x * w)))


def slope_in_a_step(fluid):
    """each step of a StaticRNN goes down the slope of a function of its own"""
    layers = fluid.layers
    x = layers.data("x", [4])
    first, both = layers.fill_constant([3, 4], "float32", 0.5), layers.stack([x, x])
    rnn = layers.StaticRNN()
    with rnn.step():
        rnn.step_input(both)
        state = rnn.memory(init=first)
        here = layers.assign(state)
        here.stop_gradient = False
        (slope,) = fluid.gradients([layers.reduce_sum(layers.square(here))], [here])
        moved = state - slope * 0.25
        rnn.update_memory(state, moved)
        rnn.step_output(moved)
    w = parameter(layers, fluid, "w", [4])
    return layers.mean(layers.square(rnn() * w))


NETS = [
    slope_in_a_case,
    slope_in_a_step,
    printed,
    python,
    cond,
    cond_nested,
    cond_stop_gradient,
    cond_unused_result,
    case,
    switch_case,
    switch,
    while_array,
    while_joined,
    while_loop,
    while_in_cond,
    cond_in_while,
    while_in_while,
]
FEEDS = {net.__name__: [{"x": X}, {"x": -X}, {"x": X[:, ::-1].copy()}] for net in NETS}


def initial(name, shape):
    """what a parameter begins with"""
    size = int(np.prod(shape))
    return (
        np.sin(np.arange(1, size + 1, dtype="float32") * 0.7 + len(name))
        .reshape(shape)
        .astype("float32")
    )


def fed(fluid, value):
    """a value as it is fed: an array, or a list of sequences as a LoDTensor, or rows with lengths
    by levels
    """
    if isinstance(value, dict):
        return fluid.create_lod_tensor(value["rows"], value["lengths"], fluid.CPUPlace())
    if not isinstance(value, list):
        return value
    return fluid.create_lod_tensor(
        np.concatenate(value), [[len(v) for v in value]], fluid.CPUPlace()
    )
