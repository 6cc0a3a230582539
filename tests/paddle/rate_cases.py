"""Schedulers of paddle.optimizer.lr, as expressions (``lr`` is the module); recorded from Paddle
2.6.2 by tests/tools/record_rates.py.
"""

import math

CASES = {
    "Noam": "lr.NoamDecay(4, 3, 0.5)",
    "Piecewise": "lr.PiecewiseDecay([2, 4], [0.5, 0.25, 0.125])",
    "NaturalExp": "lr.NaturalExpDecay(0.5, 0.3)",
    "InverseTime": "lr.InverseTimeDecay(0.5, 0.3)",
    "Exponential": "lr.ExponentialDecay(0.5, 0.9)",
    "Polynomial": "lr.PolynomialDecay(0.5, 4, 0.1, 2.0)",
    "Polynomial cycle": "lr.PolynomialDecay(0.5, 3, cycle=True)",
    "Warmup": "lr.LinearWarmup(0.5, 3, 0.1, 0.4)",
    "Warmup then": "lr.LinearWarmup(lr.ExponentialDecay(0.5, 0.9), 3, 0.0, 0.5)",
    "MultiStep": "lr.MultiStepDecay(0.5, [2, 3, 7], 0.5)",
    "Step": "lr.StepDecay(0.5, 3)",
    "Lambda": "lr.LambdaDecay(0.5, lambda n: 1 / (n + 1))",
    "Multiplicative": "lr.MultiplicativeDecay(0.5, lambda n: 0.9 ** n)",
    "Cosine": "lr.CosineAnnealingDecay(0.5, 4, 0.1)",
    "later": "lr.ExponentialDecay(0.5, 0.9, last_epoch=3)",
    "Linear": "lr.LinearLR(0.5, 5, 0.25)",
    "Linear down": "lr.LinearLR(0.5, 20, 1.0, 0.5)",
    "One cycle": "lr.OneCycleLR(0.5, 12, 10.0, 0.01)",
    "One cycle linear": "lr.OneCycleLR(0.5, 20, phase_pct=0.4, anneal_strategy='linear')",
    "One cycle three": "lr.OneCycleLR(0.5, 16, three_phase=True)",
    "Cyclic": "lr.CyclicLR(0.1, 0.5, 3, 2)",
    "Cyclic halves": "lr.CyclicLR(0.1, 0.5, 2, mode='triangular2')",
    "Cyclic shrinks": "lr.CyclicLR(0.1, 0.5, 2, mode='exp_range', exp_gamma=0.9)",
    "Cyclic own": "lr.CyclicLR(0.1, 0.5, 2, scale_fn=lambda n: 0.95 ** n, scale_mode='iterations')",
    "Restarts": "lr.CosineAnnealingWarmRestarts(0.5, 3, 1, 0.1)",
    "Restarts longer": "lr.CosineAnnealingWarmRestarts(0.5, 2, 2)",
    "Plateau": "lr.ReduceOnPlateau(0.5, patience=1, cooldown=1, factor=0.5)",
    "Plateau max": "lr.ReduceOnPlateau(0.5, 'max', 0.5, 0, 0.1, 'abs', min_lr=0.2)",
}
# optimizers, as expressions (``o`` is paddle.optimizer)
TRAINED = {
    "SGD": "o.SGD(0.1, weight_decay=0.2)",
    "Momentum": "o.Momentum(0.1, 0.8, use_nesterov=True, weight_decay=0.2)",
    "Adagrad": "o.Adagrad(0.1)",
    "Adadelta": "o.Adadelta(0.5, epsilon=0.1)",
    "RMSProp": "o.RMSProp(0.1, momentum=0.5, centered=True)",
    "Adam": "o.Adam(0.1, epsilon=0.1)",
    "Adamax": "o.Adamax(0.1, epsilon=0.1)",
    "AdamW": "o.AdamW(0.1, epsilon=0.1, weight_decay=0.2)",
    "Lamb": "o.Lamb(0.1, epsilon=0.1)",
    "Lamb plain": "o.Lamb(0.1, lamb_weight_decay=0.0)",
    "Lamb adapts": "o.Lamb(0.1, lamb_weight_decay=0.0, always_adapt=True)",
}
MEASURES = [1.0, 0.9, 0.95, 0.94, 0.93, 0.92, 0.8, 0.9, 0.9, 0.9]


def rates(lr, text):
    """The rates of ten steps, and of a jump to the sixth where there is one."""
    made = eval(text, {"lr": lr, "math": math})
    found = [made()]
    for measure in MEASURES:
        made.step(measure) if "Plateau" in text else made.step()
        found.append(made())
    if "Plateau" not in text:
        made.step(6)
        found.append(made())
    return [*found, made.last_epoch]
