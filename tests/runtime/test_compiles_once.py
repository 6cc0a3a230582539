"""A program is compiled once for a kind of feed: by its first run, and by no later one."""

from __future__ import annotations

from collections import defaultdict

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers, unique_name
from fluidjax.base.dtypes import numpy_dtype
from fluidjax.compiling.recompiles import Recompiles
from fluidjax.devices.placement import OneDevice
from fluidjax.errors import FluidError
from fluidjax.runtime.compiled import Compiled
from fluidjax.runtime.plan import StepPlan

from ..nets import fresh

EVENT = "/jax/core/compile/backend_compile_duration"


@pytest.fixture
def compiles():
    """A list that grows by one with every compilation."""
    seen: list[str] = []
    listening = [True]

    def listen(event, duration, **_):
        if event == EVENT and listening:
            seen.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield seen
    listening.clear()  # there is no public way to take a listener out


@pytest.mark.parametrize("width", [4, 200])  # 200: parameters too large to be packed
def test_the_second_run_compiles_nothing(compiles, width):
    with fresh(1) as (main, startup):
        x = fluid.data("x", [None, width])
        loss = layers.mean(layers.batch_norm(layers.fc(layers.fc(x, width, act="relu"), width)))
        test = main.clone(for_test=True)
        fluid.optimizer.Adam(0.01).minimize(loss)
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    feed = {"x": np.ones((8, width), np.float32)}
    programs = (main, test)
    for program in programs:
        exe.run(program, feed, [loss], scope=scope)
    assert compiles, f"jax no longer reports {EVENT}"
    compiles.clear()
    for program in programs * 3:
        exe.run(program, feed, [loss], scope=scope)
    assert not compiles


@pytest.mark.parametrize("width", [4, 200])
def test_the_first_run_compiles_the_step_alone(compiles, width):
    """The variables that a startup program made are copied without a program for each shape."""
    with fresh(1) as (main, startup):
        x = fluid.data("x", [None, width])
        hidden = layers.fc(layers.fc(x, 5, act="relu"), width)
        loss = layers.mean(layers.batch_norm(hidden))
        fluid.optimizer.Adam(0.01).minimize(loss)
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    compiles.clear()
    weight = main.all_parameters()[0]
    exe.run(
        main,
        {"x": np.ones((8, width), np.float32)},
        [loss, weight],
        scope=scope,
        return_numpy=False,
    )
    assert len(compiles) == 1


def conv_net():
    x, y = fluid.data("x", [2, 2, 4, 4]), fluid.data("y", [2, 1], "int64")
    for _ in range(3):
        x = layers.batch_norm(layers.conv2d(x, 2, 3, padding=1, bias_attr=False), act="relu")
    loss = layers.mean(layers.softmax_with_cross_entropy(layers.fc(layers.fc(x, 3), 4), y))
    fluid.optimizer.Momentum(0.1, 0.9, regularization=fluid.regularizer.L2Decay(1e-4)).minimize(
        loss
    )
    return loss


def loop_net():
    x = fluid.data("x", [2, 3])
    i, three = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    start = [i, layers.fc(x, 3)]
    _, a = layers.while_loop(
        lambda i, a: layers.less_than(i, three),
        lambda i, a: [i + 1, layers.fc(layers.fc(a, 3), 3)],
        start,
    )
    chosen = layers.cond(
        layers.reduce_sum(x) > 0, lambda: layers.fc(a, 2), lambda: layers.fc(a, 2) * 2.0
    )
    loss = layers.mean(layers.dropout(chosen, 0.5))
    fluid.optimizer.Adam(0.1).minimize(loss)
    return loss


