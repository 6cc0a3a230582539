"""Optimizer updates, each from a state as it is in the middle of a training."""

import numpy as np

from ..sample import Sample, f32, f64, positive

SHAPE = (3, 5)
LR = np.array([0.1], "float32")


def one(value, dtype="float32"):
    return np.array([value], dtype)


def step(op, accumulators, outputs=None, inputs=None, **attrs):
    """`accumulators`: the names of those that may have either sign, positive ones with a plus
    before them
    """
    given = {"Param": f32(*SHAPE), "Grad": f32(*SHAPE)}
    if op not in ("adadelta",):
        given["LearningRate"] = LR
    for name in accumulators.split():
        given[name.strip("+")] = positive(*SHAPE) if name[0] == "+" else f32(*SHAPE)
    given.update(inputs or {})
    outputs = outputs or ["ParamOut"] + [n.strip("+") + "Out" for n in accumulators.split()]
    # rmsprop insists on writing in place, and adadelta answers differently if it does: as all
    # optimizers do
    inplace = {n: n[:-3] for n in outputs} if op in ("rmsprop", "adadelta") else None
    return Sample(op, given, attrs, outputs=outputs, inplace=inplace)


def adam(**given):
    tensors = {k: given.pop(k) for k in ("Beta1Tensor", "Beta2Tensor") if k in given}
    pows = {"Beta1Pow": one(0.9**3), "Beta2Pow": one(0.999**3)}
    return step(
        "adam",
        "Moment1 +Moment2",
        inputs=dict(pows, **tensors),
        outputs=["ParamOut", "Moment1Out", "Moment2Out", "Beta1PowOut", "Beta2PowOut"],
        **given,
    )


def averages(updates, count, window=0.5, low=2, high=5, old=3):
    counts = {"in_num_accumulates": count, "in_old_num_accumulates": old, "in_num_updates": updates}
    inputs = {k: one(v, "int64") for k, v in counts.items()}
    inputs.update((k, f32(*SHAPE)) for k in ("param", "in_sum_1", "in_sum_2", "in_sum_3"))
    names = ["sum_1", "sum_2", "sum_3", "num_accumulates", "old_num_accumulates", "num_updates"]
    return Sample(
        "average_accumulates",
        inputs,
        {"average_window": window, "max_average_window": high, "min_average_window": low},
        outputs=["out_" + n for n in names],
        inplace={"out_" + n: "in_" + n for n in names},
    )


FTRL = ["ParamOut", "SquaredAccumOut", "LinearAccumOut"]
RMSPROP = ["ParamOut", "MomentOut", "MeanSquareOut"]
PROXIMAL = {"l1": 0.2, "l2": 0.3}
ADADELTA = ["ParamOut", "AvgSquaredGradOut", "AvgSquaredUpdateOut"]

SAMPLES = [
    step("sgd", ""),
    Sample(
        "sgd",
        {"Param": f64(4), "Grad": f64(4), "LearningRate": one(0.1, "float64")},
        outputs=["ParamOut"],
    ),
    step("momentum", "Velocity", mu=0.9),
    step("momentum", "Velocity", mu=0.9, use_nesterov=True),
    step("lars_momentum", "Velocity", mu=0.9),
    step("lars_momentum", "Velocity", mu=0.9, lars_coeff=0.1, lars_weight_decay=0.3),
    step("adagrad", "+Moment"),
    step("adagrad", "+Moment", epsilon=0.1),
    step("decayed_adagrad", "+Moment"),
    step("decayed_adagrad", "+Moment", decay=0.7, epsilon=0.1),
    step("adadelta", "+AvgSquaredGrad +AvgSquaredUpdate", ADADELTA),
    step("adadelta", "+AvgSquaredGrad +AvgSquaredUpdate", ADADELTA, rho=0.7, epsilon=0.1),
    adam(),
    adam(beta1=0.7, beta2=0.8, epsilon=0.1, lazy_mode=True),
    adam(epsilon=0.1, Beta1Tensor=one(0.6), Beta2Tensor=one(0.7)),
    step("adamax", "Moment +InfNorm", inputs={"Beta1Pow": one(0.9**3)}),
    step(
        "adamax",
        "Moment +InfNorm",
        inputs={"Beta1Pow": one(0.5)},
        beta1=0.7,
        beta2=0.8,
        epsilon=0.1,
    ),
    step("rmsprop", "+MeanSquare Moment", RMSPROP),
    step("rmsprop", "+MeanSquare Moment", RMSPROP, decay=0.7, momentum=0.6, epsilon=0.1),
    step(
        "rmsprop",
        "+MeanSquare Moment MeanGrad",
        [*RMSPROP, "MeanGradOut"],
        centered=True,
        momentum=0.3,
        epsilon=0.1,
        inputs={"MeanSquare": positive(*SHAPE, lo=1.0)},
    ),
    step("ftrl", "+SquaredAccumulator LinearAccumulator", FTRL),
    step("ftrl", "+SquaredAccumulator LinearAccumulator", FTRL, l1=0.3, l2=0.2),
    step("ftrl", "+SquaredAccumulator LinearAccumulator", FTRL, l1=0.3, l2=0.2, lr_power=-0.7),
    step(
        "lamb",
        "Moment1 +Moment2",
        inputs={"Beta1Pow": one(0.9**3), "Beta2Pow": one(0.999**3)},
        weight_decay=0.01,
    ),
    step(
        "lamb",
        "Moment1 +Moment2",
        inputs={"Beta1Pow": one(0.5), "Beta2Pow": one(0.7)},
        weight_decay=0.2,
        beta1=0.7,
        beta2=0.8,
        epsilon=0.1,
    ),
    step(
        "lamb",
        "Moment1 +Moment2",
        inputs={"Beta1Pow": one(0.5), "Beta2Pow": one(0.7), "Param": np.zeros(SHAPE, "float32")},
        weight_decay=0.2,
    ),
    averages(updates=1, count=0),
    averages(updates=5, count=1),
    averages(updates=9, count=3),
    averages(updates=7, count=3),
    averages(updates=100, count=4),
    averages(updates=16383, count=1, high=10),
    averages(updates=16383, count=7, high=8),
    step("proximal_gd", ""),
    step("proximal_gd", "", **PROXIMAL),
    step("proximal_gd", "", l2=0.5),
    step("proximal_adagrad", "+Moment"),
    step("proximal_adagrad", "+Moment", **PROXIMAL),
    Sample(
        "dpsgd",
        {"Param": f32(*SHAPE), "Grad": f32(*SHAPE), "LearningRate": LR},
        {"clip": 0.5, "sigma": 0.0, "batch_size": 4.0},
        outputs=["ParamOut"],
    ),
    Sample(
        "dpsgd",
        {"Param": f32(*SHAPE), "Grad": f32(*SHAPE), "LearningRate": LR},
        {"clip": 100.0, "sigma": 0.0},
        outputs=["ParamOut"],
    ),
    Sample(
        "dpsgd",
        {"Param": f32(*SHAPE), "Grad": f32(*SHAPE), "LearningRate": LR},
        {"clip": 0.5, "sigma": 2.0},
        outputs=["ParamOut"],
        paddle=False,
        note="draws a random number",
    ),
]
