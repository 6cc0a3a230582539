"""Every optimizer against recorded values of Paddle 1.8.5 and against its rule written in NumPy."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest

import fluidjax as fluid
from tests.optimizers import optimizer_cases

RECORD = json.loads((pathlib.Path(__file__).parents[1] / "data" / "optimizers.json").read_text())


def trained(optimizer, start, grads, dtype="float32", **attr):
    """The parameter after each step when its gradients are `grads`: the loss is sum(w * g)."""
    with optimizer_cases.fresh(fluid) as (main, startup):
        g = fluid.data("g", list(start.shape), dtype)
        attr = fluid.ParamAttr(name="w", **attr)
        w = fluid.layers.create_parameter(list(start.shape), dtype, attr=attr)
        optimizer().minimize(fluid.layers.reduce_sum(fluid.layers.elementwise_mul(w, g)))
    exe, scope, result = fluid.Executor(fluid.CPUPlace()), fluid.Scope(), []
    with fluid.scope_guard(scope):
        exe.run(startup)
        scope.find_var("w").get_tensor().set(start.astype(dtype), fluid.CPUPlace())
        for grad in grads:
            exe.run(main, feed={"g": grad.astype(dtype)})
            result.append(np.array(scope.find_var("w").get_tensor()))
    return result


@pytest.mark.parametrize("name", sorted(RECORD["optimizers"]))
def test_recorded_values(name):
    grads = [np.array(g, "float32").reshape(3, 1) for g in RECORD["gradients"]]
    call = RECORD["optimizers"][name]
    got = trained(lambda: eval("fluid.optimizer." + call, {"fluid": fluid}), np.ones((3, 1)), grads)
    for step, want in zip(got, RECORD["w_after_step"][name], strict=True):
        np.testing.assert_allclose(step.ravel(), want, rtol=0, atol=1e-6)


def f32(x):
    """Attributes are float32 in a program, whatever the parameter is."""
    return float(np.float32(x))


TINY, CENTI, TENTH, HALF, MOST, NINE, NEARLY, MORE = (
    f32(x) for x in (1e-3, 0.01, 0.1, 0.5, 0.8, 0.9, 0.95, 1.5)
)


def sgd(p, g, s, lr):
    return p - lr * g


def momentum(p, g, s, lr, mu=NINE, nesterov=False):
    v = s["v"] = mu * s.get("v", 0) + g
    return p - lr * (g + mu * v if nesterov else v)


def lars(p, g, s, lr, mu=NINE, coeff=CENTI, decay=TENTH):
    pn, gn = np.sqrt((p**2).sum()), np.sqrt((g**2).sum())
    local = lr * coeff * pn / (gn + decay * pn)
    s["v"] = mu * s.get("v", 0) + local * (g + decay * p)
    return p - s["v"]


def adagrad(p, g, s, lr, eps=TINY, first=TENTH):
    s["m"] = s.get("m", first) + g**2
    return p - lr * g / (np.sqrt(s["m"]) + eps)


def decayed_adagrad(p, g, s, lr, decay=MOST, eps=TINY):
    s["m"] = decay * s.get("m", 0) + (1 - decay) * g**2
    return p - lr * g / (np.sqrt(s["m"]) + eps)


def adadelta(p, g, s, lr, rho=MOST, eps=TINY):
    s["g"] = rho * s.get("g", 0) + (1 - rho) * g**2
    u = np.sqrt((s.get("u", 0) + eps) / (s["g"] + eps)) * g
    s["u"] = rho * s.get("u", 0) + (1 - rho) * u**2
    return p - np.sqrt((s["u"] + eps) / (s["g"] + eps)) * g


def adam(p, g, s, lr, b1=MOST, b2=NEARLY, eps=TINY):
    t = s["t"] = s.get("t", 0) + 1
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0) + (1 - b2) * g**2
    return p - lr * np.sqrt(1 - b2**t) / (1 - b1**t) * s["m"] / (np.sqrt(s["v"]) + eps)


def adamax(p, g, s, lr, b1=MOST, b2=NEARLY, eps=TINY):
    t = s["t"] = s.get("t", 0) + 1
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["n"] = np.maximum(np.abs(g), b2 * s.get("n", 0) + eps)
    return p - lr / (1 - b1**t) * s["m"] / s["n"]


def rmsprop(p, g, s, lr, rho=MOST, eps=TINY, mu=HALF, centered=False):
    s["q"] = rho * s.get("q", 0) + (1 - rho) * g**2
    s["g"] = rho * s.get("g", 0) + (1 - rho) * g
    size = s["q"] - s["g"] ** 2 if centered else s["q"]
    s["m"] = mu * s.get("m", 0) + lr * g / np.sqrt(size + eps)
    return p - s["m"]


def ftrl(p, g, s, lr, l1=TENTH, l2=TENTH, power=-0.5):
    old = s.get("q", np.zeros_like(p))
    new = s["q"] = old + g**2
    s["l"] = s.get("l", 0) + g - (new**-power - old**-power) / lr * p
    return np.where(
        np.abs(s["l"]) > l1, (l1 * np.sign(s["l"]) - s["l"]) / (new**-power / lr + 2 * l2), 0
    )


def lamb(p, g, s, lr, b1=MOST, b2=NEARLY, eps=TINY, decay=TENTH):
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0) + (1 - b2) * g**2
    r = s["m"] / (np.sqrt(s["v"]) + eps) + decay * p
    return p - lr * np.sqrt((p**2).sum()) / np.sqrt((r**2).sum()) * r


def dpsgd(p, g, s, lr, clip=MORE):
    return p - lr * g / max(1, np.sqrt((g**2).sum()) / clip)


opt = fluid.optimizer
RULES = {
    "sgd": (lambda: opt.SGD(0.1), sgd, {}),
    "momentum": (lambda: opt.Momentum(0.1, 0.9), momentum, {}),
    "nesterov": (lambda: opt.Momentum(0.1, 0.9, use_nesterov=True), momentum, {"nesterov": True}),
    "lars": (lambda: opt.LarsMomentum(0.1, 0.9, lars_coeff=0.01, lars_weight_decay=0.1), lars, {}),
    "adagrad": (lambda: opt.Adagrad(0.1, epsilon=1e-3, initial_accumulator_value=0.1), adagrad, {}),
    "decayed_adagrad": (
        lambda: opt.DecayedAdagrad(0.1, decay=0.8, epsilon=1e-3),
        decayed_adagrad,
        {},
    ),
    "adadelta": (lambda: opt.Adadelta(0.1, epsilon=1e-3, rho=0.8), adadelta, {}),
    "adam": (lambda: opt.Adam(0.1, 0.8, 0.95, 1e-3), adam, {}),
    "adam_lazy": (lambda: opt.Adam(0.1, 0.8, 0.95, 1e-3, lazy_mode=True), adam, {}),
    "adamax": (lambda: opt.Adamax(0.1, 0.8, 0.95, 1e-3), adamax, {}),
    "rmsprop": (lambda: opt.RMSProp(0.1, rho=0.8, epsilon=1e-3, momentum=0.5), rmsprop, {}),
    "rmsprop_centered": (
        lambda: opt.RMSProp(0.1, 0.8, 1e-3, 0.5, True),
        rmsprop,
        {"centered": True},
    ),
    "ftrl": (lambda: opt.Ftrl(0.1, l1=0.1, l2=0.1), ftrl, {}),
    "lamb": (lambda: opt.Lamb(0.1, 0.1, 0.8, 0.95, 1e-3), lamb, {}),
    "dpsgd": (lambda: opt.Dpsgd(0.1, clip=1.5, batch_size=4.0, sigma=0.0), dpsgd, {}),
}


@pytest.mark.first(10)
@pytest.mark.parametrize("factor", [1.0, 0.5])
@pytest.mark.parametrize("name", sorted(RULES))
def test_numpy_rule(name, factor):
    optimizer, rule, more = RULES[name]
    rng = np.random.RandomState(3)
    start = rng.randn(4, 3).astype("float32").astype("float64")
    grads = [rng.randn(4, 3) * 10 ** rng.uniform(-1, 1) for _ in range(8)]
    got = trained(optimizer, start, grads, "float64", learning_rate=factor)
    p, state = start, {}
    rate = f32(0.1) * (1.0 if name == "adadelta" else factor)
    for grad, step in zip(grads, got, strict=True):
        p = rule(p, grad, state, rate, **more)
        np.testing.assert_allclose(step, p, rtol=1e-8, atol=1e-10)


def test_ftrl_hands_l1_to_the_op_for_l2_and_says_so():
    with pytest.warns(UserWarning, match="l2=0.1"):
        ftrl_ = opt.Ftrl(0.1, l1=0.1, l2=0.7)
    assert ftrl_.op_attributes(None)["l2"] == 0.1


def test_dpsgd_noise_has_the_scale_asked_for():
    start, grads = np.zeros((1, 1)), [np.zeros((1, 1))] * 400
    got = np.array(
        trained(lambda: opt.Dpsgd(1.0, clip=2.0, batch_size=4.0, sigma=0.5), start, grads)
    ).ravel()
    noise = np.diff(got)
    assert np.unique(noise).size > 300
    assert 0.85 < noise.std() / (0.5 / 4) < 1.15
    assert abs(noise.mean()) < 5 * noise.std() / np.sqrt(noise.size)


def test_current_step_lr_follows_a_schedule():
    with optimizer_cases.fresh(fluid) as (main, startup):
        loss = optimizer_cases.line(fluid)
        halving = opt.SGD(fluid.layers.exponential_decay(0.5, 1, 0.5))
        halving.minimize(loss)
        fixed = opt.SGD(0.25)
    assert fixed.current_step_lr() == 0.25
    with fluid.scope_guard(fluid.Scope()), fluid.program_guard(main, startup):
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        seen = []
        for feed in optimizer_cases.feeds(main, 3):
            (rate,) = exe.run(main, feed=feed, fetch_list=[halving._global_learning_rate()])
            seen.append(float(rate[0]))
    np.testing.assert_allclose(seen, [0.5, 0.25, 0.125])


def test_current_step_lr_reads_the_scope():
    with optimizer_cases.fresh(fluid) as (_, startup):
        sgd_ = opt.SGD(0.25)
        sgd_.minimize(optimizer_cases.line(fluid))
        with fluid.scope_guard(fluid.Scope()) as _:
            with pytest.raises(fluid.errors.FluidValueError, match="startup program"):
                sgd_.current_step_lr()
            fluid.Executor(fluid.CPUPlace()).run(startup)
            assert sgd_.current_step_lr() == 0.25
