"""ModelAverage and ExponentialMovingAverage: against Paddle 1.8.5's values and against NumPy."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest

import fluidjax as fluid
from tests.optimizers import optimizer_cases

RECORD = json.loads(
    (pathlib.Path(__file__).parents[1] / "data" / "optimizer_programs_1.8.5.json").read_text()
)["averages"]


@pytest.fixture(scope="module", params=sorted(optimizer_cases.AVERAGES))
def run(request):
    with optimizer_cases.fresh(fluid) as (main, startup):
        average = optimizer_cases.AVERAGES[request.param](fluid)
    return request.param, optimizer_cases.applied(fluid, average, main, startup)


def model_mean(values, rate=0.5, low=2, high=4):
    """The window's rule: sums fold when it is full, and the mean is over what is left."""
    recent, old = [], []
    for updates, v in enumerate(values, 1):
        recent.append(v)
        if len(recent) >= low and len(recent) >= min(high, int(updates * np.float32(rate))):
            recent, old = [], recent
    return np.mean(old + recent, axis=0)


def moving_mean(values, decay):
    ema = 0.0
    for v in values:
        ema = decay * ema + (1 - decay) * v
    return ema / (1 - decay ** len(values))


def test_values_of_paddle(run):
    name, got = run
    for mine, want in zip(got["trace"], RECORD[name]["trace"], strict=True):
        for p in "wb":
            np.testing.assert_allclose(mine[p], want[p], rtol=1e-6)
    for when in ("within", "after"):
        for p in "wb":
            np.testing.assert_allclose(got[when][p], RECORD[name][when][p], rtol=2e-6, err_msg=when)


def test_numpy_rule(run):
    name, got = run
    for p in "wb":
        values = np.array([t[p] for t in got["trace"]])
        decay = 6 / 15 if "thres" in name else np.float32(0.9)
        want = model_mean(values) if name == "model_average" else moving_mean(values, decay)
        np.testing.assert_allclose(got["within"][p], want, rtol=1e-5)


def test_restore_brings_back_the_parameters(run):
    _, got = run
    assert got["after"] == got["trace"][-1]
    assert got["restored"] == got["trace"][-1]


def test_applying_twice_gives_the_same_average(run):
    """1.8.5's program corrects the moving average in place; apply keeps that from adding up."""
    _, got = run
    for p in "wb":
        np.testing.assert_allclose(got["kept"][p], got["within"][p], rtol=1e-6)


def test_integer_step_counts_are_cast():
    with optimizer_cases.fresh(fluid) as (main, startup):
        fluid.optimizer.SGD(0.1).minimize(optimizer_cases.line(fluid))
        steps = fluid.layers.create_global_var([1], 5, "int64", persistable=True, name="steps")
        fluid.optimizer.ExponentialMovingAverage(0.9, thres_steps=steps).update()
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        exe.run(main, feed=next(optimizer_cases.feeds(main, 1)))
        np.testing.assert_allclose(
            np.array(scope.find_var("scheduled_ema_decay_rate").get_tensor()), [6 / 15], rtol=1e-6
        )


def test_thres_steps_must_be_a_variable():
    with pytest.raises(fluid.errors.FluidTypeError, match="thres_steps"):
        fluid.optimizer.ExponentialMovingAverage(0.9, thres_steps=3)
