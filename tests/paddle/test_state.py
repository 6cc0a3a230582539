"""paddle.save and load, default dtypes, devices, gradients and draws: what no table of results can
show.
"""

from __future__ import annotations

import numpy as np
import pytest

import fluidjax as fluid
import fluidjax.paddle as paddle
from fluidjax.errors import FluidTypeError, FluidValueError, ParseError, UnsupportedError
from tests.paddle.test_functions import run


def test_default_dtype():
    assert paddle.get_default_dtype() == "float32"
    try:
        paddle.set_default_dtype("float64")
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            made = [
                paddle.ones([1]),
                paddle.full([1], 2),
                paddle.rand([2]),
                paddle.to_tensor(0.5),
                paddle.empty([1]),
            ]
            assert [v.desc.dtype for v in made] == ["float64"] * 5
            with pytest.raises(FluidTypeError, match="feed arrays of float64"):
                paddle.to_tensor(np.array([0.1]))
    finally:
        paddle.set_default_dtype("float32")
    with pytest.raises(FluidTypeError, match="takes float16, float32 or float64, not int32"):
        paddle.set_default_dtype("int32")


def test_devices():
    here = paddle.get_device()
    assert here == "cpu" or here.startswith("gpu:")
    assert isinstance(paddle.set_device(here), type(fluid.Executor().place))
    with pytest.raises(UnsupportedError, match="give the Executor a place"):
        paddle.set_device("gpu:63")
    with pytest.raises(FluidValueError, match="'cpu', 'gpu' or 'gpu:N'"):
        paddle.set_device("tpu")
    assert not paddle.is_compiled_with_xpu() and paddle.get_cudnn_version() is None
    paddle.set_cuda_rng_state(paddle.get_cuda_rng_state())
    for call in (lambda: paddle.set_cuda_rng_state([1]), lambda: paddle.XPUPlace(0)):
        with pytest.raises(UnsupportedError):
            call()


def test_grad_and_no_grad():
    x = np.array([1.0, -2.0], "float32")

    @paddle.no_grad()
    def build(x):
        y = paddle.sum(paddle.square(x))
        unused = paddle.scale(x, 2.0)
        assert paddle.is_tensor(y) and not paddle.is_tensor(x.name)
        assert paddle.grad(y, [unused], allow_unused=True) == [None]
        with pytest.raises(FluidValueError, match="no output needs"):
            paddle.grad(y, unused)
        with pytest.raises(UnsupportedError, match="only_inputs=True"):
            paddle.grad(y, x, only_inputs=False)
        x.stop_gradient = False
        return paddle.grad(y, x)

    np.testing.assert_array_equal(run(build, x=x)[0], 2 * x)


def test_save_and_load(tmp_path):
    main, startup = fluid.Program(), fluid.Program()
    with (
        fluid.program_guard(main, startup),
        fluid.unique_name.guard(),
        fluid.scope_guard(fluid.Scope()),
    ):
        out = paddle.static.nn.fc(paddle.static.data("x", [None, 2]), 3)
        weight = main.all_parameters()[0]
        with pytest.raises(FluidValueError, match="has no value in the global scope"):
            paddle.save({"w": weight}, tmp_path / "w.pdparams")
        fluid.Executor().run(startup)
        paddle.save({"w": weight, "b": np.arange(3)}, tmp_path / "w.pdparams")
        paddle.save(main, tmp_path / "main.pdmodel")
        found = paddle.load(tmp_path / "w.pdparams")
        np.testing.assert_array_equal(
            found["w"], np.asarray(fluid.global_scope().find_var(weight.name).get_tensor())
        )
        np.testing.assert_array_equal(found["b"], np.arange(3))
        assert out.name in paddle.load(tmp_path / "main.pdmodel").global_block().vars
    (tmp_path / "bad").write_bytes(b"\x80\x04nothing")
    for call, error in (
        (lambda: paddle.save([1], tmp_path / "l"), FluidTypeError),
        (lambda: paddle.save({"a": object()}, tmp_path / "l"), FluidTypeError),
        (lambda: paddle.load(tmp_path / "gone"), FluidValueError),
        (lambda: paddle.load(tmp_path / "bad"), ParseError),
    ):
        with pytest.raises(error):
            call()
    assert not (tmp_path / "l").exists()


def test_draws():
    weights = np.array([[1.0, 0.0, 3.0]] * 200, "float32")
    few, all_of, uniform, normal, integers, order = run(
        lambda p, w: [paddle.bernoulli(p), paddle.multinomial(w, 2), paddle.uniform([500], min=2.0, max=3.0),
                      paddle.normal(5.0, 0.1, [500]), paddle.randint(3, 6, [500]), paddle.randperm(6)],
        p=np.full((1000,), 0.2, "float32"), w=weights,
    )  # fmt: skip
    assert set(np.unique(few)) == {0.0, 1.0} and 0.1 < few.mean() < 0.3
    assert (np.sort(all_of, 1) == [0, 2]).all() and 0.6 < (all_of[:, 0] == 2).mean() < 0.9
    assert 2 <= uniform.min() < 2.1 and 2.9 < uniform.max() < 3 and abs(normal.mean() - 5) < 0.05
    assert set(integers) == {3, 4, 5} and sorted(order) == list(range(6))
