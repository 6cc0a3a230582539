"""Calls of Fluid's small names, as code that runs on Paddle 1.8.5 (record_small_names.py) and here
(test_small_names.py).

Importable on Python 3.8 with nothing but NumPy.
"""

import io
from contextlib import redirect_stdout

import numpy as np


def net(fluid):
    """an image net with every kind of layer that summary counts, trained"""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.layers.data("x", [3, 8, 8])
        y = fluid.layers.conv2d(x, 4, 3, padding=1, act="relu")
        y = fluid.layers.conv2d(y, 4, 3, groups=4, bias_attr=False, use_cudnn=False)
        y = fluid.layers.batch_norm(y, act="sigmoid")
        y = fluid.layers.pool2d(y, 2, pool_stride=2)
        y = fluid.layers.prelu(y, "all")
        y = fluid.layers.fc(y, 5, act="tanh")
        fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(y))
    return main


def fixed(fluid):
    """no open dimension, and more than a megabyte"""
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        x = fluid.layers.data("x", [700, 500], append_batch_size=False)
        fluid.layers.cast(fluid.layers.leaky_relu(x), "float64")
    return main


def said(call):
    """what a call raises, by class name; else its result"""
    try:
        return call()
    except Exception as e:
        kinds = [
            k.__name__
            for k in type(e).__mro__
            if k in (ValueError, TypeError, AssertionError, ZeroDivisionError)
        ]
        return kinds[:1] or ["Exception"]


def table(fluid, program):
    """what summary prints, without its last sentence"""
    out = io.StringIO()
    with redirect_stdout(out):
        fluid.contrib.model_stat.summary(program)
    return out.getvalue().splitlines()[
        : out.getvalue().count("\n") - out.getvalue().partition("Total FLOPs")[2].count("\n") + 1
    ]


def average(fluid, *pairs):
    a = fluid.average.WeightedAverage()
    for value, weight in pairs:
        a.add(value, weight)
    return np.asarray(a.eval()).tolist()


def _open_twice(fluid):
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        fluid.layers.relu(fluid.data("x", [None, None, 3]))
    return main


def counted(fluid):
    """_decay_step_counter in a program, twice: ops, variables, startup ops"""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        step = fluid.layers.learning_rate_scheduler._decay_step_counter(3)
        fluid.layers.learning_rate_scheduler._decay_step_counter(7)
    shown = [
        [
            o.type,
            o.input_arg_names,
            o.output_arg_names,
            sorted((k, o.attr(k)) for k in ("step", "value") if o.has_attr(k)),
        ]
        for p in (main, startup)
        for o in p.global_block().ops
    ]
    return [shown, step.name, sorted(main.global_block().vars)]


def fetched(fluid):
    """_fetch_var, _get_var, _clone_var_in_block_"""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(
        fluid.core.Scope()
    ):
        w = fluid.layers.create_parameter(
            [2, 2], "float32", name="w", default_initializer=fluid.initializer.Constant(2.0)
        )
        fluid.Executor(fluid.CPUPlace()).run(startup)
        value = fluid.executor._fetch_var("w")
        other = fluid.Program().global_block()
        copy = fluid.io._clone_var_in_block_(other, main.global_block().var("w"))
        found = fluid.framework._get_var("w", main)
        return [
            np.asarray(value).tolist(),
            type(value).__name__ == "ndarray",
            found is w,
            copy.name,
            list(copy.shape),
            copy.persistable,
            copy.lod_level,
            said(lambda: fluid.executor._fetch_var("nothing")),
            said(lambda: fluid.framework._get_var("no", main)),
            isinstance(fluid.executor._fetch_var("w", return_numpy=False), fluid.LoDTensor),
        ]


