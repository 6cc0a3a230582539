"""Learning-rate schedules compute their formulas, step after step."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fluidjax as fluid

L = fluid.layers
STEPS = 25


def polynomial(t, cycle):
    decay = 10 * max(1, math.ceil(t / 10)) if cycle else 10
    return 0.09 * (1 - min(t, decay) / decay) ** 2 + 0.01


def piecewise(t):
    return 0.1 if t < 5 else 0.05 if t < 12 else 0.01


def cosine(t):
    return 0.05 * (math.cos(math.pi * (t // 4) / 6) + 1)


CASES = {
    "exponential": (lambda: L.exponential_decay(0.1, 10, 0.5), lambda t: 0.1 * 0.5 ** (t / 10)),
    "exponential staircase": (
        lambda: L.exponential_decay(0.1, 10, 0.5, True),
        lambda t: 0.1 * 0.5 ** (t // 10),
    ),
    "natural_exp": (
        lambda: L.natural_exp_decay(0.1, 10, 0.5),
        lambda t: 0.1 * math.exp(-0.5 * t / 10),
    ),
    "natural_exp staircase": (
        lambda: L.natural_exp_decay(0.1, 10, 0.5, True),
        lambda t: 0.1 * math.exp(-0.5 * (t // 10)),
    ),
    "inverse_time": (
        lambda: L.inverse_time_decay(0.1, 10, 0.5),
        lambda t: 0.1 / (1 + 0.5 * t / 10),
    ),
    "inverse_time staircase": (
        lambda: L.inverse_time_decay(0.1, 10, 0.5, True),
        lambda t: 0.1 / (1 + 0.5 * (t // 10)),
    ),
    "polynomial": (lambda: L.polynomial_decay(0.1, 10, 0.01, 2.0), lambda t: polynomial(t, False)),
    "polynomial cycle": (
        lambda: L.polynomial_decay(0.1, 10, 0.01, 2.0, cycle=True),
        lambda t: polynomial(t, True),
    ),
    "piecewise": (lambda: L.piecewise_decay([5, 12], [0.1, 0.05, 0.01]), piecewise),
    "noam": (
        lambda: L.noam_decay(64, 10),
        lambda t: 64**-0.5 * min((t + 1) ** -0.5, (t + 1) * 10**-1.5),
    ),
    "cosine": (lambda: L.cosine_decay(0.1, 4, 6), cosine),
    "warmup": (
        lambda: L.linear_lr_warmup(0.1, 8, 0.02, 0.1),
        lambda t: 0.02 + 0.08 * t / 8 if t < 8 else 0.1,
    ),
    "warmup cosine": (
        lambda: L.linear_lr_warmup(L.cosine_decay(0.1, 4, 6), 8, 0.0, 0.1),
        lambda t: 0.1 * t / 8 if t < 8 else cosine(t),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_schedule(name):
    build, formula = CASES[name]
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        rate = build()
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        got = [exe.run(main, fetch_list=[rate])[0].item() for _ in range(STEPS)]
    np.testing.assert_allclose(got, [formula(t) for t in range(STEPS)], rtol=2e-6)
