"""paddle.optimizer: schedulers (equal to Paddle 2.6.2's), AdamW, and what optimizers keep."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
import fluidjax.paddle as paddle
from fluidjax.errors import FluidError, FluidTypeError, FluidValueError, UnsupportedError
from tests.paddle import rate_cases

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "rates_2.6.2.json").read_text())
lr = paddle.optimizer.lr
X = np.array([[1, 2], [3, -1]], "float32")
pytestmark = pytest.mark.usefixtures("fresh_programs")


@pytest.mark.parametrize("name", rate_cases.CASES)
def test_rates_of_2_6_2(name):
    np.testing.assert_allclose(
        rate_cases.rates(lr, rate_cases.CASES[name]), RECORDED["rates"][name], rtol=1e-9, atol=1e-12
    )


def net():
    x = paddle.static.data("x", [2, 2])
    weight = paddle.ParamAttr(name="w", initializer=paddle.nn.initializer.Constant(0.5))
    bias = paddle.ParamAttr(name="b", initializer=paddle.nn.initializer.Constant(0.25))
    return paddle.mean(paddle.square(paddle.static.nn.fc(x, 1, weight_attr=weight, bias_attr=bias)))


def value(name):
    return np.array(fluid.global_scope().find_var(name).value).ravel()


def test_adamw_with_a_scheduler_trains_as_in_2_6_2():
    loss, rate = net(), lr.ExponentialDecay(0.1, 0.5)
    optimizer = paddle.optimizer.AdamW(
        rate, weight_decay=0.2, apply_decay_param_fun=lambda n: n == "w"
    )
    optimizer.minimize(loss)
    test = fluid.default_main_program().clone(for_test=True)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for wanted in RECORDED["adamw"]["steps"]:
        exe.run(feed={"x": X})
        rate.step()
        np.testing.assert_allclose(
            np.concatenate([value("w"), value("b")]), np.concatenate(wanted), rtol=1e-5
        )
    ops = [op for op in fluid.default_main_program().global_block().ops if op.type == "adamw"]
    attrs = [{k: op.attr(k) for k in RECORDED["adamw"]["attrs"][0]} for op in ops]
    for one, other in zip(sorted(attrs, key=str), RECORDED["adamw"]["attrs"], strict=True):
        assert one == pytest.approx(other)
    # a test program has no rate, and needs none
    assert exe.run(test, feed={"x": X}, fetch_list=[loss])[0].shape == (1,)
    state = optimizer.state_dict()
    assert (
        state["LR_Scheduler"] == {"last_epoch": 3, "last_lr": 0.0125}
        and optimizer.get_lr() == 0.0125
    )
    np.testing.assert_allclose(state["w_beta1_pow_acc_0"], [0.9**4], rtol=1e-6)
    rate.step()
    exe.run(feed={"x": X})
    optimizer.set_state_dict(state)
    assert rate() == 0.0125 and value("w_beta1_pow_acc_0") == state["w_beta1_pow_acc_0"]
    with pytest.raises(FluidValueError, match=r"'w_moment1_0' has shape \[2, 1\]"):
        optimizer.set_state_dict({"w_moment1_0": np.ones(3), "b_moment1_0": np.ones(1)})
    assert value("b_moment1_0") == state["b_moment1_0"]


@pytest.mark.parametrize("name", rate_cases.TRAINED)
def test_three_steps_of_2_6_2(name):
    loss = net()
    eval(rate_cases.TRAINED[name], {"o": paddle.optimizer}).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for _ in range(3):
        exe.run(feed={"x": X})
    np.testing.assert_allclose(
        np.concatenate([value("w"), value("b")]), RECORDED["trained"][name], rtol=2e-5
    )


def test_rates_within_steps():
    loss, rate = net(), lr.PiecewiseDecay([2], [0.5, 0.25])
    optimizer = paddle.optimizer.SGD(rate)
    optimizer.minimize(loss)
    exe, name = fluid.Executor(), "learning_rate_0"
    rate.step()
    exe.run(fluid.default_startup_program())
    rate.step()  # what the startup program set is older than this
    assert exe.run(feed={"x": X}, fetch_list=[name])[0] == 0.25
    rate.step(0)
    assert exe.run_steps(feeds=[{"x": X}] * 2, fetch_list=[name])[0].ravel().tolist() == [0.5] * 2
    for scheduler in ("3", 3):
        with pytest.raises(FluidTypeError, match="takes a scheduler of"):
            optimizer.set_lr_scheduler(scheduler)
    with pytest.raises(FluidValueError, match="the scheduler sets the rate"):
        optimizer.set_lr(0.1)
    with pytest.raises(UnsupportedError, match="minimize"):
        optimizer.step()
    assert optimizer.clear_grad() is None


def test_a_rate_that_is_set():
    optimizer = paddle.optimizer.Momentum(0.5)
    optimizer.set_lr(0.25)
    assert optimizer.get_lr() == 0.25
    optimizer.minimize(net())
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(feed={"x": X})
    optimizer.set_lr(0.125)
    before = value("w")
    exe.run(feed={"x": X})
    np.testing.assert_allclose(before - value("w"), 0.125 * value("w_velocity_0"), rtol=1e-5)
    assert (
        optimizer.get_lr() == 0.125
        and list(optimizer.state_dict()) == optimizer.get_opti_var_name_list()
    )
    other = paddle.optimizer.SGD(0.1)
    other.set_lr_scheduler(lr.StepDecay(0.5, 2))
    assert other.get_lr() == 0.5


def test_bad_input():
    for call, error, told in (
        (lambda: lr.LRScheduler("a"), FluidTypeError, "a number, not 'a'"),
        (lambda: lr.LRScheduler(0.1), NotImplementedError, "has no get_lr"),
        (lambda: lr.ExponentialDecay(-0.1, 0.5), FluidValueError, "not negative"),
        (
            lambda: lr.PiecewiseDecay([1], [0.5]),
            FluidValueError,
            "a value more than boundaries, not 1 for 1",
        ),
        (lambda: lr.NoamDecay(0, 1), FluidValueError, "d_model is above 0"),
        (lambda: lr.LinearWarmup("a", 1, 0, 1), FluidTypeError, "a number or a scheduler"),
        (lambda: lr.LinearWarmup(0.5, 0, 0, 1), FluidValueError, "warmup_steps are above 0"),
        (lambda: lr.LinearWarmup(0.5, 1, 1, 1), FluidValueError, "is above its start_lr"),
        (lambda: lr.MultiStepDecay(0.5, [3, 2]), FluidValueError, "milestones rise"),
        (lambda: lr.LambdaDecay(0.5, 3), FluidTypeError, "a function of the count"),
        (lambda: lr.LinearLR(0.5, 5, 0.0), FluidValueError, "start_factor lies above 0"),
        (lambda: lr.LinearLR(0.5, 5, 0.5, 2.0), FluidValueError, "end_factor lies between"),
        (lambda: lr.LinearLR(0.5, 2.0), FluidTypeError, "total_steps is a whole number"),
        (lambda: lr.OneCycleLR("a", 5), FluidTypeError, "max_learning_rate is a number"),
        (lambda: lr.OneCycleLR(0.5, 5, phase_pct=2), FluidValueError, "phase_pct lies between"),
        (lambda: lr.OneCycleLR(0.5, 5).step(6), FluidValueError, "has 5 steps, and this is step 6"),
        (lambda: lr.CyclicLR(0.5, -1, 5), FluidValueError, "max_learning_rate is not negative"),
        (lambda: lr.CyclicLR(0.1, 0.5, 0), FluidValueError, "step_size_up is above 0"),
        (lambda: lr.CosineAnnealingWarmRestarts(0.5, 0), FluidValueError, "T_0 is above 0"),
        (lambda: lr.CosineAnnealingWarmRestarts(0.5, 2).step(-2), FluidValueError, "a step from 0"),
        (lambda: lr.ReduceOnPlateau(0.5, "best"), FluidValueError, "'min' or 'max'"),
        (lambda: lr.ReduceOnPlateau(0.5).step(np.ones(2)), FluidTypeError, "takes a number"),
        (
            lambda: lr.StepDecay(0.5, 2).set_state_dict({"last_lr": 1}),
            FluidValueError,
            "has no last_epoch",
        ),
        (
            lambda: paddle.optimizer.AdamW(weight_decay="a"),
            FluidTypeError,
            "AdamW's weight_decay is a number",
        ),
        (
            lambda: paddle.optimizer.AdamW(multi_precision=1),
            FluidTypeError,
            "multi_precision is True or False",
        ),
        (lambda: paddle.optimizer.SGD(0.1).set_lr("a"), FluidTypeError, "set_lr takes a number"),
    ):
        with pytest.raises(error, match=told):
            call()


def test_a_run_that_fails_leaves_the_rate_as_it_was():
    """On feeds that are refused, and on values that are."""
    x, ids = fluid.data("x", [None, 3]), fluid.data("ids", [None, 1], "int64")
    rows = fluid.layers.embedding(fluid.layers.scale(ids, 2.0), [4, 3])
    loss = fluid.layers.mean(fluid.layers.fc(x, 1)) + fluid.layers.mean(rows)
    rate = lr.StepDecay(0.5, step_size=1, gamma=0.5)
    paddle.optimizer.SGD(rate).minimize(loss)
    exe, main = fluid.Executor(), fluid.default_main_program()
    exe.run(fluid.default_startup_program())
    right = {"x": np.ones((2, 3), "float32"), "ids": np.zeros((2, 1), "int64")}
    exe.run(main, feed=right, fetch_list=[loss])
    rate.step()
    for wrong, words in (
        ({**right, "x": np.ones((2, 4), "float32")}, "has shape"),
        ({**right, "ids": np.full((2, 1), 3)}, "0 <= ids < 4, but gets 6"),
    ):
        for run in (
            exe.run,
            lambda main, feed, fetch_list: exe.run_steps(main, [feed], fetch_list),
        ):
            with pytest.raises(FluidError, match=words):
                run(main, feed=wrong, fetch_list=[loss])
            assert value("learning_rate_0") == [0.5]
    exe.run(main, feed=right, fetch_list=[loss])
    assert value("learning_rate_0") == [0.25]