def collectives(fluid):
    """the layers over all trainers: their ops and variables, and what they refuse"""
    layers, main = fluid.layers.collective, fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        x, kept = (
            fluid.data("x", [4, 3]),
            fluid.layers.create_global_var([2], 0.0, "float32", persistable=True, name="kept"),
        )
        made = [
            layers._allreduce(x),
            layers._allreduce(x, reduce_type="min", sync_mode=True),
            layers._allreduce(x, out=kept, reduce_type="prod"),
            layers._broadcast(x, 1),
            layers._c_allreduce(x),
            layers._c_allreduce(x, reduce_type="max", ring_id=2, use_calc_stream=True),
            layers._c_allreduce(kept, out=kept),
            layers._c_broadcast(x, 1, 3),
            layers._c_allgather(x, 2),
            layers._c_allgather(kept, 2),
            layers._c_reducescatter(x, 2),
            layers._c_sync_calc_stream(x),
            layers._c_sync_comm_stream(x, 1),
        ]
    names = ("reduce_type", "sync_mode", "root", "ring_id", "use_calc_stream", "nranks")
    return [
        [
            [
                o.type,
                o.input_arg_names,
                o.output_arg_names,
                [[n, o.attr(n)] for n in names if o.has_attr(n)],
            ]
            for o in main.global_block().ops
        ],
        [[v.name, list(v.shape), v.persistable, v.stop_gradient] for v in made],
        said(lambda: layers._allreduce(x, reduce_type="mean")),
        said(lambda: layers._c_allreduce(x, reduce_type="mean")),
        said(lambda: layers._c_reducescatter(x, 3)),
        said(lambda: layers._c_reducescatter(3, 3)),
    ]


CASES = {
    "collectives": lambda f, p: collectives(f),
    "usage": lambda f, p: list(f.contrib.memory_usage(net(f), 16)),
    "usage of megabytes": lambda f, p: list(f.contrib.memory_usage(fixed(f), 1)),
    "usage of nothing": lambda f, p: list(f.contrib.memory_usage(f.Program(), 1)),
    "usage, batch 0": lambda f, p: said(lambda: f.contrib.memory_usage(net(f), 0)),
    "usage, no program": lambda f, p: said(lambda: f.contrib.memory_usage("net", 1)),
    "usage, open twice": lambda f, p: said(lambda: f.contrib.memory_usage(_open_twice(f), 1)),
    "frequency": lambda f, p: [
        [list(pair) for pair in pairs] for pairs in f.contrib.op_freq_statistic(net(f))
    ],
    "frequency, no program": lambda f, p: said(lambda: f.contrib.op_freq_statistic(3)),
    "summary": lambda f, p: table(f, net(f)),
    "summary of a fixed batch": lambda f, p: table(f, fixed(f)),
    "summary of nothing": lambda f, p: table(f, f.Program()),
    "average": lambda f, p: average(f, (2.0, 1), (4.0, 2)),
    "average of arrays": lambda f, p: average(
        f, (np.array([1.0, 3.0]), 1), (np.array([2.0, 5.0]), np.array([3.0]))
    ),
    "average of nothing": lambda f, p: said(lambda: average(f)),
    "average of a list": lambda f, p: said(lambda: average(f, ([1.0], 1))),
    "average, weight": lambda f, p: said(lambda: average(f, (1.0, np.array([1.0, 2.0])))),
    "average, no weight": lambda f, p: said(lambda: average(f, (1.0, 0))),
    "counter": lambda f, p: counted(f),
    "private": lambda f, p: fetched(f),
    "place": lambda f, p: f.framework._current_expected_place(),
    "to_text": lambda f, p: [
        p.compat.to_text(v) for v in (b"a", "b", None, 1.5, True, [b"c", "d"], {b"k": b"v"})
    ],
    "to_text set": lambda f, p: sorted(p.compat.to_text({b"a", "b"})),
    "to_text number": lambda f, p: [
        p.compat.to_text(3),
        said(lambda: p.compat.to_bytes(3)),
        said(lambda: p.compat.to_text(b"\xff")),
    ],
    "to_bytes": lambda f, p: [repr(p.compat.to_bytes(v)) for v in (b"a", "b", None, [b"c", "d"])],
    "to_bytes utf8": lambda f, p: repr(p.compat.to_bytes("\u00e9", "latin1")),
    "round": lambda f, p: [
        p.compat.round(v, d)
        for v in (0.5, 1.5, 2.5, -0.5, -2.5, 0.0, -0.0, 2.675, 1e10)
        for d in (0, 1, 2)
    ],
    "floor_division": lambda f, p: [
        p.compat.floor_division(7, 2),
        p.compat.floor_division(-7, 2),
        p.compat.floor_division(7.5, 2),
    ],
    "message": lambda f, p: p.compat.get_exception_message(ValueError("so")),
}
