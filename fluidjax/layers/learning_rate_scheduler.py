"""Learning rates that change with the step, as ops of the program (role LRSched).

All of them count steps in one persistable variable, ``@LR_DECAY_COUNTER@``, which is incremented at
the start of each run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from ..base.loc import located
from ..graph.program import default_main_program
from ..graph.variable import Variable
from ._build import REAL, require, typed
from .activation import ceil, cos, exp, floor
from .control_flow import Switch, autoincreased_step_counter
from .elementwise import elementwise_min
from .tensor import assign, cast, create_global_var, fill_constant

_Layer = TypeVar("_Layer", bound=Callable[..., Variable])


def _schedule(fn: _Layer) -> _Layer:
    """Mark the ops that `fn` appends as a learning-rate schedule's."""

    @wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Variable:
        with default_main_program()._lr_schedule_guard():
            return fn(*args, **kwargs)

    return run  # type: ignore[return-value]


def _decay_step_counter(begin: int = 0) -> Any:
    """The number of the run, from `begin`, as float32; all schedules of a program share the count."""
    return cast(autoincreased_step_counter("@LR_DECAY_COUNTER@", begin=begin), "float32")


def _nonzero(what: str, steps: Any) -> None:
    require(
        isinstance(steps, Variable) or steps != 0,
        f"a schedule divides by its {what}, which cannot be 0",
    )


def _periods(decay_steps: float, staircase: bool) -> Any:
    _nonzero("decay_steps", decay_steps)
    periods = _decay_step_counter() / decay_steps
    return floor(periods) if staircase else periods


@located
@_schedule
def noam_decay(d_model: float, warmup_steps: float, learning_rate: float = 1.0) -> Variable:
    """learning_rate * d_model ** -0.5 * min(step ** -0.5, step * warmup_steps ** -1.5), steps
    counted from 1.
    """
    step = _decay_step_counter(1)
    falling = step**-0.5
    rising = (warmup_steps**-1.5) * step
    return learning_rate * (d_model**-0.5) * elementwise_min(falling, rising)


@located
@_schedule
def exponential_decay(
    learning_rate: float, decay_steps: float, decay_rate: float, staircase: bool = False
) -> Variable:
    """learning_rate * decay_rate ** (step / decay_steps); staircase rounds the quotient down."""
    return learning_rate * (decay_rate ** _periods(decay_steps, staircase))


@located
@_schedule
def natural_exp_decay(
    learning_rate: float, decay_steps: float, decay_rate: float, staircase: bool = False
) -> Variable:
    """learning_rate * exp(-decay_rate * step / decay_steps); staircase rounds the quotient down."""
    return learning_rate * exp(-1 * decay_rate * _periods(decay_steps, staircase))


@located
@_schedule
def inverse_time_decay(
    learning_rate: float, decay_steps: float, decay_rate: float, staircase: bool = False
) -> Variable:
    """learning_rate / (1 + decay_rate * step / decay_steps); staircase rounds the quotient down."""
    return learning_rate / (1 + decay_rate * _periods(decay_steps, staircase))


@located
@_schedule
def polynomial_decay(
    learning_rate: float,
    decay_steps: float,
    end_learning_rate: float = 0.0001,
    power: float = 1.0,
    cycle: bool = False,
) -> Variable:
    """(learning_rate - end) * (1 - step / decay_steps) ** power + end; constant after decay_steps.

    cycle: instead, decay_steps grows to its next multiple above the step, so that the rate rises
    again.
    """
    _nonzero("decay_steps", decay_steps)
    step = _decay_step_counter()
    if cycle:
        rounds = ceil(step / decay_steps)
        zero, one = fill_constant([1], "float32", 0.0), fill_constant([1], "float32", 1.0)
        with Switch() as switch, switch.case(step == zero):
            assign(one, rounds)
        period: Any = decay_steps * rounds
    else:
        last = typed(decay_steps, "decay_steps", (int, *REAL), "polynomial_decay")
        step = elementwise_min(step, fill_constant([1], "float32", float(last)))
        period = decay_steps
    return (learning_rate - end_learning_rate) * ((1 - step / period) ** power) + end_learning_rate


@located
@_schedule
def piecewise_decay(boundaries: Sequence[float], values: Sequence[float]) -> Variable:
    """values[i] while step < boundaries[i], and the last value after the last boundary; one more
    value than boundaries.
    """
    for what, given in (("boundaries", boundaries), ("values", values)):
        typed(given, what, (list, tuple, np.ndarray), "piecewise_decay")
    require(
        len(values) == len(boundaries) + 1,
        f"piecewise_decay needs one value more than boundaries, not {len(values)} and"
        f" {len(boundaries)}",
    )
    step = _decay_step_counter()
    rate = create_global_var([1], 0.0, "float32", persistable=True, name="learning_rate")
    with Switch() as switch:
        for boundary, value in zip(boundaries, values, strict=False):
            upper = fill_constant([1], "float32", float(boundary), force_cpu=True)
            constant = fill_constant([1], "float32", float(value))
            with switch.case(step < upper):
                assign(constant, rate)
        constant = fill_constant([1], "float32", float(values[-1]))
        with switch.default():
            assign(constant, rate)
    return rate


@located
@_schedule
def cosine_decay(learning_rate: float, step_each_epoch: float, epochs: float) -> Variable:
    """learning_rate * 0.5 * (cos(pi * epoch / epochs) + 1), epoch = floor(step / step_each_epoch)."""
    typed(learning_rate, "learning_rate", (*REAL, Variable), "cosine_decay")
    _nonzero("step_each_epoch", step_each_epoch)
    _nonzero("epochs", epochs)
    epoch = floor(_decay_step_counter() / step_each_epoch)
    return learning_rate * 0.5 * (cos(epoch * math.pi / epochs) + 1)


@located
@_schedule
def linear_lr_warmup(
    learning_rate: Any, warmup_steps: float, start_lr: float, end_lr: float
) -> Variable:
    """start_lr + (end_lr - start_lr) * step / warmup_steps while step < warmup_steps, then
    learning_rate.

    learning_rate: a number, or another schedule's variable.
    """
    typed(learning_rate, "learning_rate", (int, *REAL, Variable), "linear_lr_warmup")
    dtype = learning_rate.dtype if isinstance(learning_rate, Variable) else "float32"
    _nonzero("warmup_steps", warmup_steps)
    slope = float(end_lr) - float(start_lr)
    rate = create_global_var([1], 0.0, dtype, persistable=True, name="learning_rate_warmup")
    step = _decay_step_counter()
    with Switch() as switch:
        with switch.case(step < warmup_steps):
            assign(start_lr + slope * (step / float(warmup_steps)), rate)
        with switch.default():
            if not isinstance(learning_rate, Variable):
                learning_rate = fill_constant([1], dtype, learning_rate)
            assign(learning_rate, rate)
    return rate


__all__ = [
    "cosine_decay", "exponential_decay", "inverse_time_decay", "linear_lr_warmup", "natural_exp_decay", "noam_decay",
    "piecewise_decay", "polynomial_decay",
]  # fmt: skip
