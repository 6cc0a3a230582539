"""Optimizers and scaled losses of later Paddles: gradients of zero, infinities and nan, states of
zero and of one, steps at their bounds.
"""

import numpy as np

from ..case import Extreme
from .optim import VALUES, N

CASES = []
PARAM = np.linspace(-1, 1, N)


def stepped(dtype, label, op, state, attrs, outs, small=False, many=False, rate=0.1):
    """Every value as the gradient. small: slots in small letters; many: lists of one"""
    names = ("param", "grad", "learning_rate") if small else ("Param", "Grad", "LearningRate")
    inputs = dict(
        zip(names, (PARAM.astype(dtype), np.array(VALUES, dtype), np.array([rate], dtype)))
    )
    inputs.update((slot, np.array(value, dtype)) for slot, value in state.items())
    written = [names[0]] + outs
    end = "_out" if small else "Out"
    if many:
        inputs = {slot: [value] for slot, value in inputs.items()}
    return Extreme(
        "%s %s" % (dtype, label),
        op,
        inputs,
        attrs,
        dict((w + end, 1 if many else None) for w in written),
        inplace=dict((w + end, w) for w in written),
    )


for dtype in ("float32", "float64"):
    each = lambda v: np.full(N, v)  # noqa: E731
    for label, one, two in (
        ("nothing", 0.0, 0.0),
        ("states of one", 1.0, 1.0),
        ("tiny", 1e-12, 1e-24),
    ):
        powers = {"Beta1Pow": [0.9], "Beta2Pow": [0.999]}
        moments = dict(powers, Moment1=each(one), Moment2=each(two))
        kept = ["Moment1", "Moment2", "Beta1Pow", "Beta2Pow"]
        CASES += [
            stepped(dtype, label, "adamw", moments, {"coeff": 0.1, "with_decay": True}, kept),
            stepped(
                dtype,
                label + ", no decay",
                "adamw",
                moments,
                {"coeff": 0.1, "with_decay": False},
                kept,
            ),
            stepped(
                dtype,
                label,
                "merged_momentum",
                {"Velocity": each(one)},
                {"mu": 0.9},
                ["Velocity"],
                many=True,
            ),
            stepped(
                dtype,
                label + ", decay",
                "merged_momentum",
                {"Velocity": each(one)},
                {
                    "mu": 0.9,
                    "use_nesterov": True,
                    "regularization_method": ["l2_decay"],
                    "regularization_coeff": [0.5],
                },
                ["Velocity"],
                many=True,
            ),
            stepped(
                dtype,
                label,
                "merged_adam",
                dict(moments, Moment2Max=each(two)),
                {"amsgrad": True},
                kept + ["Moment2Max"],
                many=True,
            ),
            stepped(
                dtype,
                label,
                "nadam",
                {
                    "momentum_decay_pow": each(1.0),
                    "beta2_pow": each(1.0),
                    "mu_product": each(1.0),
                    "moment1": each(one),
                    "moment2": each(two),
                },
                {},
                ["momentum_decay_pow", "beta2_pow", "mu_product", "moment1", "moment2"],
                small=True,
            ),
            stepped(
                dtype,
                label,
                "asgd",
                {"d": each(one), "y": each(two), "n": [2]},
                {},
                ["d", "y"],
                small=True,
            ),
        ]
        for which, rho, power in (
            ("first step", 0.0, 1.0),
            ("late", 900.0, 0.5),
            ("nothing left", 1998.0, 0.0),
        ):
            state = {
                "beta1_pow": each(power),
                "beta2_pow": each(power),
                "rho": each(rho),
                "moment1": each(one),
                "moment2": each(two),
            }
            CASES.append(
                stepped(
                    dtype,
                    "%s, %s" % (label, which),
                    "radam",
                    state,
                    {},
                    ["beta1_pow", "beta2_pow", "rho", "moment1", "moment2"],
                    small=True,
                )
            )
    CASES.append(
        stepped(
            dtype,
            "of none",
            "asgd",
            {"d": each(0.0), "y": each(0.0), "n": [0]},
            {},
            ["d", "y"],
            small=True,
        )
    )
    for label, prev in (
        ("no previous", each(0.0)),
        ("previous of one", each(1.0)),
        ("the same", VALUES),
        ("against", -np.array(VALUES)),
    ):
        for where, low, high in (("within", 1e-5, 50.0), ("one rate", 0.1, 0.1)):
            CASES.append(
                stepped(
                    dtype,
                    "%s, %s" % (label, where),
                    "rprop",
                    {
                        "prev": prev,
                        "learning_rate": each(0.1),
                        "learning_rate_range": [low, high],
                        "etas": [0.5, 1.2],
                    },
                    {},
                    ["prev", "learning_rate"],
                    small=True,
                )
            )


def scaled(label, values, found, good, bad, scale, **attrs):
    one = lambda v, dtype: np.array([v], dtype)  # noqa: E731
    inputs = {
        "X": [np.array(values, "float32")],
        "FoundInfinite": one(found, "bool"),
        "PrevLossScaling": one(scale, "float32"),
        "InGoodSteps": one(good, "int32"),
        "InBadSteps": one(bad, "int32"),
    }
    attrs = dict(
        {
            "incr_every_n_steps": 3,
            "decr_every_n_nan_or_inf": 2,
            "incr_ratio": 2.0,
            "decr_ratio": 0.4,
            "stop_update": False,
        },
        **attrs,
    )
    outs = {
        "Out": "X",
        "LossScaling": "PrevLossScaling",
        "OutGoodSteps": "InGoodSteps",
        "OutBadSteps": "InBadSteps",
    }
    return Extreme(
        label,
        "update_loss_scaling",
        inputs,
        attrs,
        {"Out": 1, "LossScaling": None, "OutGoodSteps": None, "OutBadSteps": None},
        inplace=outs,
    )


BAD = [0.0, -0.0, np.nan, np.inf, -np.inf, 3e38]
CASES += [
    scaled("found, kept", BAD, True, 0, 0, 64.0),
    scaled("found, smaller", BAD, True, 2, 1, 64.0),
    scaled("found, no less than 1", BAD, True, 2, 1, 1.0),
    scaled("found, exactly 1", BAD, True, 2, 1, 2.5),
    scaled("found, below 1 already", BAD, True, 2, 1, 0.5),
    scaled("fine, greater", BAD, False, 2, 1, 64.0),
    scaled("fine, too great", BAD, False, 2, 1, 3e38),
    scaled("fine, infinite", BAD, False, 2, 1, np.inf),
    scaled("found, nan", BAD, True, 2, 1, np.nan),
    scaled("found, zero", BAD, True, 2, 1, 0.0),
    scaled("fine, zero", BAD, False, 2, 1, 0.0),
    scaled("fine, beyond the steps", BAD, False, 9, 9, 64.0),
    scaled("stopped", BAD, False, 2, 1, 64.0, stop_update=True),
    scaled("stopped, found", BAD, True, 2, 1, 64.0, stop_update=True),
]
