"""Variables' own methods of Paddle 2, their constructor, dtypes as values, and what 2.6.2's static
mode cannot be recorded for.
"""

from __future__ import annotations

import numpy as np
import pytest

import fluidjax as fluid
import fluidjax.layers as L
import fluidjax.paddle as paddle
from fluidjax.errors import FluidTypeError, FluidValueError, UnsupportedError

pytestmark = pytest.mark.usefixtures("fresh_programs")


def test_weighted_covariance_spectra_and_draws():
    rng = np.random.default_rng(3)
    x, often, much = (
        rng.normal(size=(2, 6)),
        np.array([1, 2, 0, 3, 1, 1]),
        np.array([0.5, 1, 2, 0.25, 1, 1]),
    )
    window = np.array([1.0, 2, 3, 4])
    v, w = paddle.static.data("x", [2, 6], "float64"), paddle.static.data("w", [4], "float64")
    o, m = paddle.static.data("o", [6], "int64"), paddle.static.data("m", [6], "float64")
    spectra = v.stft(4, 2, window=w, center=False)
    outs = [
        paddle.linalg.cov(v), paddle.linalg.cov(v, fweights=o), paddle.linalg.cov(v, aweights=m, ddof=False),
        paddle.linalg.cov(v, fweights=o, aweights=m), paddle.linalg.corrcoef(v, False), paddle.as_real(spectra),
        v.stft(4, 2, window=w).istft(4, 2, window=w, length=5), v.exponential_(2.0), paddle.poisson(v.abs()),
        paddle.randint_like(v, 3), paddle.standard_normal([2, 3]),
    ]  # fmt: skip
    got = fluid.Executor().run(feed={"x": x, "o": often, "m": much, "w": window}, fetch_list=outs)
    want = [np.cov(x), np.cov(x, fweights=often), np.cov(x, aweights=much, ddof=0), np.cov(x, fweights=often, aweights=much),
            np.corrcoef(x.T)]  # fmt: skip
    for one, other in zip(got, want, strict=False):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    pieces = np.fft.rfft(np.stack([x[:, 0:4], x[:, 2:6]], 1) * window).swapaxes(1, 2)
    np.testing.assert_allclose(got[5], np.stack([pieces.real, pieces.imag], -1), atol=1e-9)
    np.testing.assert_allclose(got[6], x[:, :5], atol=1e-9)
    exponential, poisson, integers, normal = got[7:11]
    assert (
        (exponential > 0).all()
        and (poisson >= 0).all()
        and (poisson % 1 == 0).all()
        and normal.shape == (2, 3)
    )
    assert integers.dtype == np.float64 and set(np.unique(integers)) <= {0.0, 1.0, 2.0}


def test_signals_are_real_and_spectra_complex():
    whole, real = fluid.data("n", [8], "int64"), fluid.data("r", [3, 4])
    with pytest.raises(
        FluidTypeError, match="stft's x is of dtype float32, float64, but variable 'n' is int64"
    ):
        paddle.signal.stft(whole, 4)
    with pytest.raises(
        FluidTypeError,
        match="istft's x is of dtype complex64, complex128, but variable 'r' is float32",
    ):
        paddle.signal.istft(real, 4)


def test_a_variable_is_made_as_in_paddle():
    block = fluid.default_main_program().global_block()
    made = paddle.static.Variable(block, name="a", shape=[2, -1], dtype="float32", persistable=True)
    assert (
        block.vars["a"] is made
        and made.shape == (2, -1)
        and made.persistable
        and made.lod_level == 0
    )
    assert (
        made.dim() == made.ndimension() == 2 and made.element_size() == 4 and made.place() is None
    )
    assert (
        paddle.static.Variable(block, name="a").shape == (2, -1)
        and paddle.static.Variable(block).name == "_generated_var_0"
    )
    with pytest.raises(FluidValueError, match="'a' exists with shape"):
        paddle.static.Variable(block, name="a", shape=[3, 4])


def test_values_of_a_variable():
    w = paddle.static.create_parameter([2], "float32", name="w")
    fluid.Executor().run(fluid.default_startup_program())
    w.set_value(np.array([1.0, 2.0], "float32"))
    np.testing.assert_array_equal(np.asarray(w.get_value()), [1.0, 2.0])
    array = L.create_array("float32")
    array.append(w)
    array.append(w)
    assert fluid.Executor().run(fetch_list=[L.array_length(array)])[0][0] == 2
    matrix = paddle.static.data("m", [2, 2])
    for call, error, told in (
        (lambda: w.set_value(np.ones(3)), FluidValueError, r"has shape \[2\] in this scope"),
        (lambda: w.set_value(3), FluidTypeError, "an array or a tensor"),
        (lambda: w.get_value(scope=fluid.Scope()), FluidValueError, "has no value in this scope"),
        (lambda: w.get_value(3), FluidTypeError, "a fluid.Scope or None"),
        (matrix.item, FluidTypeError, "one dimension at most"),
        (lambda: w.append(w), FluidTypeError, "an array of variables"),
        (array.pop, UnsupportedError, "cannot lose elements"),
        (lambda: w.register_hook(abs), UnsupportedError, "backward_func=hook"),
        (lambda: w.attr("x"), FluidValueError, "has no attribute 'x'"),
        (lambda: w.exponential_(0.0), FluidValueError, "lam is above 0"),
        (lambda: matrix.view("int32"), UnsupportedError, "another dtype is not supported"),
        (lambda: matrix.moveaxis([0, 0], [1, 0]), FluidValueError, "each once"),
        (lambda: matrix.vander(), FluidValueError, "takes a vector"),
        (lambda: matrix.quantile(1.5), FluidValueError, "between 0 and 1"),
        (lambda: matrix.take(w.cast("int64"), "up"), FluidValueError, "'up'"),
        (lambda: matrix.gcd(matrix), FluidTypeError, "takes integers"),
        (lambda: paddle.broadcast_shape([2, 3], [4]), FluidValueError, "cannot be broadcast"),
        (lambda: matrix.tensordot(paddle.ones([3, 2]), 1), FluidValueError, "equal sizes"),
    ):
        with pytest.raises(error, match=told):
            call()


def test_dtypes_are_values():
    assert (
        paddle.float32 == paddle.static.data("x", [1]).dtype
        and paddle.bool == fluid.core.VarDesc.VarType.BOOL
    )
    byte, half, double = (
        paddle.iinfo(paddle.int8),
        paddle.finfo("bfloat16"),
        paddle.finfo(paddle.complex128),
    )
    assert (byte.min, byte.max, byte.bits, byte.dtype) == (-128, 127, 8, "int8")
    # 2.6.2's
    assert (half.eps, half.max, half.tiny, half.bits) == (
        0.0078125,
        3.3895313892515355e38,
        2.0**-126,
        16,
    )
    assert double.dtype == "float64" and double.eps == np.finfo("float64").eps
    assert paddle.is_floating_point(paddle.zeros([1])) and paddle.is_integer(
        paddle.zeros([1], "int32")
    )
    assert not paddle.is_complex(paddle.zeros([1])) and paddle.broadcast_shape([2, 1], [3]) == [
        2,
        3,
    ]
    for call in (lambda: paddle.iinfo("float32"), lambda: paddle.finfo("int64")):
        with pytest.raises(FluidTypeError):
            call()
