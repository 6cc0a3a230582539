"""Networks whose blocks change state that is not a parameter, as control_nets.py has others:
statistics, a rate.
"""

try:
    from control_nets import X, parameter, positive
except ImportError:
    from .control_nets import X, parameter, positive


def norm_in_steps(fluid):
    """a StaticRNN with a case in it that normalises, and the same statistics once more behind it"""
    layers = fluid.layers
    x, w = layers.data("x", [4]), parameter(layers, fluid, "w", [4])
    names = {
        "param_attr": "s",
        "bias_attr": "b",
        "moving_mean_name": "mean",
        "moving_variance_name": "variance",
    }
    h = x * w
    given, begin = (
        layers.stack([h, layers.scale(h, 2.0), layers.scale(h, -1.0)]),
        layers.scale(h, 0.1),
    )
    rnn = layers.StaticRNN()
    with rnn.step():
        row, before = rnn.step_input(given), rnn.memory(init=begin)
        after = layers.cond(
            positive(layers, row), lambda: layers.batch_norm(row * w, **names), lambda: row * w
        )
        after = layers.tanh(after + before)
        rnn.update_memory(before, after)
        rnn.step_output(after)
    return layers.mean(layers.square(layers.batch_norm(layers.reduce_sum(rnn(), 0), **names)) * x)


def switch_in_while(fluid):
    """a rate that the cases of a Switch change in a loop that is differentiated, and an IfElse"""
    layers = fluid.layers
    x, w = layers.data("x", [4]), parameter(layers, fluid, "w", [4])
    rate = layers.create_global_var([1], 1.0, "float32", persistable=True, name="rate")
    i, n = (layers.fill_constant([1], "int64", k) for k in (0, 3))
    states = layers.array_write(x * w, i)
    going = layers.less_than(i, n)
    with layers.While(going).block():
        before = layers.array_read(states, i)
        total = layers.reduce_sum(before, 1, keep_dim=True)
        both = layers.IfElse(layers.less_than(total, total * 0.0))
        with both.true_block():
            both.output(layers.tanh(both.input(before) * w))
        with both.false_block():
            both.output(both.input(before) * 0.5 + w)
        with layers.Switch() as chosen:
            with chosen.case(layers.equal(i, layers.fill_constant([1], "int64", 1))):
                layers.assign(rate * 0.5, rate)
            with chosen.default():
                layers.assign(rate * 2.0, rate)
        layers.increment(i)
        layers.array_write(both()[0], i, states)
        layers.less_than(i, n, cond=going)
    return layers.mean(layers.square(layers.array_read(states, n)))


NETS = [norm_in_steps, switch_in_while]
KEPT = ("mean", "variance", "rate")  # what is recorded besides parameters
FEEDS = {net.__name__: [{"x": X}, {"x": -X}, {"x": X[:, ::-1].copy()}] for net in NETS}