def row_net():
    """A StaticRNN with two inputs, two memories and two outputs."""
    x, start, rnn = fluid.data("x", [4, 2, 3]), fluid.data("start", [2, 3]), layers.StaticRNN()
    rows = [x, layers.fc(x, 3, num_flatten_dims=2)]
    begin = [layers.fc(start, 3), layers.fc(start, 2)]
    with rnn.step():
        a, b = map(rnn.step_input, rows)
        h, g = (rnn.memory(init=each) for each in begin)
        made = layers.fc([a, h], 3, act="tanh"), layers.fc([b, h, g], 2, act="tanh")
        for memory, new in zip((h, g), made, strict=True):
            rnn.update_memory(memory, new)
            rnn.step_output(new)
    one, other = rnn()
    loss = layers.mean(layers.fc(layers.concat([one, other], 2), 1, num_flatten_dims=2))
    fluid.optimizer.SGD(0.1).minimize(loss)
    return loss


@pytest.mark.parametrize("net", [conv_net, loop_net, row_net])
def test_names_decide_nothing_about_what_is_compiled(net):
    """A net built again has other names, and `fc_10` sorts before `fc_9`: XLA gets the same module
    all the same.
    """

    def module(first: int) -> str:
        names = unique_name.UniqueNameGenerator()
        names.ids = defaultdict(lambda: first)
        with unique_name.guard(names), fluid.program_guard(fluid.Program(), fluid.Program()):
            loss = net()
        desc = loss.block.program.desc
        compiled = Compiled(
            StepPlan.of(desc, (loss.name,), OneDevice(jax.local_devices()[0])), Recompiles()
        )
        state, feed = (
            {n: _type(desc.blocks[0].vars[n]) for n in of}
            for of in (compiled.step.reads, compiled.step.feeds)
        )
        return compiled.lower(state, feed).as_text()

    one = module(0)
    assert one.count("stablehlo.") > 100 and module(9) == one


def _type(var):
    return jax.ShapeDtypeStruct(var.shape, numpy_dtype(var.dtype))


PREDICT = np.array([[0.3, 0.7], [0.8, 0.2], [0.4, 0.6]], np.float32)


@pytest.mark.parametrize("filled", [(9,), (1, 8)])
def test_the_counts_of_auc_keep_their_shape(compiles, filled):
    """For slide_steps=0 the startup programs of 1.8.5 fill [9] where [1, 8] is declared, ours
    [1, 8]. 1.8.5 gives 0.75, and these counts.
    """
    with fresh(1) as (main, startup):
        predict, label = fluid.data("predict", [None, 2]), fluid.data("label", [None, 1], "int64")
        area, recent, states = layers.auc(predict, label, num_thresholds=7, slide_steps=0)
    for op in startup.global_block().ops:
        if op.output("Out")[0] in {s.name for s in states[:2]}:
            op._set_attr("shape", list(filled))
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    feed = {"predict": PREDICT, "label": np.array([[1], [0], [0]])}
    for run in range(3):
        values = exe.run(main, feed, [area, recent], scope=scope)
        np.testing.assert_equal(values, [[0.75], [0.75]])
        assert not (compiles and run), "compiled again"
        compiles.clear()
    counts = [np.asarray(scope.find_var(s.name).get_tensor()) for s in states]
    assert [c.shape for c in counts] == [filled, filled, (1, 8), (1, 8)]
    np.testing.assert_equal(
        [c.ravel()[:8] for c in counts], [[0, 0, 0, 0, 3, 0, 0, 0], [0, 3, 0, 0, 3, 0, 0, 0]] * 2
    )


def test_auc_refuses_another_number_of_counts():
    with fresh(1) as (main, startup):
        predict, label = fluid.data("predict", [None, 2]), fluid.data("label", [None, 1], "int64")
        area, _, (state, *_) = layers.auc(predict, label, num_thresholds=7, slide_steps=0)
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    scope.find_var(state.name).get_tensor().set(np.zeros(7, np.int64), fluid.CPUPlace())
    with pytest.raises(
        FluidError, match=r"auc with 8 buckets and slide_steps=0 keeps 9 or 8 numbers, not \[7\]"
    ):
        exe.run(main, {"predict": PREDICT, "label": np.array([[1], [0], [0]])}, [area], scope=scope)
