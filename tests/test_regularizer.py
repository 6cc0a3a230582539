"""Weight decay: values against NumPy, whose turn it is, and what is logged (programs:
test_optimizer_programs.py).
"""

from __future__ import annotations

import logging

import numpy as np
import pytest

import fluidjax as fluid
from tests.optimizers import optimizer_cases

R = fluid.regularizer
START = np.array([0.5, -2.0, 0.0], "float32")


def after(regularization=None, own=None):
    """A parameter after one SGD step of rate 0.1 whose gradient is [1, 2, 3]."""
    with optimizer_cases.fresh(fluid) as (main, startup):
        init = fluid.initializer.NumpyArrayInitializer(START)
        w = fluid.layers.create_parameter(
            [3], "float32", attr=fluid.ParamAttr(name="w", initializer=init, regularizer=own)
        )
        loss = fluid.layers.reduce_sum(fluid.layers.elementwise_mul(w, fluid.data("g", [3])))
        fluid.optimizer.SGD(0.1, regularization=regularization).minimize(loss)
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        exe.run(main, feed={"g": np.array([1, 2, 3], "float32")})
        return np.array(scope.find_var("w").get_tensor())


def moved(penalty):
    return START - 0.1 * (np.array([1, 2, 3]) + penalty)


@pytest.mark.parametrize("given, own, penalty", [
    (None, None, 0 * START), (R.L2Decay(0.3), None, 0.3 * START), (R.L1Decay(0.3), None, 0.3 * np.sign(START)),
    (None, R.L2Decay(0.3), 0.3 * START), (R.L2Decay(5.0), R.L1Decay(0.2), 0.2 * np.sign(START)),
    (R.L2Decay(), None, 0 * START),
])  # fmt: skip
def test_values(given, own, penalty):
    np.testing.assert_allclose(after(given, own), moved(penalty), rtol=1e-6)


def test_a_function_may_be_a_regularizer():
    def cubic(param, grad, block):
        return fluid.layers.elementwise_mul(fluid.layers.square(param), param)

    np.testing.assert_allclose(after(cubic), moved(START**3), rtol=1e-6)


def test_an_override_is_logged(caplog):
    with caplog.at_level(logging.INFO):
        after(R.L2Decay(5.0), R.L1Decay(0.2))
    assert "'w'" in caplog.text and "L2Decay, regularization_coeff=5.000000" in caplog.text


def test_printed_forms():
    assert str(R.L1Decay(0.1)) == "L1Decay, regularization_coeff=0.100000"
    assert str(R.L2Decay(0.1)) == "L2Decay, regularization_coeff=0.100000"


@pytest.mark.parametrize("bad", [None, "0.1", True])
def test_the_coefficient_is_a_number(bad):
    with pytest.raises(fluid.errors.FluidTypeError, match="regularization_coeff"):
        R.L2Decay(bad)


def test_a_variable_that_is_no_parameter_is_refused():
    with optimizer_cases.fresh(fluid) as (main, _):
        x = fluid.data("x", [3])
        with pytest.raises(fluid.errors.FluidTypeError, match="Parameter"):
            R.L2Decay(0.1)(x, x, main.global_block())


def test_a_sparse_gradient_becomes_a_dense_variable_of_its_own():
    with optimizer_cases.fresh(fluid):
        opt = fluid.optimizer.SGD(0.1, regularization=R.L2Decay(0.1))
        pairs = opt.backward(optimizer_cases.line(fluid))
        pairs[0][1].change(kind="SELECTED_ROWS")
        ops = opt.apply_gradients(pairs)
    assert [o.input("Grad") for o in ops] == [["b@GRAD"], ["w@GRAD@NEWGRAD@"]]
