"""Parts of Paddle 2's names that have no numbers of their own: InputSpec, values of programs,
options; expectations are 2.6.2's answers.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import fluidjax as fluid
import fluidjax.layers as L
import fluidjax.paddle as paddle
from fluidjax.errors import FluidTypeError, FluidValueError, UnsupportedError

pytestmark = pytest.mark.usefixtures("fresh_programs")
Spec = paddle.static.InputSpec


def test_input_spec():
    spec = Spec([4, None], "float32", "x")
    assert spec.batch(2) is spec and spec.shape == (2, 4, -1) and spec.unbatch().shape == (4, -1)
    assert Spec.from_numpy(np.zeros((2, 3)), "a") == Spec([2, 3], "float64", "a")
    x = paddle.static.data("x", [2, -1])
    assert Spec.from_tensor(x).name == "x" and Spec.from_tensor(x, "z") == Spec([2, -1], name="z")
    assert (
        Spec([2]) == Spec([2])
        and hash(Spec([2])) == hash(Spec([2]))
        and Spec([2]) != Spec([2], stop_gradient=True)
    )
    for call, error, told in (
        (lambda: spec.batch("a"), FluidTypeError, "a whole number, not 'a'"),
        (lambda: spec.batch([1, 2]), FluidValueError, "one size"),
        (lambda: Spec([]).unbatch(), FluidValueError, "has none"),
        (lambda: Spec.from_tensor(3), FluidTypeError, "takes a variable"),
    ):
        with pytest.raises(error, match=told):
            call()


def test_values_of_a_program():
    x = paddle.static.data("x", [2, 3])
    loss = L.reduce_mean(
        paddle.static.nn.fc(x, 2, weight_attr=paddle.ParamAttr(name="w"), bias_attr=False)
    )
    paddle.optimizer.Momentum(0.1).minimize(loss)
    fluid.Executor().run(fluid.default_startup_program())
    main = fluid.default_main_program()
    assert list(main.state_dict("param")) == ["w"]
    assert set(main.state_dict("opt")) == {"w_velocity_0", "learning_rate_0"}
    assert set(main.state_dict()) == {"w", "w_velocity_0", "learning_rate_0"}
    with pytest.warns(UserWarning, match="passes over 'zz'"):
        main.set_state_dict({"w": np.ones((3, 2)), "zz": np.ones(2)})
    np.testing.assert_array_equal(main.state_dict("param")["w"], np.ones((3, 2), "float32"))
    for call, error, told in (
        (lambda: main.state_dict("x"), FluidValueError, "'param', 'opt' or 'all', not 'x'"),
        (lambda: main.set_state_dict([1]), FluidTypeError, "a dict of values"),
        (
            lambda: main.set_state_dict({"w": np.ones(2)}),
            FluidValueError,
            r"has shape \[3, 2\], but its value has \[2\]",
        ),
        (lambda: main.state_dict(scope=3), FluidTypeError, "a fluid.Scope"),
        (lambda: main.state_dict(scope=fluid.Scope()), FluidValueError, "has no value"),
        (
            lambda: paddle.static.save(main, "m", protocol=1),
            FluidValueError,
            "protocol is 2, 3 or 4",
        ),
        (
            lambda: paddle.static.append_backward(loss, distop_context=3),
            UnsupportedError,
            "leave it out",
        ),
    ):
        with pytest.raises(error, match=told):
            call()


def test_seeds_of_programs_to_come():
    program = fluid.Program()
    program.global_seed(7)
    try:
        assert (
            program.random_seed == 7 == fluid.Program().random_seed
            and fluid.default_main_program().random_seed != 7
        )
    finally:
        program.global_seed(0)


def test_a_parameter_without_clip():
    """Gradients [3, 4] of both; only the second is clipped, and counted in the norm."""
    clip = paddle.nn.ClipGradByGlobalNorm(1.0, auto_skip_clip=True)
    x = paddle.static.data("x", [1, 2])
    ones = paddle.nn.initializer.Constant(1.0)
    free, bound = (
        paddle.static.create_parameter(
            [2], "float32", attr=paddle.ParamAttr(n, ones, need_clip=n == "bound")
        )
        for n in ("free", "bound")
    )
    paddle.optimizer.SGD(0.5, grad_clip=clip).minimize(
        L.reduce_sum(x * free) + L.reduce_sum(x * bound)
    )
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(feed={"x": np.array([[3, 4]], "float32")})
    values = fluid.default_main_program().state_dict("param")
    np.testing.assert_allclose(values["free"], [-0.5, -1], rtol=1e-6)
    np.testing.assert_allclose(values["bound"], [0.7, 0.6], rtol=1e-6)


def test_hooks_of_state_and_no_grad():
    layer = paddle.nn.Sequential(paddle.nn.Linear(2, 3))
    hook = layer[0].register_state_dict_hook(lambda state: {**state, "extra": 1})
    assert list(layer.state_dict()) == ["0.weight", "0.bias", "extra"]
    hook.remove()
    assert list(layer.state_dict()) == ["0.weight", "0.bias"]
    with paddle.no_grad().clone():
        assert paddle.no_grad()(lambda n: n + 1)(1) == 2


def test_gains():
    """Deviations and bounds that 2.6.2 writes for weights [3, 4]."""
    I = paddle.nn.initializer  # noqa: E741
    block = fluid.default_startup_program().global_block()
    w = paddle.static.create_parameter([3, 4], "float32")
    for options, std in (
        ({}, 0.8164966106414795), ({"negative_slope": 0.5, "nonlinearity": "leaky_relu"}, 0.7302967309951782),
        ({"nonlinearity": "tanh"}, 0.9622504711151123), ({"nonlinearity": "selu"}, 0.4330126941204071), ({"fan_in": 8}, 0.5),
    ):  # fmt: skip
        assert I.KaimingNormal(**options)(w, block).attr("std") == pytest.approx(std, rel=1e-6)
        assert I.KaimingUniform(**options).forward(w, block).attr("max") == pytest.approx(
            std * math.sqrt(3), rel=1e-6
        )
    assert I.calculate_gain("leaky_relu") == pytest.approx(1.4141428569978354)
    assert (
        I.calculate_gain("leaky_relu", 0.5) == pytest.approx(1.2649110640673518)
        and I.calculate_gain("conv2d") == 1
    )
    with pytest.raises(FluidValueError, match="calculate_gain knows"):
        I.calculate_gain("a")
    assert (
        I.Constant(1.0).forward(w).type == "fill_constant"
        and fluid.default_main_program().global_block().ops
    )
    assert paddle.metric.Auc.trapezoid_area(1, 3, 2, 4) == 6.0


def test_loader_gives_lists():
    class Data(paddle.io.Dataset):
        def __getitem__(self, i):
            return (np.full([2], i, "float32"),)

        def __len__(self):
            return 2

    (batch,) = paddle.io.DataLoader(Data(), batch_size=2, persistent_workers=True)
    np.testing.assert_array_equal(np.asarray(batch[0]).reshape(2, 2), [[0, 0], [1, 1]])
    with pytest.raises(FluidValueError, match="prefetch_factor"):
        paddle.io.DataLoader(Data(), prefetch_factor=0)
    with pytest.raises(FluidTypeError, match="persistent_workers"):
        paddle.io.DataLoader(Data(), persistent_workers=1)


def test_where_with_numbers():
    x = paddle.static.data("x", [2])
    out = paddle.where(L.greater_than(x, L.fill_constant([1], "float32", 0)), x, 2.5)
    np.testing.assert_array_equal(
        fluid.Executor().run(feed={"x": np.array([1, -1], "float32")}, fetch_list=[out])[0],
        [1, 2.5],
    )
    with pytest.raises(FluidValueError, match="both x and y, or neither"):
        paddle.where(out, x)
