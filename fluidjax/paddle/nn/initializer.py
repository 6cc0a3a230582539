"""paddle.nn.initializer: Fluid's initializers under the names of Paddle 2.0."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import initializer as fluid
from ...errors import FluidTypeError

Initializer = fluid.Initializer


def Constant(value: float = 0.0) -> Initializer:
    """Every element is `value`."""
    return fluid.Constant(value)


def Uniform(low: float = -1.0, high: float = 1.0, name: str | None = None) -> Initializer:
    """Random numbers between `low` and `high`."""
    return fluid.Uniform(low, high)


def Normal(mean: float = 0.0, std: float = 1.0, name: str | None = None) -> Initializer:
    """Random numbers of the normal distribution."""
    return fluid.Normal(mean, std)


def TruncatedNormal(mean: float = 0.0, std: float = 1.0, name: str | None = None) -> Initializer:
    """Random numbers of the normal distribution, none farther than two `std` from the mean."""
    return fluid.TruncatedNormal(mean, std)


def XavierUniform(fan_in: float | None = None, fan_out: float | None = None, name: str | None = None) -> Initializer:
    """Random numbers up to sqrt(6 / (fan_in + fan_out)) in size."""
    return fluid.Xavier(True, fan_in, fan_out)


def XavierNormal(fan_in: float | None = None, fan_out: float | None = None, name: str | None = None) -> Initializer:
    """Normal random numbers with deviation sqrt(2 / (fan_in + fan_out))."""
    return fluid.Xavier(False, fan_in, fan_out)


def KaimingUniform(fan_in: float | None = None) -> Initializer:
    """Random numbers up to sqrt(6 / fan_in) in size."""
    return fluid.MSRA(True, fan_in)


def KaimingNormal(fan_in: float | None = None) -> Initializer:
    """Normal random numbers with deviation sqrt(2 / fan_in)."""
    return fluid.MSRA(False, fan_in)


def Assign(value: Any, name: str | None = None) -> Initializer:
    """The numbers of an array or a list. Raises FluidTypeError for anything else."""
    if not isinstance(value, np.ndarray | list | tuple):
        raise FluidTypeError(f"Assign takes an array or a list of numbers, not {type(value).__name__}")
    return fluid.NumpyArrayInitializer(np.asarray(value))


__all__ = [
    "Assign", "Constant", "Initializer", "KaimingNormal", "KaimingUniform", "Normal", "TruncatedNormal", "Uniform", "XavierNormal",
    "XavierUniform",
]  # fmt: skip
