"""Names of Paddle that no other test calls, each with numbers to compare: layers in one program
against NumPy, and what has a state.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import fluidjax as fluid
import fluidjax.layers as L
import fluidjax.paddle as paddle
from fluidjax.errors import UnsupportedError

X = np.array([[-3.5, -0.4, 0.2], [0.7, 2.5, 5.0]])  # no kink of a function below
Y = np.array([[2.0, 3.0, -0.5], [0.7, 2.0, 4.0]])
P, Q = np.abs(X), np.array([[2, 0, 1], [3, 1, 2]])
M, N = np.array([[7, 9, 4], [0, 5, 8]]), np.array([[2, 3, 5], [1, 5, 3]])
B = np.array([[True, False], [False, False]])
CDF = np.array([[0.5 * (1 + math.erf(v / math.sqrt(2))) for v in row] for row in X])
S = 1 / (1 + np.exp(-X))
XY = np.concatenate([X, Y], 1)[None]
# half of six, and the last of its places is 10000
TURNS = np.arange(2)[:, None] / 10000 ** (np.arange(3) / 2)
PLACES = np.concatenate([np.sin(TURNS), np.cos(TURNS)], 1)[None]
FED = {"x": X, "y": Y, "p": P, "q": Q.astype("float64"), "i": M, "j": N, "b": B}
# a call of fluid.layers, and what NumPy gives
LAYERS = {
    "L.brelu(x, -1.0, 2.0)": np.clip(X, -1, 2),
    "L.elementwise_floordiv(i, j)": M // N,
    "L.elementwise_min(x, y)": np.minimum(X, Y),
    "L.elementwise_mod(i, j)": M % N,
    "L.elementwise_pow(p, q)": P**Q,
    "L.gelu(x)": X * CDF,
    "L.greater_equal(x, y)": X >= Y,
    "L.less_equal(x, y)": X <= Y,
    "L.not_equal(x, y)": X != Y,
    "L.hard_shrink(x, 0.5)": np.where(np.abs(X) > 0.5, X, 0),
    "L.hard_sigmoid(x)": np.clip(0.2 * X + 0.5, 0, 1),
    "L.hard_swish(x)": X * np.clip(X + 3, 0, 6) / 6,
    "L.has_nan(x)": np.array([False]),
    "L.has_nan(L.log(x))": np.array([True]),
    "L.logsigmoid(x)": np.log(S),
    "L.selu(x)": 1.0507009873554805 * np.where(X > 0, X, 1.6732632423543772 * (np.exp(X) - 1)),
    "L.sign(x)": np.sign(X),
    "L.soft_relu(x)": np.log(1 + np.exp(X)),
    "L.softshrink(x, 0.5)": np.sign(X) * np.maximum(np.abs(X) - 0.5, 0),
    "L.softsign(x)": X / (1 + np.abs(X)),
    "L.swish(x, 2.0)": X / (1 + np.exp(-2 * X)),
    "L.tanh_shrink(x)": X - np.tanh(X),
    "L.thresholded_relu(x, 0.6)": np.where(X > 0.6, X, 0),
    "L.reduce_any(b, 1)": B.any(1),
    "L.reduce_all(b, 0)": B.all(0),
    "L.elementwise_sub(x, y)": X - Y,
    "L.elementwise_div(x, y)": X / Y,
    "L.elementwise_max(x, y)": np.maximum(X, Y),
    "L.elu(x, 0.5)": np.where(X > 0, X, 0.5 * (np.exp(X) - 1)),
    "L.leaky_relu(x, 0.2)": np.where(X > 0, X, 0.2 * X),
    "L.relu6(x, 2.0)": np.clip(X, 0, 2),
    "L.add_position_encoding(L.reshape(L.concat([x, y], 1), [1, 2, 6]), 0.5, 2.0)": 0.5 * XY
    + 2 * PLACES,
    "L.concat([L.cast(v, 'int64') for v in L.unique_with_counts(L.reshape(i, [-1]))], 0)": np.array(
        [*M.flat, *range(6), *[1] * 6]
    ),
}
pytestmark = pytest.mark.usefixtures("fresh_programs")


def test_layers():
    feed = {n: v.astype("float32") if v.dtype == np.float64 else v for n, v in FED.items()}
    names = {n: fluid.data(n, list(v.shape), str(v.dtype)) for n, v in feed.items()}
    outs = [eval(text, {"L": L, **names}) for text in LAYERS]
    for text, got, wanted in zip(
        LAYERS, fluid.Executor().run(feed=feed, fetch_list=outs), LAYERS.values(), strict=True
    ):
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-6, err_msg=text)
        assert (got.dtype == bool) == (wanted.dtype == bool) and got.shape == wanted.shape, text


def test_decoding():
    class Alternate(L.DecodeHelper):
        """the next inputs are the outputs, and nothing ends"""

        def initialize(self):
            return begin, L.fill_constant([2], "bool", False)

        def sample(self, time, outputs, states):
            return L.argmax(outputs, -1)

        def next_inputs(self, time, outputs, states, sample_ids):
            return L.fill_constant([2], "bool", False), outputs, states

    class Sum(L.Decoder):
        """adds what its helper samples to its inputs, and the number of the step to its state"""

        def initialize(self, inits):
            inputs, finished = helper.initialize()
            return inputs, inits, finished

        def step(self, time, inputs, states, **kwargs):
            outputs = L.elementwise_add(
                inputs, L.cast(helper.sample(time, inputs, states), "float32"), axis=0
            )
            finished, following, states = helper.next_inputs(
                time, outputs, states + L.cast(time, "float32"), None
            )
            return outputs, states, following, finished

    begin, helper = L.assign(np.array([[1, 2], [4, 3]], "float32")), Alternate()
    sums, last = paddle.nn.dynamic_decode(Sum(), begin, max_step_num=2)[:2]
    got = fluid.Executor().run(fetch_list=[sums, last])
    # the largest is the second, then the first: 1 is added to the first row at each step, and
    # nothing to the second
    steps = got[0].shape[1]
    added = np.arange(1, steps + 1)[:, None] * [[[1]], [[0]]]
    np.testing.assert_array_equal(got[0], np.array([[[1, 2]] * steps, [[4, 3]] * steps]) + added)
    np.testing.assert_array_equal(got[1], np.array([[1, 2], [4, 3]]) + sum(range(steps)))
    assert (
        steps in (2, 3)
        and paddle.nn.BeamSearchDecoder is L.BeamSearchDecoder
        and issubclass(L.BeamSearchDecoder, L.Decoder)
    )


def test_clips_and_decoders_of_nn():
    """A gradient [3, 4], clipped to a norm of 1 and to values of 2."""
    nn, rate = paddle.nn, 0.5
    x = paddle.static.data("x", [1, 2])
    for name, clip in (("norm", nn.ClipGradByNorm(1.0)), ("value", nn.ClipGradByValue(2.0))):
        w = paddle.static.create_parameter(
            [2], "float32", name=name, default_initializer=nn.initializer.Constant(1.0)
        )
        paddle.optimizer.SGD(rate, parameters=[w], grad_clip=clip).minimize(L.reduce_sum(x * w))
    layer = nn.TransformerDecoderLayer(4, 2, 4, 0.0)
    target, memory = paddle.static.data("t", [1, 2, 4]), paddle.static.data("m", [1, 3, 4])
    outs = [nn.TransformerDecoder(layer, 1)(target, memory), layer(target, memory)]
    exe, rng = fluid.Executor(), np.random.default_rng(0)
    exe.run(fluid.default_startup_program())
    feed = {n: rng.normal(size=(1, size, 4)).astype("float32") for n, size in (("t", 2), ("m", 3))}
    feed["x"] = np.array([[3, 4]], "float32")
    one, other = exe.run(feed=feed, fetch_list=outs)
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    after = {n: np.array(fluid.global_scope().find_var(n).value) for n in ("norm", "value")}
    np.testing.assert_allclose(after["norm"], [1 - rate * 0.6, 1 - rate * 0.8], rtol=1e-6)
    np.testing.assert_allclose(after["value"], [1 - rate * 2, 1 - rate * 2], rtol=1e-6)


def test_static_names(tmp_path):
    static = paddle.static
    x = static.data("x", [2, 2])
    x.stop_gradient = False
    w = static.create_parameter(
        [2, 1], "float32", name="w", default_initializer=paddle.nn.initializer.Constant(0.5)
    )
    counter = static.create_global_var([1], 3.0, "float32", persistable=True, name="counter")
    normed = static.nn.fc(
        x, 1, weight_attr=static.WeightNormParamAttr(dim=1, name="g"), bias_attr=False
    )
    with static.name_scope("product"):
        y = paddle.matmul(x, w)
    loss = L.reduce_sum(y * y)
    (dx,) = static.gradients([loss], [x])
    pairs = static.append_backward(loss, parameter_list=[w])
    assert isinstance(w, static.Variable) and [p.name for p, _ in pairs] == ["w"]
    ops = fluid.default_main_program().global_block().ops
    assert "matmul" in next(
        op.type
        for op in ops
        if op.has_attr("op_namescope") and op.attr("op_namescope").startswith("/product")
    )
    strategy, execution = static.BuildStrategy(), static.ExecutionStrategy()
    execution.num_threads = 1
    program = static.CompiledProgram(static.default_main_program()).with_data_parallel(
        loss_name=loss.name,
        build_strategy=strategy,
        exec_strategy=execution,
        places=static.cpu_places(1),
    )
    exe, data = static.Executor(), np.array([[1, 2], [3, 4]], "float32")
    exe.run(static.default_startup_program())
    got = exe.run(program, feed={"x": data}, fetch_list=[dx, pairs[0][1], counter, normed, loss])
    out = data @ np.full((2, 1), 0.5)
    np.testing.assert_allclose(got[0], 2 * out * np.full((1, 2), 0.5), rtol=1e-6)
    np.testing.assert_allclose(got[1], data.T @ (2 * out), rtol=1e-6)
    held = {
        n: np.array(fluid.global_scope().find_var(n).value)
        for n in fluid.global_scope().local_var_names()
        if n.startswith("g")
    }
    v = next(a for n, a in held.items() if a.shape == (2, 1))
    g = next(a for n, a in held.items() if a.size == 1)
    np.testing.assert_allclose(got[3], data @ (v / np.linalg.norm(v) * g.reshape(1, 1)), rtol=1e-5)
    assert got[2][0] == 3.0
    static.save(static.default_main_program(), str(tmp_path / "kept"))
    state = static.load_program_state(str(tmp_path / "kept"))
    np.testing.assert_array_equal(state["w"], np.full((2, 1), 0.5))
    static.set_program_state(
        static.default_main_program(), {**state, "w": np.full((2, 1), 2.0, "float32")}
    )
    np.testing.assert_allclose(
        exe.run(feed={"x": data}, fetch_list=[loss])[0],
        ((data @ np.full((2, 1), 2.0)) ** 2).sum(),
        rtol=1e-6,
    )
    static.load(static.default_main_program(), str(tmp_path / "kept"), exe)
    np.testing.assert_allclose(
        exe.run(feed={"x": data}, fetch_list=[loss])[0], (out**2).sum(), rtol=1e-6
    )


def test_places_tensors_and_random_numbers():
    assert [type(p) for p in fluid.cuda_pinned_places(3)] == [paddle.CUDAPinnedPlace] * 3
    assert isinstance(paddle.is_compiled_with_cuda(), bool) and (
        paddle.is_compiled_with_cuda() or not paddle.static.cuda_places([])
    )
    for tensor in (fluid.Tensor(), paddle.Tensor()):
        tensor.set(np.arange(3), fluid.CPUPlace())
        assert np.asarray(tensor).sum() == 3 and isinstance(tensor, fluid.LoDTensor)
    paddle.seed(3)
    drawn = fluid.Executor().run(fetch_list=[paddle.randn([4000])])[0]
    assert abs(drawn.mean()) < 0.08 and abs(drawn.std() - 1) < 0.05 and drawn.dtype == np.float32


def test_a_cell_of_ones_own():
    class Doubling(L.RNNCell):
        """adds its inputs to twice its states"""

        def call(self, inputs, states):
            new = L.elementwise_add(L.scale(states, 2.0), inputs)
            return new, new

        @property
        def state_shape(self):
            return [2]

    rows = np.arange(12, dtype="float32").reshape(2, 3, 2)
    states, last = L.rnn(Doubling(), L.assign(rows))
    got, end = fluid.Executor().run(fetch_list=[states, last])
    want = [rows[:, 0], 2 * rows[:, 0] + rows[:, 1], 4 * rows[:, 0] + 2 * rows[:, 1] + rows[:, 2]]
    np.testing.assert_array_equal(got, np.stack(want, 1))
    np.testing.assert_array_equal(end, want[-1])


def test_modes_places_and_what_is_given():
    assert paddle.enable_static() is None and paddle.in_dynamic_mode() is False
    with pytest.raises(UnsupportedError, match="dynamic mode"):
        paddle.disable_static()
    assert paddle.in_dynamic_mode() is False
    x = paddle.static.data("given", [2, 3], "float32")
    double = (
        paddle.static.default_main_program()
        .current_block()
        .create_var(name="double", shape=[2, 3], dtype="float32")
    )
    paddle.static.py_func(lambda a: 2 * np.asarray(a), x, double)
    (got,) = fluid.Executor(paddle.CUDAPinnedPlace()).run(
        feed={"given": M.astype("float32")}, fetch_list=[double]
    )
    assert got.tolist() == (2 * M).tolist()
    spec = paddle.static.InputSpec.from_numpy(M, "m")
    assert spec == paddle.static.InputSpec([2, 3], "int64", "m") and tuple(spec.batch(7).shape) == (
        7,
        2,
        3,
    )
