"""StaticRNN and what is built on it: trained as by Paddle 1.8.5, differentiated as by jax.grad, and
what is refused.
"""

from __future__ import annotations

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import EnforceNotMet, FeedError, FluidValueError, UnsupportedError
from fluidjax.ir.parse import parse
from fluidjax.ir.proto import from_bytes, to_bytes
from fluidjax.ir.text import to_text
from fluidjax.lower.step import Step

from ..layers.recurrent_nets import NETS, numbers, trained

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "recurrent_1.8.5.json").read_text())


@pytest.fixture(autouse=True)
def fresh():
    with (
        fluid.scope_guard(fluid.Scope()),
        fluid.unique_name.guard(),
        fluid.program_guard(fluid.Program(), fluid.Program()),
    ):
        yield


@pytest.mark.parametrize("name", NETS)
def test_trains_as_paddle(name):
    got, want = trained(fluid, name), RECORDED[name]
    np.testing.assert_allclose(got["losses"], want["losses"], rtol=2e-5)
    assert got["parameters"].keys() == want["parameters"].keys()
    for parameter, value in want["parameters"].items():
        assert got["parameters"][parameter] == pytest.approx(value, rel=2e-5), parameter


def loop_of(x, h0, reverse=False):
    """tanh(x[t] @ w + h @ u) over time, all steps."""
    loop = layers.StaticRNN()
    with loop.step():
        row, h = loop.step_input(x), loop.memory(init=h0)
        new = layers.fc([row, h], 4, act="tanh", bias_attr=False)
        loop.update_memory(h, new)
        loop.step_output(new)
    if reverse:
        fluid.default_main_program().global_block().ops[-1]._set_attr("reverse", True)
    return loop()


@pytest.mark.parametrize("reverse", [False, True])
def test_gradients_are_jaxs(reverse):
    x, h0 = fluid.data("x", [3, 2, 3]), fluid.data("h", [2, 4])
    x.stop_gradient = h0.stop_gradient = False
    out = loop_of(x, h0, reverse)
    loss = layers.reduce_sum(layers.square(out))
    grads = fluid.gradients(loss, [x, h0])
    main = fluid.default_main_program()
    values = {
        n: numbers(n, s)
        for n, s in (("x", (3, 2, 3)), ("h", (2, 4)), ("fc_0.w_0", (3, 4)), ("fc_0.w_1", (4, 4)))
    }
    state = {n: v for n, v in values.items() if n.startswith("fc")}

    def unrolled(x, h):
        rows = []
        for t in range(3)[:: -1 if reverse else 1]:
            h = jnp.tanh(x[t] @ values["fc_0.w_0"] + h @ values["fc_0.w_1"])
            rows.append(h)
        return jnp.sum(jnp.square(jnp.stack(rows)))

    want = jax.value_and_grad(unrolled, (0, 1))(values["x"], values["h"])
    step = Step(main.desc, (loss.name, *(g.name for g in grads)))
    _, got = step(state, {n: values[n] for n in ("x", "h")})
    np.testing.assert_allclose(got[0], want[0].reshape(1), rtol=1e-5)
    for found, wanted in zip(got[1:], want[1], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)
    assert parse(to_text(main.desc)) == main.desc
    assert to_bytes(from_bytes(to_bytes(main.desc))) == to_bytes(main.desc)


def test_sequences_that_every_step_reads():
    """A value with a LoD from outside: its gradient is summed over the steps, row by row, and has
    the LoD.
    """
    t, rows = fluid.data("t", [3, 1]), fluid.data("rows", [None, 2], lod_level=1)
    t.stop_gradient = rows.stop_gradient = False
    loop = layers.StaticRNN()
    with loop.step():
        scaled = layers.elementwise_mul(rows, loop.step_input(t), axis=-1)
        loop.step_output(layers.sequence_pool(scaled, "sum"))
    loss = layers.reduce_sum(layers.square(loop()))
    a, times = (
        np.arange(10.0, dtype="float32").reshape(5, 2) / 10,
        np.array([[1], [2], [-1]], "float32"),
    )
    feed = {"t": times, "rows": fluid.create_lod_tensor(a, [[3, 2]], fluid.CPUPlace())}
    d_rows, d_t = fluid.Executor().run(
        feed=feed, fetch_list=fluid.gradients(loss, [rows, t]), return_numpy=False
    )
    sums = np.stack([a[:3].sum(0), a[3:].sum(0)])
    np.testing.assert_allclose(
        np.array(d_rows), 2 * (times**2).sum() * np.repeat(sums, [3, 2], 0), rtol=1e-5
    )
    np.testing.assert_allclose(np.array(d_t), 2 * times * (sums**2).sum(), rtol=1e-5)
    assert d_rows.recursive_sequence_lengths() == [[3, 2]]


