"""Recurrent networks that Paddle 1.8.5 and this train alike; see tests/tools/record_recurrent.py.
For Python 3.8 and numpy alone.
"""

import zlib

import numpy as np

from tests.layers import cases

STEPS = 3
LENGTHS = np.array([5, 2, 4], "int64")


def fed(fluid, name, shape):
    """a variable to feed that has a gradient: 1.8.5 wants one of an input of every loop"""
    var = fluid.data(name, shape)
    var.stop_gradient = False
    return var


def static_rnn(fluid):
    """the network of tests/layers/cases.py on a batch of 3"""
    L = fluid.layers
    first, second = cases.static_rnn(
        fluid, fed(fluid, "x", [5, 3, 3]), fed(fluid, "y", [5, 3, 2]), fluid.data("z", [3, 4])
    )
    return L.reduce_mean(L.square(first)) + L.reduce_mean(second)


def unused_output(fluid):
    """only one of two outputs is used, and one of two memories; a step's gradient stops within"""
    L = fluid.layers
    loop = L.StaticRNN()
    with loop.step():
        a = loop.step_input(fed(fluid, "x", [5, 3, 3]))
        m, n = (loop.memory(shape=[-1, 3], batch_ref=a) for _ in range(2))
        h = L.fc(L.concat([a, m], 1), 3, act="sigmoid")
        loop.update_memory(m, h)
        still = L.scale(n, 0.5)
        still.stop_gradient = True
        loop.update_memory(n, L.elementwise_add(still, h))
        loop.output(h, L.elementwise_add(h, n))
    return L.reduce_sum(loop()[1])


def lstm(fluid):
    """backwards, with lengths"""
    L = fluid.layers
    out, (hidden, cell) = L.rnn(
        L.LSTMCell(4),
        fed(fluid, "x", [3, 5, 3]),
        sequence_length=fluid.data("lengths", [3], "int64"),
        is_reverse=True,
    )
    return L.reduce_mean(out) + L.reduce_sum(L.elementwise_mul(hidden, cell))


def gru(fluid):
    """two layers, time major"""
    L = fluid.layers
    x = fed(fluid, "x", [5, 3, 3])
    for name in ("one", "two"):
        x, last = L.rnn(L.GRUCell(4, name=name), x, time_major=True)
    return L.reduce_mean(L.square(x)) + L.reduce_mean(last)


NETS = {f.__name__: f for f in (static_rnn, unused_output, lstm, gru)}


def numbers(name, shape):
    """numbers in [-1, 1) for a variable"""
    rng = np.random.RandomState(zlib.crc32(name.encode()) & 0x7FFFFFFF)
    return rng.uniform(-1, 1, tuple(shape)).astype("float32")


def trained(fluid, name):
    """the losses of a few steps of gradient descent, then every parameter's sum of squares"""
    main, startup = fluid.Program(), fluid.Program()
    with (
        fluid.unique_name.guard(),
        fluid.program_guard(main, startup),
        fluid.scope_guard(fluid.Scope()),
    ):
        loss = NETS[name](fluid)
        fluid.optimizer.SGD(0.5).minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        scope, parameters = fluid.global_scope(), main.global_block().all_parameters()
        for p in parameters:
            scope.find_var(p.name).get_tensor().set(numbers(p.name, p.shape), fluid.CPUPlace())
        inputs = [v for v in main.global_block().vars.values() if v.is_data]
        feed = {
            v.name: LENGTHS if v.name == "lengths" else numbers(v.name, v.shape) for v in inputs
        }
        losses = [
            float(np.asarray(exe.run(main, feed=feed, fetch_list=[loss])[0]).reshape(-1)[0])
            for _ in range(STEPS)
        ]
        after = {
            p.name: float(np.square(np.array(scope.find_var(p.name).get_tensor())).sum())
            for p in parameters
        }
        return {"losses": losses, "parameters": after}
