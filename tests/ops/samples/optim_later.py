"""Optimizers as Paddle 2 and 3 have them: what they changed in ops of 1.8.5, and those that they
added.
"""

import numpy as np

from ..sample import LATER, Sample, f32, positive

RATE = np.array([0.1], "float32")
POWERS = {"Beta1Pow": np.array([0.81], "float32"), "Beta2Pow": np.array([0.98], "float32")}
MOMENTS = ("Moment1", "Moment2", "Beta1Pow", "Beta2Pow")


def update(op, state, attrs, outs, **inputs):
    """an op that writes the slots `outs` over its inputs"""
    given = {"Param": f32(3), "Grad": f32(3), **state, **inputs}
    given.update({"LearningRate": RATE} if "LearningRate" not in given else {})
    names = ["%sOut" % name for name in ("Param", *outs)]
    return Sample(op, given, attrs, names, paddle=LATER, inplace={n: n[:-3] for n in names})


def moments():
    return {"Moment1": f32(3), "Moment2": positive(3), **POWERS}


def adam(attrs, more=(), **inputs):
    return update(
        "adam", moments(), {"multi_precision": False, **attrs}, (*MOMENTS, *more), **inputs
    )


def lamb(decay, **attrs):
    return update(
        "lamb", moments(), {"weight_decay": decay, "always_adapt": False, **attrs}, MOMENTS
    )


SAMPLES = [
    adam({"epsilon": 0.1}),
    adam({"amsgrad": True}, ["Moment2Max"], Moment2Max=np.array([0.1, 1, 3], "float32")),
    adam({}, EpsilonTensor=np.array([0.2], "float32")),
    adam({}, SkipUpdate=np.array([True])),
    adam({"use_global_beta_pow": True}),
    lamb(0.0),
    lamb(0.0, always_adapt=True),
    lamb(0.1),
    update("sgd", {}, {"multi_precision": False}, ()),
    update(
        "momentum",
        {"Velocity": f32(3)},
        {"mu": 0.9, "use_nesterov": True, "multi_precision": False},
        ["Velocity"],
    ),
    update("adagrad", {"Moment": positive(3)}, {"multi_precision": False}, ["Moment"]),
    update(
        "adadelta",
        {"AvgSquaredGrad": positive(3), "AvgSquaredUpdate": positive(3)},
        {"multi_precision": False},
        ["AvgSquaredGrad", "AvgSquaredUpdate"],
    ),
    update(
        "adamax",
        {"Moment": f32(3), "InfNorm": positive(3), "Beta1Pow": POWERS["Beta1Pow"]},
        {"multi_precision": False},
        ["Moment", "InfNorm"],
    ),
    update(
        "rmsprop",
        {"MeanSquare": positive(3, lo=1.0), "MeanGrad": f32(3), "Moment": f32(3)},
        {"centered": True, "momentum": 0.5},
        ["MeanSquare", "MeanGrad", "Moment"],
    ),
]


def small(op, state, attrs, outs, **inputs):
    """update() with slots in small letters"""
    given = {"param": f32(3), "grad": f32(3), "learning_rate": RATE, **state, **inputs}
    names = ["%s_out" % name for name in ("param", *outs)]
    return Sample(op, given, attrs, names, paddle=LATER, inplace={n: n[:-4] for n in names})


def each(value):
    """Paddle has such numbers for each element"""
    return np.full(3, value, "float32")


def nadam(**attrs):
    state = {
        "momentum_decay_pow": each(0.9),
        "beta2_pow": each(0.98),
        "mu_product": each(0.4),
        "moment1": f32(3),
        "moment2": positive(3),
    }
    return small(
        "nadam",
        state,
        attrs,
        ["momentum_decay_pow", "beta2_pow", "mu_product", "moment1", "moment2"],
    )


def radam(rho, beta2_pow):
    state = {
        "beta1_pow": each(0.81),
        "beta2_pow": each(beta2_pow),
        "rho": each(rho),
        "moment1": f32(3),
        "moment2": positive(3),
    }
    return small("radam", state, {}, ["beta1_pow", "beta2_pow", "rho", "moment1", "moment2"])


KINKS = np.array([0.5, -0.5, 0.0, 0.5], "float32")
SAMPLES += [
    nadam(),
    nadam(beta1=0.8, momentum_decay=0.5, epsilon=0.1),
    radam(0.0, 1.0),
    radam(900.0, 0.5),
    small("asgd", {"d": f32(3), "y": f32(3), "n": np.array([2], "float32")}, {}, ["d", "y"]),
    small(
        "rprop",
        {
            "prev": np.array([1, 1, 1, 0], "float32"),
            "learning_rate": np.array([0.1, 0.1, 0.1, 0.3], "float32"),
            "learning_rate_range": np.array([0.01, 0.11], "float32"),
            "etas": np.array([0.5, 1.2], "float32"),
        },
        {},
        ["prev", "learning_rate"],
        param=f32(4),
        grad=KINKS,
    ),
]
