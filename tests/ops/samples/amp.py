"""Mixed precision, of Paddle 2."""

import numpy as np

from ..sample import LATER, Sample, f32


def one(value, dtype="float32"):
    return np.array([value], dtype)


def check(bad):
    x = [f32(2, 3), f32(4)]
    x[1][2] = bad
    return Sample(
        "check_finite_and_unscale",
        {"X": x, "Scale": one(8)},
        {},
        {"Out": 2, "FoundInfinite": None},
        paddle=LATER,
    )


def update(found, good, bad, scale=64.0, stop=False):
    inputs = {
        "X": [f32(3)],
        "FoundInfinite": one(found, "bool"),
        "PrevLossScaling": one(scale),
        "InGoodSteps": one(good, "int32"),
        "InBadSteps": one(bad, "int32"),
    }
    attrs = {
        "incr_every_n_steps": 3,
        "decr_every_n_nan_or_inf": 2,
        "incr_ratio": 2.0,
        "decr_ratio": 0.4,
        "stop_update": stop,
    }
    outs = {"Out": 1, "LossScaling": None, "OutGoodSteps": None, "OutBadSteps": None}
    inplace = {
        "Out": "X",
        "LossScaling": "PrevLossScaling",
        "OutGoodSteps": "InGoodSteps",
        "OutBadSteps": "InBadSteps",
    }
    return Sample("update_loss_scaling", inputs, attrs, outs, inplace=inplace, paddle=LATER)


SAMPLES = [
    check(0.5),
    check(np.nan),
    check(-np.inf),
    update(False, 0, 1),
    update(False, 2, 0),
    update(True, 2, 0),
    update(True, 0, 1),
    update(True, 0, 1, 1.5),
    update(False, 2, 0, 3e38),
]
