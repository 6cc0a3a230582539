"""Optimizers: gradients of zero, infinities and nan, states of zero, huge and tiny numbers."""

import numpy as np

from ..case import Extreme

VALUES = [0.0, 1.0, -1.0, 1e-30, 1e-8, 1e10, 1e19, 3e38, -3e38, np.inf, -np.inf, np.nan]
N = len(VALUES)


def states(dtype, *fill):
    return [np.full(N, v, dtype) for v in fill]


def case(dtype, label, op, state, attrs, outs, rate=0.1, **more):
    """Every value as the gradient, beside states that are given."""
    inputs = {"Param": np.linspace(-1, 1, N).astype(dtype), "Grad": np.array(VALUES, dtype)}
    if rate is not None:
        inputs["LearningRate"] = np.array([rate], dtype)
    inputs.update(state)
    written = dict({"ParamOut": "Param"}, **outs)
    return Extreme(
        "%s %s" % (dtype, label), op, inputs, attrs, sorted(written), inplace=written, **more
    )


CASES = []
for dtype in ("float32", "float64"):
    zero, one = states(dtype, 0, 1)
    (small,) = states(dtype, 1e-12)
    lone = lambda v, dtype=dtype: np.array([v], dtype)  # noqa: E731
    CASES += [case(dtype, "rate %g" % rate, "sgd", {}, {}, {}, rate) for rate in (0.1, 0.0, np.inf)]
    for label, v in (("no velocity", zero), ("velocity", one)):
        for nesterov in (False, True):
            CASES += [
                case(
                    dtype,
                    label + " nesterov" * nesterov,
                    "momentum",
                    {"Velocity": v},
                    {"mu": 0.9, "use_nesterov": nesterov},
                    {"VelocityOut": "Velocity"},
                )
            ]
        CASES += [
            case(
                dtype,
                label,
                "lars_momentum",
                {"Velocity": v},
                {"mu": 0.9},
                {"VelocityOut": "Velocity"},
            )
        ]
    whole = dict(
        Param=np.ones(N, dtype),
        Grad=np.linspace(-1, 1, N).astype(dtype),
        Velocity=one,
        LearningRate=lone(0.1),
    )
    CASES += [
        Extreme(
            "%s %s" % (dtype, label),
            "lars_momentum",
            dict(whole, **{k: v for k, v in given.items() if k in whole}),
            {"mu": 0.9, "lars_weight_decay": given.get("decay", 0.0005)},
            ["ParamOut", "VelocityOut"],
            inplace={"ParamOut": "Param", "VelocityOut": "Velocity"},
        )
        for label, given in (
            ("at zero", {"Param": zero}),
            ("level", {"Grad": zero}),
            ("no decay", {"decay": 0.0}),
            ("usual", {}),
        )
    ]
    for label, m in (("nothing", zero), ("tiny", small)):
        CASES += [
            case(dtype, label, "adagrad", {"Moment": m}, {}, {"MomentOut": "Moment"}),
            case(dtype, label, "decayed_adagrad", {"Moment": m}, {}, {"MomentOut": "Moment"}),
            case(
                dtype,
                label,
                "proximal_adagrad",
                {"Moment": m},
                {"l1": 0.5, "l2": 0.1},
                {"MomentOut": "Moment"},
            ),
            case(
                dtype,
                label,
                "adadelta",
                {"AvgSquaredGrad": m, "AvgSquaredUpdate": m},
                {},
                {"AvgSquaredGradOut": "AvgSquaredGrad", "AvgSquaredUpdateOut": "AvgSquaredUpdate"},
                None,
            ),
            case(
                dtype,
                label,
                "adam",
                {"Moment1": m, "Moment2": m, "Beta1Pow": lone(0.9), "Beta2Pow": lone(0.999)},
                {},
                {"Moment1Out": "Moment1", "Moment2Out": "Moment2"},
            ),
            case(
                dtype,
                label,
                "adamax",
                {"Moment": m, "InfNorm": m, "Beta1Pow": lone(0.9)},
                {},
                {"MomentOut": "Moment", "InfNormOut": "InfNorm"},
            ),
            case(
                dtype,
                label,
                "rmsprop",
                {"MeanSquare": m, "Moment": m, "MeanGrad": zero},
                {"epsilon": 1e-10},
                {"MeanSquareOut": "MeanSquare", "MomentOut": "Moment", "MeanGradOut": "MeanGrad"},
            ),
            case(
                dtype,
                label,
                "ftrl",
                {"SquaredAccumulator": m, "LinearAccumulator": m},
                {"l1": 0.5, "l2": 0.1},
                {"SquaredAccumOut": "SquaredAccumulator", "LinearAccumOut": "LinearAccumulator"},
            ),
        ]
    CASES += [
        case(dtype, "l1=%g" % l1, "proximal_gd", {}, {"l1": l1, "l2": 0.1}, {}) for l1 in (0.0, 0.5)
    ]
for dtype in ("float32", "float64"):
    zero, one = states(dtype, 0, 1)
    lone = lambda v, dtype=dtype: np.array([v], dtype)  # noqa: E731
    for label, param, grad in (
        ("usual", one, np.linspace(-1, 1, N)),
        ("at zero", zero, np.linspace(-1, 1, N)),
        ("level", one, zero),
        ("tiny", one, np.full(N, 1e-30)),
        ("infinite", one, np.array([np.inf] + [1.0] * (N - 1))),
        ("nan", one, VALUES),
    ):
        given = {
            "Param": param,
            "Grad": np.array(grad, dtype),
            "LearningRate": lone(0.1),
            "Moment1": zero,
            "Moment2": zero,
            "Beta1Pow": lone(0.9),
            "Beta2Pow": lone(0.999),
        }
        CASES += [
            Extreme(
                "%s %s decay %g" % (dtype, label, decay),
                "lamb",
                given,
                {"weight_decay": decay},
                ["ParamOut", "Moment1Out", "Moment2Out"],
                inplace={"ParamOut": "Param", "Moment1Out": "Moment1", "Moment2Out": "Moment2"},
            )
            for decay in (0.0, 0.01)
        ]
        CASES += [
            Extreme(
                "%s %s clip %g" % (dtype, label, clip),
                "dpsgd",
                {k: given[k] for k in ("Param", "Grad", "LearningRate")},
                {"clip": clip, "sigma": 0.0},
                ["ParamOut"],
                inplace={"ParamOut": "Param"},
            )
            for clip in (0.5, 1e30)
        ]
    sums = ["sum_1", "sum_2", "sum_3"]
    for label, updates, count, window in (
        ("first", 0, 0, 0.0),
        ("every", 1, 1, 1.0),
        ("full", 16383, 9, 0.5),
        ("late", 2**40, 2, 1.0),
    ):
        given = {
            "param": np.array(VALUES, dtype),
            "in_num_updates": np.array([updates], "int64"),
            "in_num_accumulates": np.array([count], "int64"),
            "in_old_num_accumulates": np.array([0], "int64"),
        }
        given.update(("in_" + s, one) for s in sums)
        outs = sums + ["num_updates", "num_accumulates", "old_num_accumulates"]
        CASES += [
            Extreme(
                "%s %s" % (dtype, label),
                "average_accumulates",
                given,
                {"average_window": window, "max_average_window": 10, "min_average_window": 2},
                ["out_" + o for o in outs],
                inplace={"out_" + o: "in_" + o for o in outs},
            )
        ]