def test_each_step_draws_anew():
    begin = layers.fill_constant([50], "float32", 0.0)
    loop = layers.StaticRNN()
    with loop.step():
        row = loop.step_input(fluid.data("x", [4, 50]))
        total = loop.memory(init=begin)
        new = layers.elementwise_add(total, layers.dropout(row, 0.5))
        loop.update_memory(total, new)
        loop.step_output(layers.dropout(row, 0.5))
    (rows,) = fluid.Executor(fluid.CPUPlace()).run(
        feed={"x": np.ones((4, 50), "float32")}, fetch_list=[loop()]
    )
    assert len({row.tobytes() for row in rows}) == 4


def test_a_program_does_not_grow_with_the_steps():
    def equations(count):
        with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
            out = loop_of(fluid.data("x", [count, 2, 3]), fluid.data("h", [2, 4]))
            fluid.backward.append_backward(layers.mean(out))
            step = Step(fluid.default_main_program().desc, ("fc_0.w_0@GRAD",))
            state = {"fc_0.w_0": numbers("w", (3, 4)), "fc_0.w_1": numbers("u", (4, 4))}
            feed = {"x": np.zeros((count, 2, 3), "float32"), "h": np.zeros((2, 4), "float32")}
            return str(jax.make_jaxpr(lambda s, f: step(s, f)[1])(state, feed)).count(" = ")

    assert equations(10) == equations(1000)


def test_inside_data_parallel_as_alone():
    x = fluid.data("x", [None, 3, 3])
    out, _ = layers.rnn(layers.GRUCell(4), x)
    loss = layers.mean(out)
    fluid.optimizer.SGD(0.5).minimize(loss)
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    startup.random_seed = 7
    feed, losses = {"x": numbers("x", (4, 3, 3))}, []
    for program in (
        main,
        fluid.CompiledProgram(main).with_data_parallel(
            loss_name=loss.name, places=[fluid.CPUPlace()] * 2
        ),
    ):
        with fluid.scope_guard(fluid.Scope()):
            exe = fluid.Executor(fluid.CPUPlace())
            exe.run(startup)
            losses.append(
                [np.mean(exe.run(program, feed=feed, fetch_list=[loss])[0]) for _ in range(3)]
            )
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)


def growing():
    begin = layers.fill_constant([2, 2], "float32", 0.0)
    loop = layers.StaticRNN()
    with loop.step():
        row = loop.step_input(fluid.data("x", [3, 2, 2]))
        mem = loop.memory(init=begin)
        loop.update_memory(mem, layers.concat([mem, row], 1))
        loop.step_output(row)
    return loop()


def unequal():
    loop = layers.StaticRNN()
    with loop.step():
        a = loop.step_input(fluid.data("x", [-1, 2]))
        loop.step_output(layers.elementwise_add(a, loop.step_input(fluid.data("y", [-1, 2]))))
    return loop()


def writing_outside():
    """What gradients flow through: the op's gradient knows only what is listed, so this one would
    be lost without a word.
    """
    total = layers.reduce_sum(fluid.data("x", [3, 2]), 0)
    loop = layers.StaticRNN()
    with loop.step():
        row = loop.step_input(fluid.default_main_program().global_block().var("x"))
        layers.assign(row, total)
        loop.step_output(row)
    return loop()


REFUSED = [
    (
        growing,
        {"x": (3, 2, 2)},
        EnforceNotMet,
        r"carries 'static_rnn_0@mem_0', .* \[2, 2\] before a step and .* \[2, 4\] after",
    ),
    (
        unequal,
        {"x": (3, 2), "y": (4, 2)},
        FeedError,
        "takes inputs of one length, not 'x' of 3, 'y' of 4",
    ),
    (
        writing_outside,
        {"x": (3, 2)},
        UnsupportedError,
        "writes 'reduce_sum_0.tmp_0', which is declared outside",
    ),
]


@pytest.mark.parametrize(
    ("net", "shapes", "kind", "message"), REFUSED, ids=lambda v: getattr(v, "__name__", "")
)
def test_refused_when_run(net, shapes, kind, message):
    out = net()
    with pytest.raises(kind, match=message):
        fluid.Executor(fluid.CPUPlace()).run(
            feed={n: numbers(n, s) for n, s in shapes.items()}, fetch_list=[out]
        )


def test_refused_while_building():
    loop = layers.StaticRNN()
    x = fluid.data("x", [3, 2])
    with pytest.raises(FluidValueError, match="You must invoke step_input in rnn block"):
        loop.step_input(x)
    with pytest.raises(FluidValueError, match="RNN output can only be retrieved after rnn block"):
        loop()
    begin = layers.fill_constant([2], "float32", 0.0)
    with (
        pytest.raises(
            FluidValueError, match=r"fill_constant_0.tmp_0 should be updated in every step\."
        ),
        loop.step(),
    ):
        loop.memory(init=begin)
        loop.step_output(loop.step_input(x))
    assert fluid.default_main_program().current_block_idx == 0
    other = layers.StaticRNN()
    with (
        pytest.raises(FluidValueError, match="Static RNN only take fix seq_len input"),
        other.step(),
    ):
        other.step_input(x)
        other.step_input(fluid.data("y", [4, 2]))
